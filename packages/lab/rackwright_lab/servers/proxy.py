"""The lab's forward proxy, a real one (tinyproxy): the way out of a host that has no other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rackwright_lab.servers.registry import TOKEN_PORT
from rackwright_lab.servers.server import Server

PORT = 3128
# It must find what the lab answers for, so it asks the lab's name server; the mount is its own and goes with it.
LAUNCH = 'mount --bind "$1" "$(readlink -f /etc/resolv.conf)" && exec tinyproxy -d -c "$2"'
ASKED = re.compile(r"Request \(file descriptor \d+\): (\S+) (\S+) HTTP")


@dataclass(frozen=True)
class Proxy:
    """One proxy of a lab; `name_server` is the lab's."""

    server: Server
    folder: Path
    name_server: str

    @property
    def url(self) -> str:
        """What the setting `proxy.http` takes."""
        return f"http://{self.server.address}:{self.server.port}"

    def start(self) -> None:
        """Serve every client that reaches it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        resolv, settings = self.folder / "resolv.conf", self.folder / "tinyproxy.conf"
        resolv.write_text(f"nameserver {self.name_server}\n")
        settings.write_text(
            f"Listen {self.server.address}\nPort {self.server.port}\nTimeout 600\nMaxClients 500\nLogLevel Connect\n"
            f"ConnectPort 443\nConnectPort {TOKEN_PORT}\nDisableViaHeader Yes\n"
        )
        self.server.start("unshare", "--mount", "sh", "-c", LAUNCH, "-", resolv, settings)

    def requests(self) -> Sequence[tuple[str, str]]:
        """Return every request since it started: method, and the address or HOST:PORT wanted."""
        log = self.server.log
        return ASKED.findall(log.read_text(errors="replace")) if log.exists() else ()
