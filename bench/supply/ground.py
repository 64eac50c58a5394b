"""The lab hosts of a race: the origin first, then the members; their programs, links and counters."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.supply.engines import HOME, LIBTORRENT, NAME, RUN, TORRENT, TRACKER_PORT
from bench.supply.torrent import torrent_of
from rackwright_lab import Host

PACKAGES = ("python3", "python3-libtorrent", "nginx", "aria2", "curl")
ONHOST = Path(__file__).parent / "onhost"
REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "supply.txt"
MEMBER, TRACKER, ORIGIN = "supply-member", "supply-tracker", "supply-origin"
"""Units on the hosts."""
AT_ONCE = 4
"""Hosts that are worked on side by side."""
BLOCK = 1 << 20
QUEUE = 50
"""Milliseconds that a link keeps a packet: with the lab's 400, what a host acknowledges waits behind what it sends."""
UNLIMITED = 10_000
"""Megabits a second of a line that nothing waits for."""
ORIGIN_CONF = f"""
daemon off;
user root;
worker_processes 1;
pid /run/supply-origin.pid;
error_log stderr;
events {{ worker_connections 4096; }}
http {{
  log_format bytes '$body_bytes_sent';
  access_log {HOME}/bytes bytes;
  server {{ listen 80; root {HOME}/origin; }}
}}
"""


def each(hosts: Iterable[Host], act: Callable[[Host], object]) -> None:
    """Do the same to all hosts, a few side by side. Raises what one of them raised."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(act, hosts))


def inside(host: Host, path: str) -> Path:
    """Return a host's file as this machine sees it."""
    return host.root / path.lstrip("/")


def put(host: Host, path: str, content: str | bytes) -> None:
    """Write a file of a host, in one move; a script can be run."""
    data = content.encode() if isinstance(content, str) else content
    file = inside(host, path)
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f"{file.name}.partial")
    partial.write_bytes(data)
    partial.chmod(0o755 if data.startswith(b"#!") else 0o644)
    partial.rename(file)


def launch(host: Host, unit: str, *words: str) -> None:
    """Start a program as a unit of a host, which ends with the host."""
    host.run(shlex.join(["systemd-run", "--quiet", "--collect", f"--unit={unit}", *words]))


def end(host: Host, *units: str) -> None:
    """End units of a host, whether they run or not."""
    host.run(f"systemctl kill --signal=KILL {shlex.join(units)}; systemctl stop {shlex.join(units)}", check=False)


# -- once


def furnish(hosts: Sequence[Host]) -> None:
    """Put programs on all hosts, and start the server of the first, which is the origin. Safe to repeat."""
    each(hosts, _put_programs)
    origin = hosts[0]
    put(origin, f"{HOME}/origin.conf", ORIGIN_CONF)
    inside(origin, f"{HOME}/origin").mkdir(exist_ok=True)
    end(origin, ORIGIN)
    launch(origin, ORIGIN, "nginx", "-c", f"{HOME}/origin.conf")


def _put_programs(host: Host) -> None:
    inside(host, RUN).mkdir(parents=True, exist_ok=True)
    for program in ONHOST.glob("*.py"):
        put(host, f"{HOME}/{program.name}", program.read_text())


def install_libtorrent(hosts: Sequence[Host]) -> None:
    """Put PyPI's libtorrent on hosts, as their Debian's Python can load it."""
    words = [
        sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps", "--python-version=3.11",
        "--only-binary=:all:", f"--requirement={REQUIREMENTS}",
    ]  # fmt: skip
    lacking = [target for host in hosts if not (target := inside(host, LIBTORRENT)).exists()]
    with TemporaryDirectory() as folder:
        if lacking:
            subprocess.run([*words, f"--target={folder}"], check=True)
        for target in lacking:
            shutil.copytree(folder, target)


def prepare(hosts: Sequence[Host], size: int) -> str:
    """Make a file of that size at the origin, and its .torrent on all others; return its SHA-256."""
    origin, *members = hosts
    file = inside(origin, f"{HOME}/origin/{NAME}")
    with file.open("wb") as out:
        for written in range(0, size, BLOCK):
            out.write(os.urandom(min(BLOCK, size - written)))
    torrent = torrent_of(file, f"http://{origin.address}:{TRACKER_PORT}/announce")
    for host in members:
        put(host, TORRENT, torrent)
    return origin.run(f"sha256sum {HOME}/origin/{NAME}").stdout.split()[0]


# -- links and counters


def limit(host: Host, rate: float, receives: float | None = None) -> None:
    """Let a host send and receive so many bytes a second."""
    megabits = rate * 8 / 1e6
    host.limit_line(megabits if receives is None else receives * 8 / 1e6, megabits, QUEUE)


def wire_bytes(host: Host) -> int:
    """Return what a host has sent over its limited line, headers and repeats included."""
    (row,) = json.loads(host.run("tc -s -j qdisc show dev host0 root").stdout)
    return int(row["bytes"])


def forget_bodies(origin: Host) -> None:
    """Let the origin's server count from nothing."""
    os.truncate(inside(origin, f"{HOME}/bytes"), 0)


def body_bytes(origin: Host) -> int:
    """Return what the origin's server has sent of the file since then."""
    return sum(map(int, inside(origin, f"{HOME}/bytes").read_text().split()))
