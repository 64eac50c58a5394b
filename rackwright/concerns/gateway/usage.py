"""Usage by client and model, summed on each gateway from its access log. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields

from rackwright.concerns.gateway.key_change import UNIT
from rackwright.hostside import host_script, host_text
from rackwright.messages import printable
from rackwright.plan.change import Shell

TAG = "rackwright-gateway"
"""Name under which HAProxy logs."""
PAIRS = 2000
"""Clients and models that have a row of their own on a gateway; further ones share one."""
LONGEST = 18
"""Digits of a sum that is believed."""


@dataclass(frozen=True)
class Usage:
    """Sums of one client and model."""

    requests: int = 0
    refused: int = 0
    """Answers 400 to 499."""
    failed: int = 0
    """Answers 500 to 599, and requests whose client left before an answer."""
    cut: int = 0
    """Answers that began well and did not end."""
    ms: int = 0
    """Milliseconds from the first byte of a request to the last of its answer."""
    bytes_in: int = 0
    bytes_out: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return the sums of both."""
        return Usage(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))


Pair = tuple[str, str]
"""A client and a model."""


@dataclass(frozen=True)
class HostUsage:
    """The sums of one gateway."""

    rows: dict[Pair, Usage]
    unread: int
    """Rows of the log that are not what a gateway writes."""
    lacks: int
    """Seconds at the beginning of the wanted time that the host's journal no longer has."""


def usage_script(seconds: int) -> Shell:
    """Return the script that sums the last seconds."""
    program = host_text("usage_sum.awk")
    script = host_script("usage_sum", seconds=seconds, unit=UNIT, tag=TAG, most=PAIRS, program=program)
    return Shell(script, timeout=600)


def parse_usage(lines: Sequence[str]) -> HostUsage | None:
    """Return what the script has printed; None where it did not come to its end."""
    words = [text.split("\t") for text in lines]
    ends = [row[1] for row in words if row[0] == "unread" and len(row) == 2]
    if len(ends) != 1 or not _is_sum(ends[0]):
        return None
    begins = [row[1:] for row in words if row[0] == "begins" and len(row) == 3 and all(map(_is_sum, row[1:]))]
    lacks = max(0, int(begins[0][0]) - int(begins[0][1])) if begins else 0
    return HostUsage(dict(_rows(words)), int(ends[0]), lacks)


def _rows(words: Iterable[Sequence[str]]) -> Iterator[tuple[Pair, Usage]]:
    for row in words:
        if row[0] == "row" and len(row) == 3 + len(fields(Usage)) and all(map(_is_sum, row[3:])):
            yield (printable(row[1]), printable(row[2])), Usage(*map(int, row[3:]))


def _is_sum(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= LONGEST


def summed(hosts: Iterable[HostUsage]) -> dict[Pair, Usage]:
    """Return the sums over gateways, sorted by client and model."""
    found: dict[Pair, Usage] = {}
    for host in hosts:
        for pair, usage in host.rows.items():
            found[pair] = found.get(pair, Usage()) + usage
    return dict(sorted(found.items()))
