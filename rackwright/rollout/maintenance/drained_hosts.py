"""Drained hosts, whichever machine drained them: their own marks show it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rackwright.adapter.run.poll import poll
from rackwright.concerns.drained import MARK, Drained, parse_mark
from rackwright.hostside import host_script
from rackwright.loading.host import InventoryHost


def drained_hosts(entries: Sequence[InventoryHost]) -> dict[str, Drained]:
    """Return the names of drained hosts; unreadable hosts are not among them, since the run reports those itself."""
    script = host_script("drained_read", mark=MARK)
    found = {name: mark_in(reply.lines) for name, reply in poll(entries, lambda _: script).items()}
    return {name: mark for name, mark in found.items() if mark is not None}


def mark_in(lines: Iterable[str]) -> Drained | None:
    """Return the mark that the script printed, if any."""
    first, *others = [*lines, ""]
    return parse_mark("\n".join(others)) if first == "drained" else None
