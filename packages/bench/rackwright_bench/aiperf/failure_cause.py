"""The cause of aiperf's end, by its log: one that a person can act on, in one line. Pure.

Its panel of exit errors has the reason of each service, wrapped over lines: first the one that failed, and last its
controller, which only says that an operation failed. Without a panel the log's first error is nearest to the cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rackwright.messages import printable

LONGEST = 300
FRAME = "│╭╮╰╯─ "
PANEL = "Exit Errors"
FIELD = re.compile(r"(?:• )?(Services?|Operation|Error|Reason|Cause|Details): (.*)")
LOGGED = re.compile(r"[\d:.]+ +(?:ERROR|CRITICAL) +(.+?)(?: \([\w.]+:\d+\))?$")
WRAPPER = "failed to perform operation"
"""In what the controller says of an operation that failed elsewhere."""


def failure_cause(log: str) -> str:
    """Return the cause in a log, or the last line in it with an error, or its last line."""
    rows = log.splitlines()
    causes = (*_reasons(rows), *_logged(rows))
    best = next((cause for cause in causes if WRAPPER not in cause.lower()), "")
    return printable(best or (causes[-1] if causes else _last_error(rows)), longest=LONGEST)


def _reasons(rows: Sequence[str]) -> Iterator[str]:
    """Yield the reasons and causes of the panel, each in one line."""
    name, words = "", list[str]()
    for row in (*_panel(rows), "Error: "):
        if (field := FIELD.fullmatch(row)) is None:
            words.append(row)
            continue
        if name in ("Reason", "Cause"):
            yield " ".join(filter(None, words))
        name, words = field[1], [field[2]]


def _panel(rows: Sequence[str]) -> Iterator[str]:
    inside = False
    for row in rows:
        inside = inside or (row.startswith("╭") and PANEL in row)
        if inside and row.startswith("╰"):
            return
        if inside and row.startswith("│"):
            yield row.strip(FRAME)


def _logged(rows: Sequence[str]) -> Iterator[str]:
    yield from (found[1] for row in rows if (found := LOGGED.fullmatch(row.strip())))


def _last_error(rows: Sequence[str]) -> str:
    printed = [text for row in rows if (text := row.strip(FRAME))]
    errors = [text for text in printed if "error" in text.lower()]
    return (errors or printed or ["it printed nothing"])[-1]
