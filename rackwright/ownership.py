"""The record, on the host, of what exists there because of us: the base of teardown (DECISIONS 23)."""

from __future__ import annotations

import json
from collections.abc import Iterable

from rackwright.change import Owned, WriteFile
from rackwright.concern import Concern
from rackwright.errors import ReadingError
from rackwright.paths import OWNED
from rackwright.reading import files
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
            raise ReadingError(_other_version(version))
        return frozenset(Owned(entry["kind"], entry["name"]) for entry in entries)
    except (ValueError, KeyError, TypeError) as error:
        raise ReadingError(
            f"{OWNED} is not readable ({error}); restore it, or move it away to start a new record"
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


RECORD: Concern[None, frozenset[Owned]] = Concern(
    name="ownership",
    read=_read,
    parse=parse_record,
    wanted=lambda _settings, _reading: None,
    changes=lambda _wanted, _seen: [],
)
