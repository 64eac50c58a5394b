"""Check whether a non-member can connect to where the members' engines talk to each other. Pure.

What comes in there may run code: pickled objects travel between the ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rackwright.addresses import is_loopback

CODE = "RW2440"
"""Of the error when one gets through."""


@dataclass(frozen=True)
class Listening:
    """A place on a member at which its engine, or its lifeline, listens: the address to try, and the port."""

    host: str
    address: str
    port: int

    def __str__(self) -> str:
        return f"{self.host} {self.address}:{self.port}"


def listening(host: str, lines: Iterable[str], addresses: Sequence[str], clients: int | None) -> Iterator[Listening]:
    """Return the listening addresses of one member, each once.

    lines: what steps/host/member_listeners.sh printed. addresses: by which the host is reached, for what listens on
    all of them. clients: the port that is meant for others; None on a member that serves none.
    """
    found = dict.fromkeys(pair for row in lines for pair in _places(row, addresses))
    yield from (Listening(host, address, port) for address, port in found if port != clients)


def _places(row: str, addresses: Sequence[str]) -> Iterator[tuple[str, int]]:
    kind, _, socket = row.partition(" ")
    address, _, port = socket.rpartition(":")
    address = address.strip("[]").partition("%")[0].removeprefix("::ffff:")
    if kind != "listens" or not port.isdigit() or is_loopback(address):
        return
    for one in addresses if address in ("*", "0.0.0.0", "::") else (address,):
        yield one, int(port)


def in_words(opened: Sequence[tuple[Listening, str]], tried: int, by: Sequence[str]) -> str:
    """Return the outcome, for people. opened: addresses that answered, and to whom; by: the hosts that tried."""
    if not opened:
        return f"{tried} ports of the members' own, closed to {' and '.join(by)}"
    answers = "; ".join(f"{listener} answers {who}" for listener, who in opened)
    return f"{answers}: what comes in there may run code"
