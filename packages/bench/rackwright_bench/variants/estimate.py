"""The time of a tune or a comparison: by the site's records of trials, or else of switches, and of the same suite."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from rackwright.messages import counted
from rackwright.record.durations import switch_time
from rackwright.record.journal import Event, read_record, records
from rackwright_bench.figures.rounds import FEWEST
from rackwright_bench.record import CELL, ROUND, TRIAL

OF_AN_INTERVAL = 2
"""Rounds before which no figure has an interval."""
RUNS = 20
"""Records that are looked into, the newest."""


@dataclass(frozen=True)
class TimeEstimate:
    """Seconds of one load of the model, and of measuring the suite once; None where no record says it."""

    load: float | None
    measuring: float | None

    def trial(self, loads: int = 2) -> float:
        """Return the seconds of a trial; 0 where they are not known."""
        has_all = self.measuring is not None and (self.load is not None or loads == 0)
        return (self.measuring or 0) + loads * (self.load or 0) if has_all else 0.0


def estimate_of(root: Path, suite: Mapping[str, Any], cells: int) -> TimeEstimate:
    """Return what the records say: a trial's load is the same work, a switch has the whole gate.

    suite: as `measuring` events have it.
    """
    paths = records(root)
    newest = [read_record(path) for path in paths[-RUNS:]]
    took = [seconds for events in newest for seconds in measuring_times(events, suite, cells)]
    loads = [event["load"] for events in newest for event in events if event["kind"] == TRIAL and event.get("load")]
    return TimeEstimate(median(loads) if loads else switch_time(paths), median(took) if took else None)


def measuring_times(events: Sequence[Event], suite: Mapping[str, Any], cells: int) -> Iterator[float]:
    """Yield the seconds of each time that all cells of a suite were measured, one after the other."""
    began, found = None, 0
    for event in events:
        if event["kind"] == ROUND:
            began, found = event if _requests(event.get("settings", {})) == _requests(suite) else None, 0
        elif event["kind"] == CELL and began is not None:
            found += 1
            if found == cells:
                yield (datetime.fromisoformat(event["time"]) - datetime.fromisoformat(began["time"])).total_seconds()


def _requests(suite: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a suite its time depends on: another variant or limit sends the same requests."""
    return {key: value for key, value in suite.items() if key not in ("variants", "timeout")}


def time_in_words(found: TimeEstimate, variants: int, most: int, limit: float) -> list[str]:
    """Return the time of a tune as sentences. variants: the first one included; most: rounds; limit: seconds."""
    ends = f"no trial begins that would end later than {in_words(limit)} from now (--timeout), and one is cut then"
    if not found.trial():
        unknown = "a load of the model" if found.load is None else "this suite"
        return [f"no record of this site says how long {unknown} takes: the first trials tell", ends]
    load, once = in_words(found.load or 0), in_words(found.measuring or 0)
    rounds = min(FEWEST, most)
    least, whole = (_whole(found, variants, number) for number in (rounds, most))
    return [
        f"a trial takes about {in_words(found.trial())}: two loads of {load} and {once} of measuring, as this site's "
        "records say",
        f"{counted(rounds, 'round')} of {counted(variants, 'variant')} take about {in_words(least)}"
        + (f", {most} rounds {in_words(whole)}" if most > rounds else "")
        + "; variants that cannot win leave early",
        ends,
        *_too_short(found, variants, most, limit),
    ]


def cost_in_words(found: TimeEstimate, names: Sequence[str], rounds: int, each: str) -> str:
    """Return what a comparison costs, before it is begun. rounds: the most; each: what is sent to each variant."""
    trials = rounds * len(names)
    of = f"{', '.join(names[:-1])} and {names[-1]}"
    cost = (
        f"at most {counted(rounds, 'round')} of {of}: up to {2 * trials} loads of the model, and for each variant in "
        f"each round {each}"
    )
    if found.trial():
        one, whole = (in_words(number * found.trial()) for number in (len(names), trials))
        return f"{cost}; about {one} a round{f', {whole} in all' if rounds > 1 else ''}, as this site's records say"
    if found.load:
        return f"{cost}; the loads alone take about {in_words(2 * trials * found.load)}, as this site's records say"
    return f"{cost}; no record of this site says how long that takes"


def _too_short(found: TimeEstimate, variants: int, most: int, limit: float) -> Iterator[str]:
    """Yield a sentence where the time ends before an interval can prove anything."""
    needed = _whole(found, variants, OF_AN_INTERVAL)
    if most >= OF_AN_INTERVAL and needed > limit:
        yield (
            f"{in_words(limit)} do not hold {OF_AN_INTERVAL} rounds of all variants ({in_words(needed)}), and no "
            f"interval proves a winner before; next: --timeout {math.ceil(needed / 60) * 60}, or fewer variants"
        )


def _whole(found: TimeEstimate, variants: int, rounds: int) -> float:
    return rounds * (found.trial(loads=0) + (variants - 1) * found.trial())


def in_words(seconds: float) -> str:
    """`45 s`, `12 min`, `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
