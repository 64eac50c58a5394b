"""Marks that keep runs away from a host, whichever machine wrote them: an operator's drain, and a quarantine.

With them comes who asks whether the host's endpoints may be used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rackwright.adapter.run.poll import poll
from rackwright.concerns.drained import MARK, Drained, parse_mark
from rackwright.concerns.marks import MARKS, QUARANTINE, Mark, parse_mark_file
from rackwright.hostside import host_script
from rackwright.loading.host import InventoryHost
from rackwright.messages import printable
from rackwright.paths import WORD_NOTES
from rackwright.plan.reading import decode, pairs


@dataclass(frozen=True)
class GatewayQuestion:
    """A gateway's last question for an endpoint's word."""

    gateway: str
    """Its name, by which it asked."""
    endpoint: str
    ago: int
    """Seconds."""


@dataclass(frozen=True)
class HostMarks:
    """The marks of a host that was read."""

    drained: Drained | None = None
    quarantine: Mark | None = None
    keeps_marks: bool = False
    """False without a folder of marks: the host was set up again since the last one was written."""
    questions: tuple[GatewayQuestion, ...] = ()
    """The last question of each gateway for each endpoint that serves, since the host's boot."""


def marks_of(entries: Sequence[InventoryHost]) -> dict[str, HostMarks]:
    """Read both marks over one login; unreadable hosts are not among them, since the run reports those itself."""
    paths = {"drained": MARK, "quarantine": f"{MARKS}/{QUARANTINE}", "notes": WORD_NOTES}
    script = host_script("out_of_service_read", **paths)
    replies = poll(entries, lambda _: script)
    return {name: marks_in(reply.lines) for name, reply in replies.items() if not reply.trouble}


def marks_in(lines: Sequence[str]) -> HostMarks:
    """Return the marks that the script printed."""
    texts = {name: decode(text) for name, text in pairs("\n".join(lines)).items()}
    quarantine = texts.get(QUARANTINE)
    return HostMarks(
        parse_mark(texts.get("drained")),
        None if quarantine is None else parse_mark_file(QUARANTINE, quarantine),
        "marks" in lines,
        tuple(_questions(lines)),
    )


def _questions(lines: Iterable[str]) -> Iterator[GatewayQuestion]:
    for words in map(str.split, lines):
        match words:
            case ["asked", gateway, endpoint, ago] if ago.isascii() and ago.isdigit():
                yield GatewayQuestion(printable(gateway), printable(endpoint), int(ago[:9]))


def drained_in(marks: dict[str, HostMarks]) -> dict[str, Drained]:
    """Return the drained ones among these hosts."""
    return {name: one.drained for name, one in marks.items() if one.drained}


def drained_hosts(entries: Sequence[InventoryHost]) -> dict[str, Drained]:
    """Return the drained hosts, with their marks."""
    return drained_in(marks_of(entries))
