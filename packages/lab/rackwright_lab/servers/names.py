"""The lab's name server: the real names of registry, hub and mirrors lead to the lab, all others resolve as before.

Hosts have these names in /etc/hosts too; their containers ask this server.
"""

from __future__ import annotations

from collections.abc import Mapping

from rackwright_lab.machine import inherited
from rackwright_lab.servers.server import Server


def start(server: Server, names: Mapping[str, str]) -> None:
    """Answer for `names` (name to IPv4 address); ask this machine's name servers for the others.

    Private addresses have no names but these: torch asks for those of its peers, and waits where no server answers.
    """
    records = [f"--host-record={name},{address}" for name, address in names.items()]
    onward = [f"--server={address}" for address in inherited.name_servers()]
    server.start(
        "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-hosts", "--no-resolv", "--user=root",
        "--pid-file=", "--bind-interfaces", "--except-interface=lo", f"--listen-address={server.address}",
        f"--port={server.port}", "--cache-size=1000", "--bogus-priv", "--log-facility=-", *records, *onward,
    )  # fmt: skip
