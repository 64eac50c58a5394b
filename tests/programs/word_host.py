"""A host's word as the real script, below a folder of the test: its endpoints a and b serve what was proven."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rackwright.concerns.watch.word import SCRIPT, word_files
from rackwright.settings.host_settings import HostSettings

GATEWAY_ADDRESS = "10.0.0.5"


def word_host(folder: Path, settings: HostSettings) -> Path:
    """Lay out the endpoints, the marks and the notes, and the script `word` that reads them; returns the folder."""
    homes = folder / "state/endpoints"
    for name in ("a", "b"):
        (homes / name / "releases/1").mkdir(parents=True)
        (homes / name / "current").symlink_to("releases/1")
        (homes / name / "proven").symlink_to("releases/1")
        (folder / f"invocation:rackwright-{name}.service").symlink_to("x")
    (folder / "notes").mkdir()
    (folder / "state/marks").mkdir()
    systemctl = folder / "systemctl"
    systemctl.write_text("#!/bin/sh\necho active\n")
    systemctl.chmod(0o755)
    text = word_files(settings)[SCRIPT].replace("/var/lib/rackwright", f"{folder}/state")
    text = text.replace("/run/systemd/units", str(folder)).replace("/run/rackwright-word", f"{folder}/notes")
    (folder / "word").write_text(text.replace("PATH=", f"PATH={folder}:"))
    return folder


@contextmanager
def asking(folder: Path, address: str = GATEWAY_ADDRESS) -> Iterator[tuple[socket.socket, subprocess.Popen[bytes]]]:
    """Yield an asker's end of a connection, and the process that answers it; both are gone afterwards."""
    ours, hosts = socket.socketpair()
    with ours:
        with hosts:
            words, environment = ["bash", f"{folder}/word"], {"REMOTE_ADDR": address}
            answering = subprocess.Popen(words, stdin=hosts.fileno(), stdout=hosts.fileno(), env=environment)
        with answering:
            ours.settimeout(30)
            yield ours, answering
