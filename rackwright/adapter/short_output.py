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
from pyinfra.context import ctx_state

from rackwright.messages import SLOW, counted
from rackwright.tables import Column, drawn, shown_width

INDENT = 4
"""Blanks that pyinfra puts before each line that is not a header."""
TOTAL = "Grand total"
_HEADER = re.compile(r"--> \S")
_STARTING = re.compile(r"--> Starting .*operation: ")
_IDLE = re.compile(r"\[[^\]]*\]\s+(?:(?:nested\s+)?(?:No changes|Skipped)|Ready: .*)")
_RESULTS, _CHANGES = "--> Results:", "--> Detected changes:"
_CHANGED = re.compile(r"-|\d+ \(.*\)|(?:Conditional )?Change")
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
        is_header = bool(_HEADER.match(text))
        if self._rows is not None and not is_header:
            self._add_row(record, text)
            return False
        self._show_rows()
        if _STARTING.match(text):
            self._hold(record)
            return False
        if is_header:
            self._begin_part(record, text)
            return True
        if _IDLE.fullmatch(text) or (self._in_changes and _is_without_change(record, text)):
            return False
        self._release()
        return True

    def _begin_part(self, record: logging.LogRecord, text: str) -> None:
        """Begin what follows a header that is not a step's."""
        self._drop() if text in (_RESULTS, _CHANGES) else self._release()
        self._in_changes = text == _CHANGES
        self._rows = [] if text == _RESULTS else None
        if self._in_changes and not _changes_in(ctx_state.get()):
            record.msg, record.args = f"{_CHANGES} none", ()

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

    def _add_row(self, record: logging.LogRecord, text: str) -> None:
        """Add a row of the results, the last of which ends the table."""
        rows = self._rows = [*(self._rows or []), record]
        cells = [_CELLS.split(click.unstyle(row.getMessage()).strip()) for row in rows]
        if text.startswith(TOTAL) and all(len(row) == len(COLUMNS) for row in cells):
            width = shown_width()
            counted_rows = _with_own_errors(cells[1:], _errors(ctx_state.get()))
            texts = short_table(counted_rows, width and width - INDENT)
            self._rows = [logging.makeLogRecord({**record.__dict__, "msg": one, "args": ()}) for one in texts]
            self._show_rows()

    def _show_rows(self) -> None:
        """Show what is held of a table: the short one, or a table as it is that has another form."""
        rows, self._rows = self._rows or [], None
        for record in rows:
            self._show(record)


def _is_without_change(record: logging.LogRecord, text: str) -> bool:
    """Return whether a row of the detected changes has none; one that has any becomes its sentence and its hosts."""
    name, *cells = _CELLS.split(text)
    if len(cells) != 2 or not all(map(_CHANGED.fullmatch, cells)):
        return False
    hosts = [cell for cell in cells if cell.startswith(tuple("0123456789"))]
    record.msg, record.args = f"{name}: {'; '.join(hosts)}", ()
    return not hosts


def _changes_in(state: Any) -> int:
    """Return how many operations found something to change, on all hosts together."""
    return sum(state.get_meta_for_host(host).ops_change for host in state.inventory)


def _errors(state: Any) -> list[int]:
    """Return of how many hosts each operation failed, in their order.

    pyinfra counts a host that has failed once as an error of every operation after that, too.
    """
    return [sum(_has_failed(state.ops[host].get(one)) for host in state.inventory) for one in state.get_op_order()]


def _has_failed(of_host: Any) -> bool:
    return of_host is not None and of_host.operation_meta.is_complete() and of_host.operation_meta.did_error()


def _with_own_errors(rows: Sequence[Sequence[str]], errors: Sequence[int]) -> list[list[str]]:
    """Return the rows with these errors; where there are others, as they are."""
    if len(errors) != len(rows) - 1:
        return [list(row) for row in rows]
    return [[*row[:3], str(number or "-"), row[4]] for row, number in zip(rows, [*errors, sum(errors)], strict=True)]


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
