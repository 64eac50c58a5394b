"""Which hosts somebody has drained, whatever machine that was done from: their own marks say it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rackwright.adapter.run.poll import poll
from rackwright.concerns.drained import MARK, Drained, parse_mark
from rackwright.hostside import host_script
from rackwright.loading.host import InventoryHost


def drained_hosts(entries: Sequence[InventoryHost]) -> dict[str, Drained]:
    """The drained ones among hosts, by name; one that cannot be read is not among them: a run says that itself."""
    script = host_script("drained_read", mark=MARK)
    found = {name: mark_in(reply.lines) for name, reply in poll(entries, lambda _: script).items()}
    return {name: mark for name, mark in found.items() if mark is not None}


def mark_in(lines: Iterable[str]) -> Drained | None:
    """What the script printed: the mark, if any."""
    first, *rest = [*lines, ""]
    return parse_mark("\n".join(rest)) if first == "drained" else None
