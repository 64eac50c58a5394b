"""A host's slice of a run's record: how the run began, its phases, and what became of this host. Pure.

A slice is a few lines of the record itself, so what resumes from it needs no other rules. It holds no text that a
host or an engine has printed, and no secret: the record has masked those.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from rackwright.messages import printable_values
from rackwright.record.journal import Event
from rackwright.record.record import BY_HAND, FORWARD

MOST = 256 * 1024
"""Bytes of a slice. One of a larger run is empty: its record then is all there is."""
RUN_NAME = r"^\d{8}-\d{6}-[A-Za-z0-9_.-]{1,80}$"
"""A run's name becomes a file's on the machine that resumes it."""

Releases = dict[str, dict[str, str]]


class _Kept(BaseModel):
    """The fields of an event that are kept; its other fields are left out."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, defer_build=True)
    time: str = ""


class _Process(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, defer_build=True)
    machine: str
    boot: str | None = None
    pid: int
    started: int | None = None


class _Begin(_Kept):
    kind: Literal["begin"]
    run: str = Field(pattern=RUN_NAME)
    who: str
    what: str
    purpose: str
    inventory: str
    hosts: list[str]
    process: _Process
    deploy: str | None = None
    data: dict[str, Any] | None = None
    plain: bool | None = None
    to: str | None = None
    skip_offline: Any = None
    back: Releases | None = None
    earlier: Releases | None = None
    first: list[str] | None = None
    hurt: list[str] | None = None
    resumes: str | None = None


class _Phase(_Kept):
    kind: Literal["phase"]
    name: str


class _Host(_Kept):
    kind: Literal["host"]
    host: str
    state: str
    before: dict[str, str] | None = None


class _Target(_Kept):
    kind: Literal["target"]
    host: str
    to: dict[str, str]


class _Failure(_Kept):
    kind: Literal["failure"]
    host: str
    cause: str
    check: str
    wave: int


_Event = Annotated[_Begin | _Phase | _Host | _Target | _Failure, Field(discriminator="kind")]
_EVENT: TypeAdapter[_Begin | _Phase | _Host | _Target | _Failure] = TypeAdapter(_Event)


@dataclass(frozen=True)
class Slice:
    """One host's slice of a run."""

    run: str
    begin: Event
    events: tuple[Event, ...]
    """The others, in their order."""


def slice_of(run: str, root: Path, events: Iterable[Event], host: str) -> str | None:
    """Return the slice of a host, as its file has it; None for a run of a kind that hosts keep nothing of.

    run: the run's name. root: the site's folder; paths of its files are relative to it, as every machine has its own.
    """
    found = list(events)
    begin = next((event for event in found if event["kind"] == "begin"), None)
    if begin is None or not is_kept(begin):
        return None
    first = _retained({**begin, "run": run, **_from_site(begin, root)})
    if first is None:
        return None
    retained = [first, *(one for event in found if _is_of(event, host) and (one := _retained(event)) is not None)]
    text = "".join(f"{json.dumps(one)}\n" for one in retained)
    return text if len(text.encode()) <= MOST else ""


def is_kept(begin: Mapping[str, Any]) -> bool:
    """Return whether hosts keep a slice of such a run: what any other was is done by the same command again."""
    return begin.get("purpose") in (FORWARD, BY_HAND) or bool(begin.get("plain"))


def parse_slice(text: str, host: str) -> Slice | None:
    """Read a host's answer as its slice. None when it has none, or none that makes sense.

    What a host says is data: events of other hosts, unknown fields and lines that were cut are left out.
    """
    events = [event for row in text.split("\n") if (event := _parsed(row)) is not None]
    if not events or events[0]["kind"] != "begin" or not is_kept(events[0]):
        return None
    begin, *others = events
    return Slice(begin.pop("run"), begin, tuple(one for one in others if _is_of(one, host)))


def _is_of(event: Event, host: str) -> bool:
    return event["kind"] == "phase" or (event["kind"] != "begin" and event.get("host") == host)


def _parsed(row: str) -> Event | None:
    try:
        return _retained(json.loads(row))
    except (ValueError, RecursionError):
        return None


def _retained(event: Any) -> Event | None:
    try:
        found = _EVENT.validate_python(event)
    except (ValidationError, RecursionError):
        return None
    retained: Event = printable_values(found.model_dump(exclude_none=True))
    return retained


def _from_site(begin: Mapping[str, Any], root: Path) -> dict[str, str]:
    places = (root, root.resolve())
    return {key: _shown(begin[key], places) for key in ("inventory", "deploy") if key in begin}


def _shown(path: str, places: Sequence[Path]) -> str:
    inside = [Path(path).relative_to(folder) for folder in places if Path(path).is_relative_to(folder)]
    return str(inside[0]) if inside else path
