"""Durations of a switch at this site, from the records of its last runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from rackwright.record.journal import read_record
from rackwright.record.states import RunState

RUNS = 10
"""Records that are looked into, the newest."""


def switch_time(records: list[Path]) -> float | None:
    """Return the seconds of a switch in the newest of these records, the oldest first; None before the first."""
    return typical_switch(read_record(path) for path in records[-RUNS:])


def typical_switch(records: Iterable[Iterable[Mapping[str, Any]]]) -> float | None:
    """Return seconds that a switch has taken in these runs, from its begin to its proof; None before the first."""
    took = [seconds for events in records for seconds in _switches(events)]
    return median(took) if took else None


def _switches(events: Iterable[Mapping[str, Any]]) -> Iterable[float]:
    begun: dict[str, datetime] = {}
    for event in events:
        if event["kind"] == "host" and event.get("state") == RunState.SWITCHING:
            begun[event["host"]] = datetime.fromisoformat(event["time"])
        elif event["kind"] == "host" and event.get("state") == RunState.SWITCHED and event["host"] in begun:
            yield (datetime.fromisoformat(event["time"]) - begun.pop(event["host"])).total_seconds()
