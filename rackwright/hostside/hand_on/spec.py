"""The arguments, as the control machine gives them: checked before a path or a port is used.

    {"files": [{"path": "a/b.safetensors", "size": 1, "sha256": "..."}, {"path": "c.json", "size": 1, "blob": "..."}],
     "folder": "/.../X.partial", "address": "10.0.0.3",
     "listen": {"address": "10.0.0.3", "port": 7461, "allow": ["10.0.0.4", ...]} | null,
     "sources": [{"name": "host-a", "address": "10.0.0.2", "port": 7461}, ...],
     "origin": {"url": "https://hub/org/repo/resolve/COMMIT/", "authorised": true, "after": 60,
                "registry": false} | null,
     "rate_mib": null, "serve_mib": null, "stall": 60, "start": 60, "linger": 60, "secrets": "/run/...", "tls": false}

address: from which it asks others; default: the one at which it listens. blob: git's hash, as the hub has small files.
at: where the origin has a file, below its URL; default: its path. registry: the origin is a registry, its login the
secret `registry_login`.
sources: as they are asked: the host before this one, the one before that, ...; then those after it, the last first.
allow: the hosts that may ask, the next one first, then those after it, then those before it. Hosts that fetch nothing
are left out. origin: used when there are no sources, or none gave a byte for `after` seconds (default: stall);
authorised: with the token of `hub_token`. start: seconds by which hosts may begin one after the other: sources that
never answered, and hosts that never asked, are waited for; default: stall. Without sources and origin, what is in the
folder is handed on, and nothing is written there.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from rackwright.hostside.hand_on.failures import MISTAKE, HandOnError

SHA256, BLOB = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{40}")
HUB_TOKEN, RUN_TOKEN, CERTIFICATE, REGISTRY_LOGIN = "hub_token", "run_token", "tls.pem", "registry_login"
"""Files of the folder of secrets. The certificate is one that was made for the run, with its key: all hosts have it.

The login at a registry is `USER:KEY` in base64.
"""
RELEASED = "released"
"""A file that appears there once no host of the run will take from this one again: the run's machine knows that."""


@dataclass(frozen=True)
class File:
    """A file and its published hash: SHA-256, or git's of a blob, which the hub publishes of small files."""

    path: str
    size: int
    digest: str
    at: str = ""
    """Its path at the origin, below the URL; empty: the same path."""

    def new_sum(self) -> Any:
        """Return what sums its bytes up to `digest`."""
        if SHA256.fullmatch(self.digest):
            return hashlib.sha256()
        return hashlib.sha1(b"blob %d\0" % self.size, usedforsecurity=False)


@dataclass(frozen=True)
class SourceHost:
    """A host that may have the files."""

    name: str
    address: str
    port: int


@dataclass(frozen=True)
class Listen:
    """The address at which this host hands on, and its takers: the next host first."""

    address: str
    port: int
    allow: tuple[str, ...]


@dataclass(frozen=True)
class HandOnSpec:
    """Everything that a run needs to know. rate, serve: bytes a second; stall, start, linger: seconds."""

    files: tuple[File, ...]
    folder: Path
    address: str | None
    """The address from which this host asks others; None: the kernel's choice."""
    listen: Listen | None
    sources: tuple[SourceHost, ...]
    origin: str | None
    authorised: bool
    after: float
    """Seconds without a byte from any source after which the origin is asked."""
    registry: bool
    """True if the origin is an image's registry."""
    rate: float | None
    serve: float | None
    stall: float
    start: float
    linger: float
    secrets: Path
    tls: bool

    @property
    def reads_only(self) -> bool:
        """True if this host only hands on what it has: nothing in its folder is written or removed."""
        return not self.sources and self.origin is None

    def name(self, address: str) -> str:
        """Return the name of a host."""
        return next((source.name for source in self.sources if source.address == address), address)


def read(text: str) -> HandOnSpec:
    """Return the arguments. Raises HandOnError where they are wrong."""
    try:
        return _spec(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise HandOnError(f"the arguments are wrong: {type(error).__name__}: {error}", MISTAKE) from None


def _spec(given: Mapping[str, Any]) -> HandOnSpec:
    files = tuple(_file(file) for file in given["files"])
    if len({file.path for file in files}) != len(files):
        raise ValueError("a path is there twice")
    origin, listen = given["origin"], given["listen"]
    address = given.get("address") or (listen["address"] if listen else None)
    return HandOnSpec(
        files=files,
        folder=_absolute(given["folder"]),
        address=_address(address) if address else None,
        listen=_listen(given["listen"]) if given["listen"] else None,
        sources=tuple(
            SourceHost(str(one["name"]), _address(one["address"]), int(one["port"])) for one in given["sources"]
        ),
        origin=_url(origin["url"]) if origin else None,
        authorised=bool(origin and origin.get("authorised")),
        after=float((origin or {}).get("after") or given.get("stall", 60)),
        registry=bool(origin and origin.get("registry")),
        rate=_mib(given.get("rate_mib")),
        serve=_mib(given.get("serve_mib")),
        stall=float(given.get("stall", 60)),
        start=float(given.get("start") or given.get("stall", 60)),
        linger=float(given.get("linger", 60)),
        secrets=_absolute(given["secrets"]),
        tls=bool(given.get("tls", False)),
    )


def _file(given: Mapping[str, Any]) -> File:
    path, size, digest = given["path"], given["size"], given.get("sha256") or given.get("blob") or ""
    if not is_plain(path):
        raise ValueError(f"a path that leads elsewhere: {path!r}")
    if not isinstance(size, int) or size < 0 or not (SHA256.fullmatch(digest) or BLOB.fullmatch(digest)):
        raise ValueError(f"{path}: size, sha256 or blob")
    return File(path, size, digest, str(given.get("at") or ""))


def is_plain(path: str) -> bool:
    """Return True if a path leads to a file below the folder, and not to Rackwright's own there."""
    parts = path.split("/")
    plain = all(part not in ("", ".", "..") for part in parts) and path.isprintable() and "\\" not in path
    return plain and not any(part.startswith((".rackwright", ".parts")) for part in parts)


def _listen(given: Mapping[str, Any]) -> Listen:
    return Listen(_address(given["address"]), int(given["port"]), tuple(_address(one) for one in given["allow"]))


def _address(text: str) -> str:
    return str(ipaddress.ip_address(text))


def _absolute(text: str) -> Path:
    if not text.startswith("/"):
        raise ValueError(f"not an absolute path: {text!r}")
    return Path(text)


def _url(text: str) -> str:
    if urlparse(text).scheme not in ("http", "https") or not urlparse(text).netloc:
        raise ValueError(f"not a URL: {text!r}")
    return text.rstrip("/") + "/"


def _mib(given: float | None) -> float | None:
    if given is not None and given <= 0:
        raise ValueError("a rate must be above 0")
    return given * (1 << 20) if given else None


def _source(given: Mapping[str, Any]) -> SourceHost:
    return SourceHost(str(given["name"]), _address(given["address"]), int(given["port"]))
