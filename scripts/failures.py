"""Writes docs/how-to/when-a-deploy-failed.md from the table of refusals, rackwright/data/refusals/.

Run it with `python scripts/failures.py`; tests/unit/test_refusals.py compares the page with what it would write.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rackwright.refusals import KnownLine, Refusal, RefusalRange, lines_of, sections

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "when-a-deploy-failed.md"
HEAD = """\
# When a deploy failed

<!-- Made from rackwright/data/refusals/ by `python scripts/failures.py`; do not edit it. -->

Nothing is lost: every change may be repeated, and the next run does what is missing. Read the red lines of the host. A
message begins with its code: find it below, or type `rackwright explain CODE`; fix, type the same command again. `…`
stands for names and numbers; where a cell is empty, the message says it all. The last lines of a run name the cause on
each host, and the command to type.

1. Which host, which step? The line `Starting operation: STEP` above the red ones.
2. Does anything still serve? `rackwright chat INVENTORY -- "Are you there?"`. A staging failure never
   touches what serves.
3. What did the host say? The last lines of its job are printed; more: [look at a host by hand](look-at-a-host.md).

Exit status 1 always means: not all was done. Hosts that are not named in red are as wanted, or were not reached yet.

The first two digits of a code are its subject, a heading below. Preflight's checks and the gate's rows are quoted by
their names. Lines below a code are the words of hosts, servers and SSH in such a message; lines without a code are
not errors of Rackwright, or only printed.
"""
FOOT = """\
pyinfra adds lines of its own, such as `Error: executed 0 commands` or `No hosts remaining!`. The reason is above them.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *(row for section in sections() for row in _section(section)), FOOT])


def _section(section: RefusalRange) -> Iterator[str]:
    yield f"## {section.heading}\n"
    yield "| code | message | what it means | next |\n|---|---|---|---|"
    for refusal in section.refusals:
        yield _refusal(refusal)
        yield from map(_entry, lines_of(section, refusal.code))
    yield from map(_entry, lines_of(section, ""))
    yield ""


def _refusal(refusal: Refusal) -> str:
    earlier = " (earlier versions)" if refusal.earlier else ""
    return _row(refusal.code, f"`{refusal.says}`{earlier}", refusal.means, refusal.next)


def _entry(entry: KnownLine) -> str:
    return _row(entry.code, entry.says, entry.means, entry.next)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())
    print(PAGE)


if __name__ == "__main__":
    main()
