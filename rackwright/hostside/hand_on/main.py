"""Entry: the JSON of `spec.py` as the first argument, secrets in files; exit 0 means that every file is whole."""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import signal
import ssl
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rackwright.hostside.hand_on.failures import BUSY, MISTAKE, HandOnError, NoPiecesError
from rackwright.hostside.hand_on.holding import Holding
from rackwright.hostside.hand_on.origin import HubFiles
from rackwright.hostside.hand_on.peer import PeerConnection
from rackwright.hostside.hand_on.pieces import Keys
from rackwright.hostside.hand_on.pull import Puller
from rackwright.hostside.hand_on.rate_limit import RateLimit
from rackwright.hostside.hand_on.registry import RegistryFiles
from rackwright.hostside.hand_on.report import PullReport, say, size
from rackwright.hostside.hand_on.server import PieceServer
from rackwright.hostside.hand_on.spec import (
    CERTIFICATE,
    HUB_TOKEN,
    REGISTRY_LOGIN,
    RELEASED,
    RUN_TOKEN,
    HandOnSpec,
    read,
)
from rackwright.hostside.quiet_disk import die_with_parent, quiet_disk

TELL = 64
"""Hosts that get a message at the end; others find out when they ask."""
TICK = 0.2
QUIET, AGAIN = 10.0, 30.0
"""Seconds without a request after which it says whom it waits for, and between two such lines."""
SPARE = 64 << 20
"""Bytes of the disk that stay free."""
HANDLES = 65536


def main() -> int:
    """Fill and hand on the files of argv[1]. Return the exit status."""
    # As process 1 of a container, Python would ignore SIGTERM.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    die_with_parent()
    quiet_disk()
    os.umask(0o022)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(HANDLES, most) if most > 0 else HANDLES, most))
    try:
        run(read(sys.argv[1]))
    except HandOnError as error:
        say(str(error), "error")
        return error.status
    return 0


def run(spec: HandOnSpec) -> None:
    """Fill the folder, and hand on until the hosts of the run need no more. Raises HandOnError."""
    keys = _keys(spec.secrets)
    lock = None if spec.reads_only else _lock(spec.folder)
    holdings = [Holding(file, spec.folder) for file in spec.files]
    server = _server(spec, keys, holdings)
    try:
        report = _fill(spec, keys, holdings, server)
        wrong = [holding.file.path for holding in holdings if not holding.whole]
        if not wrong:
            say(f"{len(holdings)} files, {size(report.total)}: complete and verified; {report.origins()}", "whole")
        teller = threading.Thread(target=_tell, args=(spec, keys), daemon=True)
        teller.start()
        _linger(spec, server)
        teller.join(spec.linger)
        if wrong:
            raise HandOnError(f"{len(wrong)} files here are not the published ones: {', '.join(wrong[:3])}")
    finally:
        if server:
            server.close()
        if lock is not None:
            os.close(lock)


def _fill(spec: HandOnSpec, keys: Keys, holdings: Sequence[Holding], server: PieceServer | None) -> PullReport:
    if spec.reads_only:
        return _read_only(holdings)
    _room(spec, holdings)
    puller = Puller(spec, keys, holdings, _origin(spec), _tls(spec, ssl.PROTOCOL_TLS_CLIENT))
    if server:
        server.tried, server.waits = lambda: puller.stream.tried, lambda: puller.stream.waits
        server.quiet = puller.quiet
    puller.run()
    return puller.report


def _origin(spec: HandOnSpec) -> HubFiles | None:
    if spec.origin is None:
        return None
    if spec.registry:
        return RegistryFiles(spec.origin, _text(spec.secrets / REGISTRY_LOGIN), spec.stall)
    return HubFiles(spec.origin, _text(spec.secrets / HUB_TOKEN) if spec.authorised else None, spec.stall)


def _read_only(holdings: Sequence[Holding]) -> PullReport:
    """Sum up the files that are here; those that are not the published ones are not handed on."""
    report = PullReport(sum(holding.file.size for holding in holdings))
    for holding in holdings:
        holding.read_only(report.add)
    return report


def _room(spec: HandOnSpec, holdings: Sequence[Holding]) -> None:
    """Compare what is missing with the room on the disk. Raises HandOnError before a byte is fetched."""
    missing = sum(holding.missing() for holding in holdings)
    free = shutil.disk_usage(spec.folder).free
    if missing + SPARE > free:
        raise HandOnError(
            f"{spec.folder}: {size(missing)} are missing, and {size(free)} are free; make room, and run again"
        )


def _server(spec: HandOnSpec, keys: Keys, holdings: Sequence[Holding]) -> PieceServer | None:
    if spec.listen is None:
        return None
    tls = _tls(spec, ssl.PROTOCOL_TLS_SERVER)
    server = PieceServer(spec.listen, holdings, keys, RateLimit(spec.serve), spec.stall, tls)
    server.start()
    say(f"listening on {spec.listen.address} port {spec.listen.port}, {'by TLS' if tls else 'in clear'}")
    return server


def _linger(spec: HandOnSpec, server: PieceServer | None) -> None:
    """Hand on until all hosts are done, or none has asked for a while: longer while one has not begun."""
    start = time.monotonic()
    shown = start - AGAIN
    while server and not server.all_done() and not (spec.secrets / RELEASED).exists():
        now = time.monotonic()
        begins = not server.all_came() and now - start < spec.start
        if server.idle() > spec.linger and not begins:
            return
        if server.idle() > QUIET and now - shown > AGAIN:
            shown = now
            say(server.waits_for(max(spec.linger - server.idle(), start + spec.start - now if begins else 0)))
        time.sleep(TICK)


def _tell(spec: HandOnSpec, keys: Keys) -> None:
    """Tell the other hosts that this one needs no more."""
    address = spec.address
    for source in spec.sources[:TELL]:
        with suppress(NoPiecesError):
            peer = PeerConnection(source, keys, address, min(2.0, spec.stall), _tls(spec, ssl.PROTOCOL_TLS_CLIENT))
            peer.connect()
            peer.tell_done()
            peer.close()


def _lock(folder: Path) -> int:
    """Lock out other programs that fill the folder, as long as this process lives. Raises HandOnError."""
    try:
        (folder / ".parts").mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / ".parts/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise HandOnError(f"{folder}: another program fills it", BUSY) from None
    except OSError as error:
        raise HandOnError(f"{folder}: {error.strerror or error}") from None
    return handle


def _keys(secrets: Path) -> Keys:
    try:
        return Keys(_text(secrets / RUN_TOKEN) or "")
    except ValueError as error:
        raise HandOnError(f"{secrets / RUN_TOKEN}: {error}", MISTAKE) from None


def _tls(spec: HandOnSpec, side: Any) -> ssl.SSLContext | None:
    """Return how connections are encrypted: both sides have the run's certificate, and accept no other."""
    if not spec.tls:
        return None
    context = ssl.SSLContext(side)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_cert_chain(spec.secrets / CERTIFICATE)
        context.load_verify_locations(spec.secrets / CERTIFICATE)
    except (OSError, ssl.SSLError) as error:
        raise HandOnError(f"{spec.secrets / CERTIFICATE}: {error}", MISTAKE) from None
    return context


def _text(file: Path) -> str | None:
    return file.read_text().strip() or None if file.exists() else None
