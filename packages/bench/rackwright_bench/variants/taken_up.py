"""Takes up a tune that was interrupted: trials that its record has whole count, if nothing is another since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackwright.messages import RackwrightError, SettingsError
from rackwright.record.journal import Event, append, read_record
from rackwright.record.record import record_of
from rackwright.rollout.resuming import refuse_living
from rackwright.settings.host_settings import EndpointSettings
from rackwright_bench.figures.figures import measured_of
from rackwright_bench.proven.shareable import DECISIVE
from rackwright_bench.record import CELL, ROUND, TRIAL, bench_record, parted
from rackwright_bench.variants.trials import Trials

TUNE = "tune"
"""Key of a record's first event: what the trials depend on."""


@dataclass(frozen=True)
class EarlierTune:
    """A run that is taken up, and its whole trials' events."""

    path: Path
    events: Sequence[Event]

    @property
    def conditions(self) -> Mapping[str, Any]:
        """The machine that it was measured on last; empty where nothing was."""
        return next((event for event in reversed(self.events) if event["kind"] == ROUND), {})


def print_of(endpoint: EndpointSettings) -> str:
    """Return a hash of what a variant's figures depend on."""
    values = endpoint.model_dump(mode="json", include={*DECISIVE, "gpus", "replicas", "hosts"})
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:16]


def earlier_tune(root: Path, run: str, wanted: Mapping[str, Any]) -> EarlierTune:
    """Return the tune of a run, or of the newest one for `last`. wanted: what its `tune` must say.

    Raises RackwrightError for another kind of run, for one that is under way, and where something is another now.
    """
    path = bench_record(root, run)
    events = read_record(path)
    begin = next((event for event in events if event["kind"] == "begin"), {})
    if TUNE not in begin:
        raise RackwrightError(
            f"--resume {run}: {path.stem} is not a tune; nothing was measured; next: rackwright runs", code="RW1594"
        )
    refuse_living(record_of(path.stem, events))
    if others := list(_others(begin[TUNE], wanted)):
        raise SettingsError(
            f"--resume {run}: not the same as in {path.stem}: {', '.join(others)}; nothing was measured; next: the "
            "command as it was, or without --resume",
            code="RW1564",
        )
    return EarlierTune(path, list(_whole(events)))


def _others(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is another: keys, and of the variants their names."""
    for key in now:
        if key != "variants" and then.get(key) != now[key]:
            yield key
    before, after = then.get("variants", {}), now["variants"]
    yield from (f"variant {name}" for name in {**before, **after} if before.get(name) != after.get(name))


def _whole(events: Sequence[Event]) -> Iterator[Event]:
    """Yield the events of trials that were measured to their end, or whose variant did not start."""
    trials = {(event["variant"], event["round"]) for event in events if event["kind"] == TRIAL}
    for event in events:
        is_whole = event["kind"] == CELL and (parted(event["name"])[0], event["round"]) in trials
        if is_whole or event["kind"] in (TRIAL, ROUND):
            yield event


def take_up(trials: Trials, earlier: EarlierTune, record: Path) -> int:
    """Add the earlier run's trials, and write them into the new record; returns their number.

    Raises RackwrightError for a record that is damaged.
    """
    cells: dict[tuple[str, int], dict[str, Any]] = {}
    try:
        for event in earlier.events:
            append(record, event["kind"], **{key: value for key, value in event.items() if key != "kind"})
            if event["kind"] == CELL and "measured" in event:
                variant, cell = parted(event["name"])
                cells.setdefault((variant, event["round"]), {})[cell] = measured_of(event["measured"])
            elif event["kind"] == TRIAL and "lost" in event:
                trials.lost[event["variant"]] = event["lost"]
            elif event["kind"] == TRIAL:
                trials.add(event["variant"], event["round"], cells.get((event["variant"], event["round"]), {}))
                if "worse" in event:
                    trials.unfit[event["variant"]] = event["worse"]
    except (KeyError, TypeError, ValueError) as error:
        raise RackwrightError(
            f"the record of run {earlier.path.stem} is damaged: {error!r}; next: the same command without --resume",
            code="RW1513",
        ) from error
    return sum(map(len, trials.done.values()))


def refuse_other_machine(earlier: EarlierTune, gpus: Sequence[str], driver: str) -> None:
    """Raise RackwrightError where the host has other GPUs or another driver than in the earlier trials."""
    conditions = earlier.conditions
    for what, then, now in (
        ("GPUs", conditions.get("gpus"), list(gpus)),
        ("driver", conditions.get("driver"), driver),
    ):
        if conditions and then != now:
            raise RackwrightError(
                f"--resume: not the same as in {earlier.path.stem}: {what} ({now}, and then {then}); nothing was "
                "measured; next: the same command without --resume",
                code="RW1564",
            )
