"""The gateway's HAProxy configuration as text: who may ask, for which model, at which path, and which hosts answer."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rackwright.concerns.watch.word import question
from rackwright.plan.render import render
from rackwright.settings.backend import Backend, Server
from rackwright.settings.gateway import HTTP_PORT, Gateway
from rackwright.settings.gateway_limits import UNSIZED, by_body, gateway_limits
from rackwright_engines.served_paths import ServedPaths, served_paths

TEMPLATE = "haproxy.cfg.j2"
NETWORKS = 16
"""Networks of one line: HAProxy takes 64 words in each."""
LOCAL = ("127.0.0.0/8", "::1")
"""The gateway itself, whose deploy asks for /healthz."""
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]")
"""Letters that no name of a backend or server has."""


@dataclass(frozen=True)
class Locations:
    """Folders and sockets of the gateway's HAProxy on its host."""

    folder: str = "/etc/rackwright/gateway"
    """Configuration, maps and certificates."""
    state: str = "/var/lib/rackwright/gateway"
    """Folder of the file `servers`: states of the servers, saved before each reload."""
    run: str = "/run/rackwright-gateway"
    """Folder of the admin socket."""
    log: str = "/dev/log"
    user: str = "haproxy"
    """User of the process that serves; empty: the one that starts it."""


@dataclass(frozen=True)
class ServerLine:
    """A server as its line in the configuration has it."""

    name: str
    address: str
    """Address and port."""
    word_port: int
    question: str
    """Its question for the host's word."""


@dataclass(frozen=True)
class ServedModel:
    """A model as the configuration has it."""

    name: str
    backend: str
    paths: ServedPaths
    card: str
    """Its entry in the list of models, as JSON."""
    servers: tuple[ServerLine, ...]


def config(
    gateway: Gateway,
    backends: Sequence[Backend],
    *,
    site: Path,
    version: tuple[int, int],
    revision: str = "",
    at: Locations = Locations(),
    others: Sequence[str] = (),
) -> str:
    """Return the text of haproxy.cfg.

    revision: answered by /healthz; without it, a hash of the file itself. others: addresses of the other gateways,
    which may know an authority's challenge.
    """
    text = _text(gateway, backends, site, version, revision, at, others)
    return text if revision else _text(gateway, backends, site, version, revision_of(text), at, others)


def revision_of(text: str) -> str:
    """Return the name of a configuration, by its text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def revision_in(text: str) -> str:
    """Return the revision that a configuration answers; empty if it has none."""
    found = re.search(r"X-Gateway-Revision '([0-9a-f]+)'", text)
    return found[1] if found else ""


def _text(
    gateway: Gateway,
    backends: Sequence[Backend],
    site: Path,
    version: tuple[int, int],
    revision: str,
    at: Locations,
    others: Sequence[str],
) -> str:
    models = [_model(backend) for backend in backends]
    return render(
        TEMPLATE,
        site,
        gateway=gateway,
        models=models,
        names=", ".join(model.name for model in models),
        bind=_bind(gateway, gateway.port),
        http_bind=_bind(gateway, HTTP_PORT),
        certificate=f"{at.state}/acme/served.pem" if gateway.acme else f"{at.folder}/certificates/gateway.pem",
        challenges=f"{at.state}/acme/challenges.map",
        others=[_address(address, HTTP_PORT) for address in others],
        allowed=list(_rows((*LOCAL, *gateway.networks))) if gateway.networks else [],
        by_body=by_body(gateway, backends),
        limits=gateway_limits(gateway, backends),
        hashed=UNSIZED,
        log_format=LOG_FORMAT,
        error=_error,
        revision=revision,
        version=version,
        at=at,
    )


def backend_name(model: str) -> str:
    """Return the name of a model's backend: `engine-keys.map` has the engine's key under it."""
    return "model:" + NOT_IN_NAMES.sub(lambda found: f":{ord(found[0]):02x}", model)


def _model(backend: Backend) -> ServedModel:
    card = {"id": backend.model, "object": "model", "created": 0, "owned_by": "rackwright"}
    paths = served_paths(backend.engine_kind)
    return ServedModel(backend.model, backend_name(backend.model), paths, json.dumps(card), tuple(_servers(backend)))


def _servers(backend: Backend) -> Iterator[ServerLine]:
    of_host = Counter(server.host for server in backend.servers)
    for server in backend.servers:
        name = server.host if of_host[server.host] == 1 else f"{server.host}:{server.endpoint}"
        yield _line(server, NOT_IN_NAMES.sub("_", name) if of_host[server.host] == 1 else name)


def _line(server: Server, name: str) -> ServerLine:
    return ServerLine(
        name, _address(server.address, server.port), server.word_port, question(server.endpoint, server.gateway)
    )


def _address(address: str, port: int) -> str:
    """Return an address with its port; HAProxy takes the last colon before the port."""
    return f"[{address}]:{port}" if ipaddress.ip_address(address).version == 6 else f"{address}:{port}"


def _bind(gateway: Gateway, port: int) -> str:
    return _address(gateway.bind, port) + (" v4v6" if gateway.bind == "::" else "")


def _rows(networks: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(networks), NETWORKS):
        yield networks[start : start + NETWORKS]


def _error(code: str, message: str, kind: str = "invalid_request_error") -> str:
    """Return an error as OpenAI's clients read it."""
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


LOG = {
    "time": '"%[date,utime(%Y-%m-%dT%H:%M:%SZ)]"',
    "id": '"%ID"',
    "key": '"%[var(txn.client),json(utf8s)]"',
    "model": '"%[var(txn.model),json(utf8s)]"',
    "host": '"%s"',
    "method": '"%[var(txn.method),json(utf8s)]"',
    "path": '"%[var(txn.asked),json(utf8s)]"',
    "status": "%ST",
    "hash": '"%[var(txn.hash)]"',
    "bytes_in": "%U",
    "bytes_out": "%B",
    "queue_ms": "%Tw",
    "first_ms": "%Tr",
    "total_ms": "%Ta",
    "end": '"%ts"',
}
"""Fields of a request in the log; none has a word of a prompt, a key or a query string."""
LOG_FORMAT = "{" + ",".join(f'"{name}":{value}' for name, value in LOG.items()) + "}"
