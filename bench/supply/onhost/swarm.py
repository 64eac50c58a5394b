"""One member of a libtorrent swarm, without a tracker: its file names the others.

`python3 swarm.py FILE.json`: {"torrent", "folder", "peers": [[address, port], ...], "port", "web": URL or null,
"marker": file that it writes when it has all, "settings": libtorrent's own}. It serves on until it is ended.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import libtorrent

PAUSE = 0.1
AGAIN = 5.0
"""Seconds between two tries to reach the members that are not connected."""


def main() -> None:
    """Join, and write the marker when all is here."""
    spec: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    session = libtorrent.session({"listen_interfaces": f"0.0.0.0:{spec['port']}", **spec["settings"]})
    parameters = libtorrent.add_torrent_params()
    parameters.ti = libtorrent.torrent_info(spec["torrent"])
    parameters.save_path = spec["folder"]
    parameters.url_seeds = [spec["web"]] if spec["web"] else []
    handle = session.add_torrent(parameters)
    tried = 0.0
    while True:
        if time.monotonic() - tried > AGAIN:
            tried = time.monotonic()
            connect(handle, spec["peers"])
        if handle.status().is_seeding:
            Path(spec["marker"]).touch()
        time.sleep(PAUSE)


def connect(handle: Any, peers: list[list[Any]]) -> None:
    """Ask libtorrent to connect to those it is not connected to."""
    connected = {peer.ip[0] for peer in handle.get_peer_info()}
    for address, port in peers:
        if address not in connected:
            handle.connect_peer((address, port))


if __name__ == "__main__":
    main()
