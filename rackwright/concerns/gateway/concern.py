"""The gateway of a host: HAProxy's package, its files and its unit, as wanted and as seen. Pure.

A new configuration is checked by HAProxy, takes the place of the old one, and must answer over a new connection;
otherwise the old files are put back. Streams in flight end on the processes that they began on.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Interface

from rackwright.concerns.docker import DOCKER
from rackwright.concerns.gateway.answer import health_url, served_certificate
from rackwright.concerns.gateway.files import (
    ADMIN,
    CONFIG,
    FOLDER,
    HOME,
    LEFT,
    SERVERS,
    UNIT_FILE,
    Text,
    WantedFiles,
    mode,
    sha256,
    wanted_files,
)
from rackwright.concerns.gateway.fits import TOO_OLD, too_old
from rackwright.concerns.gateway.keepalived import (
    ADDRESS_FOLDER,
    ADDRESS_LEFT,
    ADDRESS_UNIT_FILE,
    RUN_BY_NAME,
    HostAddress,
    KeepalivedFiles,
    keepalived_changes,
    keepalived_files,
)
from rackwright.concerns.gateway.key_change import JOURNAL, KEY_PROGRAM
from rackwright.concerns.gateway.key_maps import MAPS, REVOKED, map_file
from rackwright.concerns.gateway.package import USUAL, Version, expected_version, install_change
from rackwright.concerns.gateway.renewal import (
    ACME_STATE,
    HOOK_MODE,
    RENEWAL_FOLDER,
    RENEWAL_LEFT,
    RenewalFiles,
    SeenCertificate,
    account_folder,
    renewal_changes,
    renewal_files,
)
from rackwright.hostside import durable_script, host_script, host_text
from rackwright.loading.gateway_certificate import certificate_refusal
from rackwright.messages import few
from rackwright.paths import CERTIFICATE_TIMER, CERTIFICATE_UNIT, GATEWAY_UNIT, KEEPALIVED_UNIT, UNITS
from rackwright.plan.answers import Answers
from rackwright.plan.change import Change, Owned, Refuse, Shell, Step, WriteFile
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.reading import files, lines_of
from rackwright.record.ending import FIX
from rackwright.settings.host_settings import HostSettings

NEXT = f"{FOLDER}/next"
"""Files that have not been checked yet."""
CHECK_CODE, APPLY_CODE, UNKNOWN_CODE, NO_KEYS_CODE = "RW3614", "RW3624", "RW3634", "RW3605"


@dataclass(frozen=True)
class GatewayFile:
    """A file on the host: its SHA-256, its mode and its owner."""

    sha256: str
    mode: str


@dataclass(frozen=True)
class SeenGateway:
    """The gateway on the host: packages, files by path, the text of its configuration, and its unit's state."""

    packages: Mapping[str, str] = field(default_factory=dict)
    """Versions of the installed packages."""
    candidate: str = ""
    """Version of HAProxy that apt would install, where it knows one."""
    files: Mapping[str, GatewayFile] = field(default_factory=dict)
    last_sums: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 by path, as the last deploy wrote the files."""
    config: str = ""
    revoked: frozenset[str] = frozenset()
    """Hashes of the keys that were revoked on this host."""
    runs: bool = False
    """True if the unit is enabled and active."""
    announces: bool = False
    """True if keepalived's unit is."""
    address_sums: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 by path of keepalived's files, as the last deploy wrote them."""
    places: tuple[HostAddress, ...] = ()
    """The host's IPv4 addresses."""
    timed: bool = False
    """True if the timer that looks at the certificate is enabled and active."""
    renewal_sums: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 by path of the timer's files, as the last deploy wrote them."""
    certificate: SeenCertificate | None = None
    """The certificate that HAProxy serves."""
    closed: str = ""
    """Name of the operator's firewall that lets no client in."""
    health: str = ""
    """HTTP status of /healthz, where the gateway runs."""
    keys_changed: str = ""
    """Number of the last change of keys since the host's boot."""

    @property
    def edited(self) -> list[str]:
        """Paths that are not as the last deploy left them."""
        last = {**self.last_sums, **self.address_sums, **self.renewal_sums}
        return [path for path, digest in last.items() if self._sha256(path) != digest]

    @property
    def as_left(self) -> bool:
        """True if files and unit are as the last deploy left them."""
        stopped = (self.last_sums and not self.runs) or (self.address_sums and not self.announces)
        stopped = stopped or (self.renewal_sums and not self.timed)
        ends = self.renewal_sums and (self.certificate is None or self.certificate.ends_soon)
        return not (self.edited or stopped or ends)

    def has(self, address: IPv4Interface | None) -> bool:
        """Return True if the host has this address now."""
        return address is not None and any(one.address.ip == address.ip for one in self.places)

    @property
    def lets_in(self) -> bool:
        """True if it has a client's key."""
        return self._sha256(map_file("keys")) not in ("", sha256(""))

    def _sha256(self, path: str) -> str:
        return self.files[path].sha256 if path in self.files else ""


def read(settings: HostSettings) -> str:
    """Print the packages, SHA-256, mode and path of each file, and what the last deploy left; of a gateway alone."""
    if not settings.is_gateway:
        return ":"
    address = {"address_folder": ADDRESS_FOLDER, "address_left": ADDRESS_LEFT, "address_unit": ADDRESS_UNIT_FILE}
    files = {"folder": FOLDER, "left": LEFT, "unit": UNIT_FILE, "config": CONFIG, "revoked": REVOKED}
    port, ufw = settings.gateway.port, "/etc/ufw/ufw.conf"
    others = host_script("gateway_closed", port=port, url=health_url(settings), unit=GATEWAY_UNIT, ufw=ufw)
    renewal = {"renewal_folder": RENEWAL_FOLDER, "renewal_left": RENEWAL_LEFT}
    renewal |= {"renewal_units": f"{UNITS}/{CERTIFICATE_UNIT} {UNITS}/{CERTIFICATE_TIMER}"}
    renewal |= {"served": served_certificate(settings), "account": account_folder(settings)}
    renewal |= {"dns_name": next(iter(settings.gateway.names), ""), "journal": JOURNAL}
    return others + host_script("gateway_read", **files, **address, **renewal)


def joined(output: str, answers: Answers) -> str:
    """Return the lines with the units that are enabled and active."""
    units = (GATEWAY_UNIT, KEEPALIVED_UNIT, CERTIFICATE_TIMER)
    up = [unit for unit in units if answers.is_active(unit) and answers.unit(unit, "UnitFileState") == "enabled"]
    return "\n".join([output, *(f"runs {unit}" for unit in up)])


def parse(output: str) -> SeenGateway:
    """Parse the lines."""
    rows = [row.split(" ") for row in lines_of(output)]
    texts = files(output)
    return SeenGateway(
        {row[1]: row[2] for row in rows if row[0] == "package" and len(row) == 3},
        _word(rows, "candidate"),
        {row[3]: GatewayFile(row[1], row[2]) for row in rows if row[0] == "gateway" and len(row) == 4},
        _sums(texts.get(LEFT) or ""),
        texts.get(CONFIG) or "",
        frozenset((texts.get(REVOKED) or "").split()),
        ["runs", GATEWAY_UNIT] in rows,
        ["runs", KEEPALIVED_UNIT] in rows,
        _sums(texts.get(ADDRESS_LEFT) or ""),
        tuple(HostAddress(row[1], IPv4Interface(row[2])) for row in rows if row[0] == "place" and len(row) == 3),
        ["runs", CERTIFICATE_TIMER] in rows,
        _sums(texts.get(RENEWAL_LEFT) or ""),
        next((_certificate(row) for row in rows if row[0] == "certificate" and len(row) == 5), None),
        _word(rows, "closed"),
        _word(rows, "health"),
        _word(rows, "keys_changed"),
    )


def _certificate(row: list[str]) -> SeenCertificate:
    """Return a certificate by its row: `certificate given|issued|other SECONDS LIFETIME NAMES`."""
    seconds, lifetime = (int(text) if text.lstrip("-").isdigit() else 0 for text in row[2:4])
    return SeenCertificate(row[1], seconds, lifetime, tuple(name for name in row[4].split(",") if name))


def _word(rows: Sequence[Sequence[str]], name: str) -> str:
    return next((row[1] for row in rows if row[0] == name and len(row) == 2), "")


def _sums(text: str) -> dict[str, str]:
    """Return SHA-256 by path from such a list."""
    listed = [row.split(" ", 1) for row in text.splitlines()]
    return {row[1]: row[0] for row in listed if len(row) > 1}


def _list_of(files: Mapping[str, Text]) -> str:
    """Return the list that stays on the host."""
    return "".join(f"{sha256(text)} {path}\n" for path, text in sorted(files.items()))


@dataclass(frozen=True)
class WantedGateway:
    """The wanted packages and files of a gateway."""

    settings: HostSettings
    wanted: WantedFiles
    address: KeepalivedFiles
    renewal: RenewalFiles = field(default_factory=RenewalFiles)
    refusals: tuple[Change, ...] = ()

    @property
    def files(self) -> Mapping[str, Text]:
        """The wanted files by path."""
        return self.wanted.files


def wanted(settings: HostSettings, reading: HostReading) -> WantedGateway:
    """Return the wanted gateway; on another host, nothing."""
    if not settings.is_gateway:
        return WantedGateway(settings, WantedFiles({}, ""), KeepalivedFiles())
    on_host: SeenGateway = reading.by_concern.get("gateway", SeenGateway())
    version = expected_version(on_host.packages, on_host.candidate, reading[DOCKER].system)
    address = keepalived_files(settings, health_url(settings), on_host.places)
    files = wanted_files(settings, version, on_host.revoked)
    refusals = (*_refusals(settings, version), *_lost_keys(settings, files, on_host), *address.refusals)
    return WantedGateway(settings, files, address, renewal_files(settings), refusals)


def _refusals(settings: HostSettings, version: Version) -> Iterator[Change]:
    """Refuse servers without an address, whose models would vanish, an old HAProxy, and a wrong certificate."""
    lost = [server.host for backend in settings.backends for server in backend.servers if not server.address]
    if lost:
        text = f"{', '.join(dict.fromkeys(lost))}: no address is known of it here, so the gateway cannot reach it"
        text += "; nothing was changed; next: set ssh_hostname or fabric_address to an address"
        yield Change(
            "set up the gateway", "a host behind it has no address", (Refuse(text, code=UNKNOWN_CODE, mistake=FIX),)
        )
    if text := too_old(version):
        yield Change("set up the gateway", "its HAProxy is too old", (Refuse(text, code=TOO_OLD),))
    if wrong := certificate_refusal(settings):
        text = f"{wrong.text}; nothing was changed"
        yield Change(
            "set up the gateway", "clients would refuse its certificate", (Refuse(text, code=wrong.code, mistake=FIX),)
        )


def _lost_keys(settings: HostSettings, files: WantedFiles, on_host: SeenGateway) -> Iterator[Change]:
    """Refuse a site without keys where the gateway has some: an old copy or a wrong name would lock clients out."""
    if on_host.lets_in and not files.says_keys:
        file = settings.site / settings.gateway.keys
        text = f"{file} is missing or empty, and this gateway has keys of clients, which would all be refused"
        text += f"; nothing was changed; next: bring the file back, or write `keys: []` to it: git log -- {file}"
        yield Change("set up the gateway", "the site has no keys", (Refuse(text, code=NO_KEYS_CODE),))


def without_hosts(settings: HostSettings, reading: SeenGateway) -> str:
    """Return that no host behind the gateway serves; empty where one does, or it is not known."""
    if not settings.is_gateway or reading.health != "503":
        return ""
    return (
        "no model behind this gateway has a host that serves, and requests get 503; next: rackwright status INVENTORY"
    )


def changes(wanted: WantedGateway, reading: SeenGateway) -> list[Change]:
    """Install what is missing, write what differs, and let HAProxy take it over."""
    if not wanted.settings.is_gateway:
        return []
    if wanted.refusals:
        return list(wanted.refusals)
    installs = install_change(wanted.settings, reading.packages)
    return [*installs, *_files(wanted, reading), *_address(wanted.address, reading), *_renewal(wanted.renewal, reading)]


def _renewal(wanted: RenewalFiles, reading: SeenGateway) -> Iterator[Change]:
    """Yield the changes of the certificate; an authority asks this gateway, or the one that has the address."""
    differing = _differing(wanted.files, reading)
    surplus = sorted(set(reading.renewal_sums) & set(reading.files) - set(wanted.files))
    sums_list = _list_of(wanted.files)
    yield from renewal_changes(wanted, differing, surplus, reading.timed, reading.certificate, sums_list)


def _address(wanted: KeepalivedFiles, reading: SeenGateway) -> Iterator[Change]:
    """Yield the change of the common address, which follows once this gateway answers."""
    differing = _differing(wanted.files, reading)
    surplus = sorted(set(reading.address_sums) & set(reading.files) - set(wanted.files))
    yield from keepalived_changes(wanted, differing, surplus, reading.announces, _list_of(wanted.files))


def _differing(files: Mapping[str, Text], reading: SeenGateway) -> list[str]:
    return [path for path, text in files.items() if reading.files.get(path) != _as_file(path, text)]


def _files(wanted: WantedGateway, reading: SeenGateway) -> list[Change]:
    differing = _differing(wanted.files, reading)
    surplus = sorted(set(reading.last_sums) & set(reading.files) - set(wanted.files))
    if not (differing or surplus) and reading.runs:
        return list(_noted(wanted, reading))
    return [
        Change(
            "let the gateway take its new configuration, and confirm over a new connection",
            _why(differing, surplus),
            tuple(_steps(wanted, differing, surplus, reading.keys_changed)),
            owns=(Owned("unit", GATEWAY_UNIT), *(Owned("file", path) for path in wanted.files if path != UNIT_FILE)),
            disowns=tuple(Owned("file", path) for path in surplus),
            diff=_diff(wanted, reading) if CONFIG in differing else "",
            by_itself=not reading.as_left,
        )
    ]


def _noted(wanted: WantedGateway, reading: SeenGateway) -> Iterator[Change]:
    """Yield the change of the list alone: a key that was revoked during a deploy is in it as the deploy had it."""
    listed = _list_of(wanted.files)
    if reading.last_sums and reading.last_sums != _sums(listed):
        yield Change("note the gateway's files as they are", f"{LEFT} differs", (WriteFile(LEFT, listed),))


def _as_file(path: str, text: Text) -> GatewayFile:
    by_name = {**RUN_BY_NAME, **HOOK_MODE}
    return GatewayFile(sha256(text), f"{int(by_name.get(path, mode(text)), 8):o}:root")


def _steps(wanted: WantedGateway, differing: list[str], surplus: list[str], keys_changed: str) -> Iterator[Step]:
    """Yield the steps: write beside the files in use, check, and only then put in place.

    keys_changed: the last change of keys that the wanted maps have; what came later is carried out on them.
    """
    by_acme = {"acme": ACME_STATE if wanted.renewal.directory else ""}
    by_acme["dns_name"] = next(iter(wanted.renewal.names), "")
    yield Shell(host_script("gateway_stage", folder=FOLDER, new=NEXT, home=HOME, **by_acme))
    staged = [path for path in differing if path.startswith(f"{FOLDER}/")]
    yield from (WriteFile(_staged(path), wanted.files[path], mode(wanted.files[path])) for path in staged)
    names = {"folder": FOLDER, "new": NEXT, "surplus": " ".join(surplus)}
    refused = "HAProxy refuses the new configuration, and nothing was changed"
    yield Shell(host_script("gateway_check", **names), code=CHECK_CODE, title=refused)
    if UNIT_FILE in differing:
        yield WriteFile(UNIT_FILE, wanted.files[UNIT_FILE])
    keys = {"journal": JOURNAL, "program": host_text(KEY_PROGRAM)}
    apply = host_script(
        "gateway_apply",
        **names,
        **keys,
        maps=" ".join(MAPS),
        seen=keys_changed or "0",
        unit=GATEWAY_UNIT,
        units=UNITS,
        servers=SERVERS,
        url=health_url(wanted.settings),
        revision=wanted.wanted.revision,
        admin=ADMIN,
        look="" if wanted.renewal.directory else CERTIFICATE_UNIT,
    )
    title = "the gateway did not answer with its new configuration, and has the old one again"
    yield Shell(apply, code=APPLY_CODE, title=title)
    yield WriteFile(LEFT, _list_of(wanted.files))
    yield Shell(durable_script("gateway_note", folder=FOLDER, left=LEFT, **keys))


def _staged(path: str) -> str:
    return f"{NEXT}{path.removeprefix(FOLDER)}"


def _why(differing: list[str], surplus: list[str]) -> str:
    if differing:
        return f"{few(differing)} differ or are missing"
    return f"{', '.join(surplus)} are no longer wanted" if surplus else f"{GATEWAY_UNIT} is not enabled and active"


def _diff(wanted: WantedGateway, reading: SeenGateway) -> str:
    before, after = reading.config.splitlines(), str(wanted.files[CONFIG]).splitlines()
    found = difflib.unified_diff(before, after, f"{CONFIG} now", f"{CONFIG} then", lineterm="")
    return "".join(f"{row}\n" for row in found)


def offline_files(settings: HostSettings) -> dict[str, str]:
    """Return the files as far as they are known without the host; secrets as masks. Raises SettingsError."""
    if not settings.is_gateway:
        return {}
    if wrong := certificate_refusal(settings):
        raise wrong
    found = {**wanted_files(settings, USUAL).files, **renewal_files(settings).files}
    return {path: str(text) for path, text in found.items()}


def has_common_address(settings: HostSettings, reading: HostReading) -> bool:
    """Return True if the host is a gateway that has the common address now; its gateway may not have been read."""
    on_host: SeenGateway = reading.by_concern.get("gateway", SeenGateway())
    return settings.is_gateway and on_host.has(settings.gateway.address)


TAKES = frozenset({"gateway", "proxy", "bundle", "watch"})
"""Sections of the settings that it is handed."""
GATEWAY: Concern[WantedGateway, SeenGateway] = Concern(
    "gateway",
    read,
    parse,
    wanted,
    changes,
    files=offline_files,
    alone=True,
    takes=TAKES,
    units=(GATEWAY_UNIT, KEEPALIVED_UNIT, CERTIFICATE_UNIT, CERTIFICATE_TIMER),
    joined=joined,
)
