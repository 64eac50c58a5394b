"""All files of the gateway by path, as the settings want them; a secret one is readable by root alone."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from rackwright.concerns.gateway.answer import CERTIFICATE
from rackwright.concerns.gateway.haproxy import backend_name, config
from rackwright.concerns.gateway.key_maps import key_maps
from rackwright.concerns.gateway.package import Version
from rackwright.hostside import host_text
from rackwright.loading.gateway_certificate import read_chain
from rackwright.loading.gateway_keys import load_keys
from rackwright.paths import ETC, GATEWAY_UNIT, STATE, UNITS
from rackwright.plan.render import render_own
from rackwright.settings.backend import Backend
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret

FOLDER = f"{ETC}/gateway"
CONFIG = f"{FOLDER}/haproxy.cfg"
ENGINE_KEYS = f"{FOLDER}/engine-keys.map"
SAVE = f"{FOLDER}/save-servers"
UNIT_FILE = f"{UNITS}/{GATEWAY_UNIT}"
HOME = f"{STATE}/gateway"
SERVERS = f"{HOME}/servers"
"""States of the servers, saved before each reload."""
LEFT = f"{HOME}/files"
"""SHA-256 of each of these files as the last deploy wrote it: what differs from it was edited on the host."""
RUN = "/run/rackwright-gateway"
ADMIN = f"{RUN}/admin.sock"
Text = str | Secret


@dataclass(frozen=True)
class WantedFiles:
    """Files of a gateway, and the revision that it answers with them."""

    files: dict[str, Text]
    revision: str
    says_keys: bool = True
    """False where the site has no file of keys, or one without `keys:`."""


def wanted_files(settings: HostSettings, version: Version, revoked: Collection[str] = ()) -> WantedFiles:
    """Return the files of a gateway.

    revoked: hashes of keys that were revoked on the host, whatever the site's file says. Raises SettingsError for a
    file of the site that cannot be read.
    """
    gateway, backends = settings.gateway, reachable(settings.backends)
    others: dict[str, Text] = {ENGINE_KEYS: Secret("".join(_engine_keys(backends))), **_certificate(settings)}
    peers = [other.address for other in settings.gateways if not other.is_self and other.address]
    bare = config(gateway, backends, site=settings.site, version=version, revision="0", others=peers)
    revision = _digest(bare, *(plain(text) for text in others.values()))[:12]
    keys = load_keys(settings.site / gateway.keys)
    maps = key_maps(gateway, keys, datetime.now(UTC), revoked)
    text = config(gateway, backends, site=settings.site, version=version, revision=revision, others=peers)
    clients = {path: Secret(rows) for path, rows in maps.items()}
    return WantedFiles({CONFIG: text, **others, **clients, **_own()}, revision, "keys" in keys.model_fields_set)


def _own() -> dict[str, Text]:
    """Return the unit, and the script that saves the servers' states before a reload."""
    unit = render_own(
        f"{GATEWAY_UNIT}.j2",
        config=CONFIG,
        save=SAVE,
        run=RUN.rpartition("/")[2],
        home=HOME.removeprefix("/var/lib/"),
        servers=SERVERS,
    )
    return {UNIT_FILE: unit, SAVE: save_script(ADMIN, SERVERS, CONFIG)}


def save_script(socket: str, servers: str, config: str) -> str:
    """Return the script that saves the servers' states. socket: HAProxy's. servers: the file for them."""
    return f"socket={socket}\nservers={servers}\nconfig={config}\n{host_text('gateway_save.sh')}"


def reachable(backends: tuple[Backend, ...]) -> tuple[Backend, ...]:
    """Return the backends with the servers whose addresses are known."""
    found = (
        Backend(one.model, one.engine_kind, tuple(server for server in one.servers if server.address))
        for one in backends
    )
    return tuple(one for one in found if one.servers)


def _engine_keys(backends: tuple[Backend, ...]) -> Iterator[str]:
    for backend in backends:
        if key := backend.servers[0].api_key:
            yield f"{backend_name(backend.model)} {key.unmask()}\n"


def _certificate(settings: HostSettings) -> dict[str, Text]:
    """Return the file with the certificate and its key, where the gateway speaks TLS."""
    chain, key = read_chain(settings), settings.gateway.certificate_key
    if chain is None or key is None:
        return {}
    return {CERTIFICATE: Secret(f"{chain.rstrip()}\n{key.unmask().rstrip()}\n")}


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def sha256(text: Text) -> str:
    """Return a file's SHA-256."""
    return _digest(plain(text))


def plain(text: Text) -> str:
    """Return a file's text."""
    return text.unmask() if isinstance(text, Secret) else text


def mode(text: Text) -> str:
    """Return a file's mode."""
    return "0600" if isinstance(text, Secret) else "0644"
