"""The login at the image's registry, for root only, beside other registries' logins.

Docker's own `docker login` asks the registry each time, so an outage would fail a run that has nothing to pull.
The login is therefore merged into config.json here, and tried only in a pull (DECISIONS 17).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from rackwright.hostside import host_script
from rackwright.plan.change import Change, Owned, Shell
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.ownership import RECORD
from rackwright.plan.reading import pairs
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.image_reference import login_key
from rackwright.settings.secret import Secret
from rackwright.settings.sections import Registry

CONFIG = "/root/.docker/config.json"


@dataclass(frozen=True)
class SeenLogin:
    """Root's login at the registry, without the login itself."""

    mode: str | None
    """Mode and owner of config.json, for example `600:root`; None: the file is missing."""
    salt: str
    """The host's own salt, so that `digest` reveals nothing about the key."""
    digest: str | None
    """SHA-256 over salt and stored login; None: no login is stored for this registry."""
    helper: str | None
    """Program that stores root's logins instead of the file."""


@dataclass(frozen=True)
class WantedLogin:
    """The login that the settings want."""

    registry: str
    auth: Secret | None
    """Login in the format of config.json; None: no login is to be stored."""
    key_known: Secret | None
    """The configured login, to be stored or not: if it is stored against the settings, it is removed."""
    ours: bool
    """True if the ownership record lists the stored login."""


def auth_of(registry: Registry) -> Secret | None:
    """Return user and key in the format of `auths` in config.json; None without a key."""
    if not registry.key:
        return None
    return Secret(base64.b64encode(f"{registry.user}:{registry.key.unmask()}".encode()).decode())


def config_of(registry: Registry) -> Secret | None:
    """Return a config.json with only this login, for a pull that stores nothing; None without a key."""
    auth = auth_of(registry)
    if auth is None:
        return None
    return Secret(f'{{"auths": {{"{login_key(registry.host)}": {{"auth": "{auth.unmask()}"}}}}}}')


def at_rest(registry: Registry, reading: SeenLogin) -> bool:
    """Return True if the login is to be stored on the host: wanted, and without a credential helper there."""
    return bool(registry.key) and registry.keep and reading.helper is None


def read(settings: HostSettings) -> str:
    """Print a salted digest of the stored login, never the login (it stays in shell variables and pipes)."""
    return host_script("login_read", config=CONFIG, registry=login_key(settings.registry.host))


def parse(output: str) -> SeenLogin:
    """Parse the pairs."""
    values = pairs(output)
    return SeenLogin(values.get("mode"), values["salt"], values.get("digest"), values.get("helper") or None)


def wanted(settings: HostSettings, reading: HostReading) -> WantedLogin:
    """Return the login to store, if any."""
    registry, auth = settings.registry, auth_of(settings.registry)
    stored = auth if at_rest(registry, reading[REGISTRY]) else None
    return WantedLogin(registry.host, stored, auth, Owned("login", registry.host) in reading[RECORD])


def digest(salt: str, auth: Secret) -> str:
    """Return the digest that the reading prints when this login is stored."""
    return hashlib.sha256(f"{salt}{auth.unmask()}".encode()).hexdigest()


def changes(wanted: WantedLogin, reading: SeenLogin) -> list[Change]:
    """Store, replace, protect or remove the login; the registry is not contacted."""
    if wanted.auth is not None:
        return _keep(wanted, wanted.auth, reading)
    same = wanted.key_known is not None and reading.digest == digest(reading.salt, wanted.key_known)
    if reading.digest is not None and (wanted.ours or same):
        return [_remove(wanted.registry)]
    if wanted.ours:
        return [
            Change(f"forget the login at {wanted.registry}", "it is gone from the host", (), disowns=_owned(wanted))
        ]
    return []


def _keep(wanted: WantedLogin, auth: Secret, reading: SeenLogin) -> list[Change]:
    if reading.digest == digest(reading.salt, auth):
        return [] if reading.mode == "600:root" else [_protect(reading)]
    why = "it is not stored yet" if reading.digest is None else "the stored one differs"
    step = Shell(_edit(wanted.registry, "put"), stdin=auth)
    return [Change(f"store the login at {wanted.registry} for root only", why, (step,), owns=_owned(wanted))]


def _protect(reading: SeenLogin) -> Change:
    script = host_script("login_close", config=CONFIG)
    return Change(f"make {CONFIG} readable by root only", f"its mode and owner are {reading.mode}", (Shell(script),))


def _remove(registry: str) -> Change:
    return Change(
        f"remove the login at {registry} from {CONFIG}",
        "no login is to be kept",
        (Shell(_edit(registry, "drop")),),
        disowns=(Owned("login", registry),),
    )


def _owned(wanted: WantedLogin) -> tuple[Owned, ...]:
    return (Owned("login", wanted.registry),)


def _edit(registry: str, act: str) -> str:
    return host_script("login_edit", config=CONFIG, registry=login_key(registry), act=act)


def try_key(registry: Registry) -> Change | None:
    """Ask the registry whether it accepts the key; None without a key (DECISIONS 17)."""
    if registry.key is None:
        return None
    script = host_script("try_key", registry=registry.host, user=registry.user)
    return Change(
        f"try the key at {registry.host}", "registry.check_key asks for it", (Shell(script, stdin=registry.key),)
    )


def remove_script(registry: str) -> str:
    """Return shell lines that remove a registry's login from root's config.json, for teardown; others stay."""
    return _edit(registry, "drop")


def report(wanted: WantedLogin, reading: SeenLogin) -> str:
    """Report a credential helper that stores root's logins."""
    if reading.helper is None or wanted.key_known is None:
        return ""
    return (
        f"root's Docker logins are kept by docker-credential-{reading.helper}: the login at {wanted.registry} is used "
        "while an image is pulled, and not stored"
    )


TAKES = frozenset({"registry"})
"""Sections of the settings that it is handed."""
# A pull only needs to know whether a helper stores root's logins, and no change here adds or removes one.
REGISTRY: Concern[WantedLogin, SeenLogin] = Concern(
    "registry", read, parse, wanted, changes, report, alone=True, takes=TAKES
)

__all__: Sequence[str] = ("REGISTRY", "SeenLogin", "WantedLogin", "at_rest", "auth_of", "config_of", "remove_script")
