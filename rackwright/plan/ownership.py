"""The record, on the host, of what exists there because of us: the base of teardown (DECISIONS 23)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from rackwright.messages import ReadingError
from rackwright.paths import OWNED
from rackwright.plan.change import Owned, Step, WriteFile
from rackwright.plan.concern import Concern
from rackwright.plan.reading import files
from rackwright.settings.model import HostSettings

VERSION = 1
"""Format of the record."""


def _read(_: HostSettings) -> str:
    return f"show {OWNED}"


def parse_record(output: str) -> frozenset[Owned]:
    """The record as it lies on the host; empty when there is none. Raises ReadingError when it is broken."""
    text = files(output).get(OWNED)
    if text is None:
        return frozenset()
    try:
        found = json.loads(text)
        version, entries = found["version"], found["owned"]
        if version != VERSION:
            raise ReadingError(_other_version(version), code="RW0503")
        return frozenset(Owned(entry["kind"], entry["name"]) for entry in entries)
    except (ValueError, KeyError, TypeError) as error:
        raise ReadingError(
            f"{OWNED} is not readable ({error}); restore it, or move it away to start a new record", code="RW0504"
        ) from error


def _other_version(found: object) -> str:
    return (
        f"{OWNED} has format {found}, and this Rackwright reads {VERSION}: another version works on this host; "
        "next: pip install --upgrade rackwright"
    )


def render_record(owned: Iterable[Owned]) -> WriteFile:
    """The step that writes the record, sorted so that equal records are equal files."""
    entries = [{"kind": entry.kind, "name": entry.name} for entry in sorted(owned)]
    return WriteFile(OWNED, json.dumps({"version": VERSION, "owned": entries}, indent=1) + "\n", mode="0600")


class OwnershipRecord:
    """The ownership record of one host, as the host has acknowledged it: never ahead of the file there."""

    def __init__(self, owned: frozenset[Owned]) -> None:
        self.owned = owned
        self._certain = True

    def add(self, names: Iterable[Owned], do: Callable[[Step], None]) -> None:
        """Enter what is about to be made; `do` carries a step out, or raises."""
        self._write(self.owned | frozenset(names), do)

    def drop(self, names: Iterable[Owned], do: Callable[[Step], None]) -> None:
        """Strike what is gone from the host."""
        self._write(self.owned - frozenset(names), do)

    def _write(self, after: frozenset[Owned], do: Callable[[Step], None]) -> None:
        if after == self.owned and self._certain:
            return
        # A write whose answer was lost may lie on the host or not, so the next one is never left out.
        self._certain = False
        do(render_record(after))
        self.owned, self._certain = after, True


RECORD: Concern[None, frozenset[Owned]] = Concern(
    name="ownership",
    read=_read,
    parse=parse_record,
    wanted=lambda _settings, _reading: None,
    changes=lambda _wanted, _seen: [],
    takes=frozenset(),
)
