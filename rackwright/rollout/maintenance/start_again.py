"""Check before endpoints stop that hosts could start them again: a start needs more than a running container."""

from __future__ import annotations

from collections.abc import Sequence

from rackwright.adapter.run.poll import poll
from rackwright.concerns.endpoint.switch.job import start_again_script
from rackwright.loading.host import InventoryHost
from rackwright.messages import printable

LONGEST = 600
"""Characters of one host's reason."""


def doubtful_starts(entries: Sequence[InventoryHost], by: str) -> list[str]:
    """Return a sentence for each endpoint that its host could not start again; a host that cannot be read has none.

    A drain is the way out of most of it, so it is a warning and never a refusal. by: as `start_again_script` has it.
    """
    script = start_again_script(by)
    replies = poll(entries, lambda _: script)
    found = ((host, row.partition(" ")) for host, reply in replies.items() for row in reply.lines if row)
    return [
        f"{host} could not start {endpoint} again: {printable(lacks, longest=LONGEST)}"
        for host, (endpoint, _, lacks) in found
        if lacks
    ]
