"""A model of nft that reads the table of the drops and judges one packet; it refuses words that it does not know."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Packet:
    """The first packet of a TCP connection, or a reply, as the hook prerouting sees it."""

    source: str
    to: str
    port: int
    interface: str = "eth0"
    local: bool = True
    """Whether the destination is an address of the host's."""
    out: str = "docker0"
    """The interface that leads to the destination."""
    reply: bool = False

    @property
    def version(self) -> int:
        return ipaddress.ip_address(self.source).version


MATCHES = (
    r"iifname \{ (?P<iifname>[^}]+) \}",
    r"ct direction (?P<reply>reply)",
    r"fib daddr type (?P<local>local)",
    r'fib daddr oifname "(?P<out>[^"]+)"',
    r"ip6? daddr (?P<to>\S+)",
    r"tcp dport (?P<port>[0-9-]+)",
    r"(?P<family>ip6?) saddr != \{ (?P<sources>[^}]+) \}",
    r"meta nfproto ipv(?P<version>[46])",
)
TAIL = re.compile(r'(?P<verdict>accept|drop)(?: comment "[^"]+")?')


def verdict(table: str, packet: Packet) -> str:
    """Return what the table does with a packet: `drop`, or `accept`, which is also its policy."""
    rules = [row.strip() for row in table.splitlines() if TAIL.search(row) and "policy" not in row]
    return next((found for rule in rules if (found := _judged(rule, packet))), "accept")


def _judged(rule: str, packet: Packet) -> str:
    """Return the verdict of a rule; nothing when it does not match."""
    while not (end := TAIL.fullmatch(rule)):
        found = next((match for pattern in MATCHES if (match := re.match(pattern, rule))), None)
        assert found, f"a word that this model of nft does not know: {rule}"
        if not _matches(found.groupdict(), packet):
            return ""
        rule = rule[found.end() :].lstrip()
    return end["verdict"]


def _matches(words: dict[str, str], packet: Packet) -> bool:
    match words:
        case {"iifname": names}:
            return f'"{packet.interface}"' in names.split(", ")
        case {"reply": _}:
            return packet.reply
        case {"local": _}:
            return packet.local
        case {"out": name}:
            return packet.out == name
        case {"to": network}:
            return _within(packet.to, network)
        case {"port": text}:
            first, _, last = text.partition("-")
            return int(first) <= packet.port <= int(last or first)
        case {"family": family, "sources": text}:
            same = packet.version == (4 if family == "ip" else 6)
            return same and not any(_within(packet.source, network) for network in text.split(", "))
        case {"version": version}:
            return packet.version == int(version)
    raise AssertionError(words)


def _within(address: str, network: str) -> bool:
    return ipaddress.ip_address(address) in ipaddress.ip_network(network, strict=False)
