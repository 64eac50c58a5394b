"""The gateway's certificate on its host: when it ends, and by ACME its orders and renewals, run by a timer. Pure.

By ACME each gateway has an account, an order and a key of its own: no private key travels, and none needs the other to
renew. The authority may ask either gateway: what one does not know, it asks the other for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rackwright.concerns.gateway.answer import on_host, served_certificate
from rackwright.concerns.gateway.files import Text, mode
from rackwright.concerns.gateway.key_change import ADMIN, MASTER
from rackwright.concerns.proxy_values import proxy_values
from rackwright.concerns.watch.metrics import DEFAULT_FOLDER
from rackwright.hostside import host_script, host_text
from rackwright.loading.gateway_certificate import read_roots
from rackwright.messages import few
from rackwright.paths import CERTIFICATE_TIMER, CERTIFICATE_UNIT, ETC, GATEWAY_UNIT, STATE, UNITS
from rackwright.plan.change import Change, Owned, Shell, Step, WriteFile
from rackwright.plan.render import render_own
from rackwright.settings.acme import Acme
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret

RENEWAL_FOLDER = f"{ETC}/certificate"
LOOK, HOOK, ROOTS, PROXY = (f"{RENEWAL_FOLDER}/{name}" for name in ("look", "hook", "roots.pem", "proxy"))
HOOK_MODE = {HOOK: "0755"}
"""uacme runs it by its name."""
ACME_STATE = f"{STATE}/gateway/acme"
RENEWAL_LEFT = f"{STATE}/gateway/certificate-files"
METRICS_FILE = f"{STATE}/gateway/textfile"
"""The path of the file of metrics that was written: a teardown removes it."""
ORDER_SECONDS = 600
ORDER_CODE = "RW3672"


@dataclass(frozen=True)
class SeenCertificate:
    """The certificate that a gateway serves."""

    by: str
    """given (by the site), issued (by the authority of the settings), or other: from before its first order."""
    seconds: int
    """Until its end."""
    lifetime: int
    """Seconds from its begin to its end."""
    names: tuple[str, ...] = ()

    def lacks(self, names: tuple[str, ...]) -> str:
        """Return why an order is due now; empty while the timer's renewals will do."""
        missing = [name for name in names if name not in self.names]
        if self.by != "issued":
            return "it has none of that authority yet"
        if missing:
            return f"the one it has is not for {', '.join(missing)}"
        if self.ends_soon:
            days = self.seconds // 86400
            return f"the one it has {'has expired' if self.seconds < 0 else f'ends in {days} days'}: renewals fail"
        return ""

    @property
    def ends_soon(self) -> bool:
        """True in the last sixth of its time: a renewal is tried from the last third on, twice a day."""
        return self.seconds < self.lifetime // 6


@dataclass(frozen=True)
class RenewalFiles:
    """The wanted files by path; none without TLS."""

    files: Mapping[str, Text] = field(default_factory=dict)
    directory: str = ""
    """Of the authority; empty where the site gives the certificate."""
    names: tuple[str, ...] = ()


def account_folder(settings: HostSettings) -> str:
    """Return the folder of the account at the authority; empty without one."""
    acme = settings.gateway.acme
    return f"{ACME_STATE}/{hashlib.sha256(acme.directory.encode()).hexdigest()[:12]}" if acme else ""


def renewal_files(settings: HostSettings) -> RenewalFiles:
    """Return the wanted files. Raises SettingsError for roots that cannot be read."""
    acme = settings.gateway.acme
    served = served_certificate(settings)
    if not served:
        return RenewalFiles()
    values = {"served": served, "folder": settings.watch.textfile or DEFAULT_FOLDER, "place": METRICS_FILE}
    files: dict[str, Text] = {
        LOOK: _renew(settings, acme, values) if acme else host_script("certificate_look", **values)
    }
    files |= _for_acme(settings) if acme else {}
    unit = render_own(
        f"{CERTIFICATE_UNIT}.j2",
        script=LOOK,
        state=f"{STATE}/gateway",
        metrics=values["folder"],
        proxy=PROXY if PROXY in files else "",
        roots=ROOTS if ROOTS in files else "",
    )
    files |= {
        f"{UNITS}/{CERTIFICATE_UNIT}": unit,
        f"{UNITS}/{CERTIFICATE_TIMER}": render_own(f"{CERTIFICATE_TIMER}.j2"),
    }
    return RenewalFiles(files, acme.directory if acme else "", settings.gateway.names)


def _renew(settings: HostSettings, acme: Acme, values: Mapping[str, str]) -> str:
    gateway = settings.gateway
    return host_script(
        "acme_renew",
        **values,
        account=account_folder(settings),
        config=f"{ETC}/gateway/haproxy.cfg",
        directory=acme.directory,
        email=acme.email,
        hook=HOOK,
        listener=f"{on_host(gateway.bind)}:{gateway.port}",
        names=" ".join(gateway.names),
        state=ACME_STATE,
        unit=GATEWAY_UNIT,
    )


def _for_acme(settings: HostSettings) -> dict[str, Text]:
    """Return the hook of challenges, the roots of the directory, and the way through a proxy."""
    files: dict[str, Text] = {HOOK: _hook(settings)}
    if roots := read_roots(settings):
        files[ROOTS] = roots
    if proxy := "".join(f"{name}={value}\n" for name, value in proxy_values(settings).items() if value):
        files[PROXY] = Secret(proxy)
    return files


def _hook(settings: HostSettings) -> str:
    values = {
        "admin": ADMIN,
        "local": on_host(settings.gateway.bind),
        "map": f"{ACME_STATE}/challenges.map",
        "master": MASTER,
        "others": " ".join(_other_gateways(settings)),
        "state": ACME_STATE,
    }
    assigned = "".join(f"{name}='{value}'\n" for name, value in values.items())
    return f"#!/bin/sh\n{assigned}{host_text('acme_hook.sh')}"


def _other_gateways(settings: HostSettings) -> list[str]:
    """Return the other gateways' addresses as a URL has them."""
    return [on_host(other.address) for other in settings.gateways if not other.is_self and other.address]


def renewal_changes(
    wanted: RenewalFiles,
    differing: list[str],
    surplus: list[str],
    timed: bool,
    certificate: SeenCertificate | None,
    sums_list: str,
) -> Iterator[Change]:
    """Yield the changes of the timer and its files, and by ACME the order that is due. timed: the timer runs."""
    if differing or surplus or (wanted.files and not timed):
        yield Change(
            "look at the gateway's certificate twice a day" if wanted.files else "end the looks at the certificate",
            _why(differing, surplus),
            tuple(_steps(wanted, differing, surplus, sums_list)),
            owns=tuple(_owned(path) for path in wanted.files),
            disowns=tuple(_owned(path) for path in surplus),
        )
    if not wanted.directory:
        return
    why = certificate.lacks(wanted.names) if certificate else "it has none yet"
    if why or LOOK in differing:
        order = host_script("acme_order", unit=CERTIFICATE_UNIT, result=f"{ACME_STATE}/result")
        title = f"no certificate from {wanted.directory}; the gateway serves the one of before"
        step = Shell(order, timeout=ORDER_SECONDS + 60, code=ORDER_CODE, title=title)
        yield Change(f"get the gateway's certificate from {wanted.directory}", why or f"{LOOK} differs", (step,))


def _why(differing: list[str], surplus: list[str]) -> str:
    if differing:
        return f"{few(differing)} differ or are missing"
    return f"{', '.join(surplus)} are no longer wanted" if surplus else f"{CERTIFICATE_TIMER} is not enabled and active"


def _owned(path: str) -> Owned:
    unit = path.removeprefix(f"{UNITS}/")
    return Owned("unit", unit) if unit in (CERTIFICATE_UNIT, CERTIFICATE_TIMER) else Owned("file", path)


def _steps(wanted: RenewalFiles, differing: list[str], surplus: list[str], sums_list: str) -> Iterator[Step]:
    values = {"timer": CERTIFICATE_TIMER, "surplus": " ".join(surplus)}
    for path in differing:
        yield WriteFile(path, wanted.files[path], HOOK_MODE.get(path, mode(wanted.files[path])))
    if not wanted.files:
        yield Shell(host_script("renewal_end", **values))
    elif wanted.directory:
        yield Shell(host_script("renewal_start", **values, unit=""))
    else:
        yield Shell(host_script("renewal_start", **values, unit=CERTIFICATE_UNIT))
    yield WriteFile(RENEWAL_LEFT, sums_list)
