"""The record, on the host, of all that exists there because of Rackwright: the basis of teardown (DECISIONS 23)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from rackwright.messages import ReadingError
from rackwright.paths import OWNED
from rackwright.plan.change import Owned, Step, WriteFile
from rackwright.plan.concern import Concern
from rackwright.plan.reading import files
from rackwright.settings.host_settings import HostSettings

VERSION = 1
"""Format of the record."""


def _read(_: HostSettings) -> str:
    return f"show {OWNED}"


def parse_record(output: str) -> frozenset[Owned]:
    """Parse the host's record; empty when it is missing. Raises ReadingError when it is broken."""
    text = files(output).get(OWNED)
    if text is None:
        return frozenset()
    try:
        found = json.loads(text)
        version, entries = found["version"], found["owned"]
        if type(version) is not int or version < VERSION:
            raise ValueError(f"its format is {version!r}")
        _refuse_newer(version)
        return frozenset(Owned(entry["kind"], entry["name"]) for entry in entries)
    except (ValueError, KeyError, TypeError) as error:
        raise ReadingError(
            f"{OWNED} is not readable ({error}); restore it, or move it away to start a new record", code="RW0504"
        ) from error


def _refuse_newer(found: int) -> None:
    """Raise ReadingError for a record of a newer format."""
    if found > VERSION:
        formats = f"{OWNED} has format {found}, this one reads {VERSION}"
        raise ReadingError(
            f"a newer Rackwright wrote this host's record: {formats}; next: pip install --upgrade CHECKOUT, the newer "
            "one or its wheel",
            code="RW0503",
        )


def render_record(owned: Iterable[Owned]) -> WriteFile:
    """Return the step that writes the record, sorted so that equal records are equal files."""
    entries = [{"kind": entry.kind, "name": entry.name} for entry in sorted(owned)]
    return WriteFile(OWNED, json.dumps({"version": VERSION, "owned": entries}, indent=1) + "\n", mode="0600")


@dataclass
class OwnershipRecord:
    """The ownership record of one host: its entries, and those that a write without an answer may have added."""

    owned: frozenset[Owned]
    certain: bool = True

    def writes(self, names: frozenset[Owned]) -> list[Step]:
        """Return the step that makes these its entries; none when they certainly are."""
        return [] if names == self.owned and self.certain else [render_record(names)]


RECORD: Concern[None, frozenset[Owned]] = Concern(
    name="ownership",
    read=_read,
    parse=parse_record,
    wanted=lambda _settings, _reading: None,
    changes=lambda _wanted, _seen: [],
    takes=frozenset(),
)
