"""The program that each host runs, by engine: words and files, and nothing is run here. Pure."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bench.supply.cells import FROM_ORIGIN, ONE_HOST, PROXY
from rackwright.hostside.packed import HAND_ON, packed

HOME = "/srv/supply"
"""Of a host: its programs."""
RUN = f"{HOME}/run"
"""Remains of one cell: emptied before each."""
NAME = "weights"
DATA = f"{RUN}/{NAME}"
MARKER = f"{RUN}/complete"
TORRENT = f"{HOME}/{NAME}.torrent"
LIBTORRENT = "/opt/libtorrent"
"""PyPI's libtorrent, which Debian's Python can load."""
SWARM_PORT, PROXY_PORT, TRACKER_PORT, CHAIN_PORT = 6881, 8080, 6969, 7461
PYTHON = "python3"


@dataclass(frozen=True)
class Race:
    """The facts that all engines start from: addresses in the order of the hosts, the origin's, and the file."""

    members: tuple[str, ...]
    origin: str
    size: int
    sha256: str
    token: str
    """A secret of this race, for the engine that has one."""

    @property
    def url(self) -> str:
        """The file at the origin."""
        return f"http://{self.origin}/{NAME}"


@dataclass(frozen=True)
class Start:
    """A host's program. `marker`: a file that is there when it has all, and serves on; without one its end says so.

    `verifies`: that means that it has compared the SHA-256 itself.
    """

    argv: tuple[str, ...]
    marker: str | None = None
    verifies: bool = False
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """Content by path."""


Engine = Callable[[Race, int], Start]
"""Returns what the host of an index runs."""

RETRY = ("--retry", "1000", "--retry-delay", "1", "--retry-all-errors", "--speed-limit", "1000", "--speed-time", "10")


def curl(url: str) -> tuple[str, ...]:
    """Return the words that fetch a URL, again from where it broke off."""
    return ("curl", "--silent", "--show-error", "--fail", *RETRY, "--continue-at", "-", "--output", DATA, url)


def from_origin(race: Race, _: int) -> Start:
    """Each host fetches from the origin."""
    return Start(curl(race.url))


# -- a caching proxy on the first host

PROXY_CONF = """
daemon off;
user root;
worker_processes 1;
pid /run/supply-proxy.pid;
error_log stderr;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  proxy_cache_path {run}/cache keys_zone=supply:4m max_size={size} use_temp_path=off;
  server {{
    listen {port};
    location / {{
      slice 1m;
      proxy_cache supply;
      proxy_cache_key $uri$slice_range;
      proxy_cache_valid 200 206 1d;
      proxy_cache_lock on;
      proxy_cache_lock_timeout 1h;
      proxy_cache_lock_age 1h;
      proxy_http_version 1.1;
      proxy_set_header Range $slice_range;
      proxy_set_header Connection "";
      proxy_pass http://{origin};
    }}
  }}
}}
"""


def proxy(race: Race, index: int) -> Start:
    """Let nginx on the first host cache slices of the file; all hosts fetch from it."""
    words = curl(f"http://{race.members[0]}:{PROXY_PORT}/{NAME}")
    if index:
        return Start(words)
    text = PROXY_CONF.format(run=RUN, size=2 * race.size, port=PROXY_PORT, origin=race.origin)
    script = f'nginx -c {HOME}/proxy.conf & "$@" && touch {MARKER}; wait'
    return Start(("sh", "-c", script, "sh", *words), marker=MARKER, files={f"{HOME}/proxy.conf": text})


# -- a chain

SECRETS = f"{HOME}/secrets"
LONG = 3600
"""Seconds for which a host of the chain serves on; the race ends it before."""


def chain(race: Race, index: int) -> Start:
    """Let each host take verified pieces from the one before it, and hand them on; the first asks the origin."""
    peers = [{"name": address, "address": address, "port": CHAIN_PORT} for address in race.members]
    spec = {
        "files": [{"path": NAME, "size": race.size, "sha256": race.sha256}],
        "folder": RUN,
        "listen": {
            "address": race.members[index],
            "port": CHAIN_PORT,
            "allow": [*race.members[index + 1 :], *race.members[:index]],
        },
        "sources": [*peers[:index][::-1], *peers[index + 1 :][::-1]] if index else [],
        "origin": {"url": f"http://{race.origin}/", "authorised": False} if index == 0 else None,
        "rate_mib": None,
        "serve_mib": None,
        "stall": 60,
        "linger": LONG,
        "secrets": SECRETS,
    }
    program = b64decode(packed(*HAND_ON))
    files: dict[str, str | bytes] = {f"{HOME}/hand_on.pyz": program, f"{SECRETS}/run_token": race.token}
    return Start((PYTHON, f"{HOME}/hand_on.pyz", json.dumps(spec)), DATA, verifies=True, files=files)


# -- swarms

TUNED = {
    "enable_dht": False,
    "enable_lsd": False,
    "enable_upnp": False,
    "enable_natpmp": False,
    "enable_outgoing_utp": False,
    "enable_incoming_utp": False,
    "ssrf_mitigation": False,
    "min_reconnect_time": 1,
    "connection_speed": 200,
    "unchoke_slots_limit": 8,
    "allow_multiple_connections_per_ip": False,
    "urlseed_max_request_bytes": 1 << 20,
}
"""TCP alone: uTP gives way to other streams, and here all are its own. Eight are served at a time, its default."""


def libtorrent(race: Race, index: int, packages: str | None = None) -> Start:
    """Let Debian's libtorrent, or the one in a folder, join a swarm of all; the first host fetches from the origin."""
    peers = [[address, SWARM_PORT] for at, address in enumerate(race.members) if at != index]
    spec = {
        "torrent": TORRENT,
        "folder": RUN,
        "peers": peers,
        "port": SWARM_PORT,
        "web": race.url if index == 0 else None,
        "marker": MARKER,
        "settings": TUNED,
    }
    path = ("env", f"PYTHONPATH={packages}") if packages else ()
    words = (*path, PYTHON, f"{HOME}/swarm.py", f"{HOME}/swarm.json")
    return Start(words, marker=MARKER, files={f"{HOME}/swarm.json": json.dumps(spec)})


def aria2(race: Race, index: int) -> Start:
    """Let aria2 join a swarm by a tracker on the origin; the first host fetches from the origin."""
    hook = f"{HOME}/complete.sh"
    words = (
        "aria2c", f"--dir={RUN}", f"--torrent-file={TORRENT}", f"--listen-port={SWARM_PORT}", "--seed-ratio=0.0",
        "--enable-dht=false", "--bt-enable-lpd=false", "--disable-ipv6=true", "--file-allocation=none",
        "--check-integrity=true", "--allow-overwrite=true", "--bt-tracker-interval=2", "--auto-save-interval=1",
        "--bt-request-peer-speed-limit=100M", "--summary-interval=0", "--console-log-level=warn",
        f"--on-bt-download-complete={hook}", *([race.url] if index == 0 else []),
    )  # fmt: skip
    return Start(words, marker=MARKER, files={hook: f"#!/bin/sh\ntouch {MARKER}\n"})


def pypi_libtorrent(race: Race, index: int) -> Start:
    """Let PyPI's libtorrent join."""
    return libtorrent(race, index, LIBTORRENT)


ENGINES: dict[str, Engine] = {
    "chain": chain,
    "libtorrent 2.0": libtorrent,
    "libtorrent 2.1": pypi_libtorrent,
    "aria2": aria2,
    PROXY: proxy,
    FROM_ORIGIN: from_origin,
    ONE_HOST: from_origin,
}
"""By the names that figures have."""
