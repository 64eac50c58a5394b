"""pyinfra's lines without those that say that nothing changed, so that an unchanged run fits on one screen.

A filter of `logging` on pyinfra's own logger: nothing in pyinfra is replaced. What it does
not recognize passes, so other words in another version make a run longer and lose nothing. `-v` shows every line.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click
import gevent
from pyinfra import logger

from rackwright.messages import SLOW, counted
from rackwright.tables import Column, drawn, shown_width

INDENT = 4
"""Blanks that pyinfra puts before each line that is not a header."""
TOTAL = "Grand total"
_HEADER = re.compile(r"--> \S")
_STARTING = re.compile(r"--> Starting .*operation: ")
_IDLE = re.compile(r"\[[^\]]*\]\s+(?:nested\s+)?(?:No changes|Skipped)")
_RESULTS, _CHANGES = "--> Results:", "--> Detected changes:"
_CELLS = re.compile(r"\s{2,}")
COLUMNS = (Column("Operation", 1, 30), *(Column(head) for head in ("Hosts", "Success", "Error", "No Change")))


class ShortOutput(logging.Filter):
    """Holds each operation's header until a line follows it, and tables until they are whole.

    show: prints a record that was held.
    """

    def __init__(self, show: Callable[[logging.LogRecord], None]) -> None:
        super().__init__()
        self._show = show
        self._header: logging.LogRecord | None = None
        self._timer: Any = None
        self._rows: list[logging.LogRecord] | None = None
        """Rows of the table of results, as long as it is not whole."""
        self._in_changes = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is shown now."""
        text = click.unstyle(record.getMessage()).strip()
        if self._rows is not None and not _HEADER.match(text):
            self._rows.append(record)
            if text.startswith(TOTAL):
                self._show_results()
            return False
        self._release_rows()
        if _STARTING.match(text):
            self._hold(record)
            return False
        if _IDLE.fullmatch(text) or (
            self._in_changes and not _HEADER.match(text) and not self._is_change(record, text)
        ):
            return False
        if _HEADER.match(text):
            self._in_changes = text == _CHANGES
            self._rows = [] if text == _RESULTS else None
        self._drop() if text in (_RESULTS, _CHANGES) else self._release()
        return True

    # -- headers of operations

    def _hold(self, record: logging.LogRecord) -> None:
        self._drop()
        self._header = record
        # Where a step takes long, its name says what is waited for.
        self._timer = gevent.spawn_later(SLOW, self._release)

    def _drop(self) -> None:
        if self._timer is not None and self._timer is not gevent.getcurrent():
            self._timer.kill(block=False)
        self._header = self._timer = None

    def _release(self) -> None:
        header = self._header
        self._drop()
        if header is not None:
            self._show(header)

    # -- tables

    def _is_change(self, record: logging.LogRecord, text: str) -> bool:
        """Return whether a row of the detected changes has any; it is then shortened to its sentence and its hosts."""
        name, *cells = _CELLS.split(text)
        if len(cells) != len(("Change", "Conditional Change")) or name == "Operation":
            return False
        hosts = [cell for cell in cells if cell != "-"]
        record.msg, record.args = f"{name}: {'; '.join(hosts)}", ()
        return bool(hosts)

    def _show_results(self) -> None:
        records, self._rows = self._rows or [], None
        rows = [_CELLS.split(click.unstyle(record.getMessage()).strip()) for record in records[1:]]
        if any(len(row) != len(COLUMNS) for row in rows):
            records = [*records]
            for record in records:
                self._show(record)
            return
        width = shown_width()
        for text in short_table(rows, width and width - INDENT):
            self._show(logging.makeLogRecord({**records[0].__dict__, "msg": text, "args": ()}))

    def _release_rows(self) -> None:
        """Show what was held of a table that has no end."""
        records, self._rows = self._rows or [], None
        for record in records:
            self._show(record)


def short_table(rows: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    """Yield the table of results without operations that changed nothing anywhere. width: columns, None without end."""
    *operations, total = rows
    shown = [row for row in operations if row[2:4] != ["-", "-"]]
    yield from drawn(COLUMNS, [list(row) for row in (*shown, total)], width).splitlines()
    if idle := len(operations) - len(shown):
        yield f"{counted(idle, 'operation')} changed nothing; pyinfra -v lists them"


_FILTER = ShortOutput(logger.callHandlers)


def shorten_output() -> None:
    """Leave out of pyinfra's lines what says that nothing changed, from now on. Safe to repeat."""
    # A logger has each filter once.
    logger.addFilter(_FILTER)
