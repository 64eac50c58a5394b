"""A server of the lab, as a process of this machine in a control group of the lab."""

from __future__ import annotations

import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from rackwright_lab.machine import cgroups
from rackwright_lab.machine.shell import LabError

LAUNCH = 'echo $$ > "$0/cgroup.procs" && exec "$@"'


@dataclass(frozen=True)
class Server:
    """One server: its name, the lab's tag, the address and port it listens on, and its log."""

    name: str
    tag: str
    address: str
    log: Path
    port: int = 443

    @property
    def group(self) -> Path:
        """Its control group."""
        return cgroups.unified_root() / self.tag / f"server-{self.name}"

    @property
    def is_on(self) -> bool:
        """Whether its process lives."""
        return self.group.exists() and bool(cgroups.members(self.group))

    def start(self, *argv: str | Path, seconds: float = 120) -> None:
        """Start it and wait until it listens. Raises LabError with the end of its log when it does not."""
        group = cgroups.make(self.tag, f"server-{self.name}")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            subprocess.Popen(
                ["setsid", "--fork", "sh", "-c", LAUNCH, str(group), *map(str, argv)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
            ).wait()
        self._wait_listening(seconds)

    def _wait_listening(self, seconds: float) -> None:
        begun = time.monotonic()
        while not self._listens():
            waited = time.monotonic() - begun
            if waited > seconds or (waited > 1 and not self.is_on):
                tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-12:])
                raise LabError(f"the lab's {self.name} server does not listen; the end of {self.log}:\n{tail}")
            time.sleep(0.05)

    def _listens(self) -> bool:
        try:
            with socket.create_connection((self.address, self.port), timeout=2):
                return True
        except OSError:
            return False

    def stop(self) -> None:
        """End it; its port refuses connections then."""
        cgroups.end(self.group)
