"""Variants under bounds, within a time: each is tried as in a comparison, and leaves as soon as it cannot be the best.

What serves is put back after each trial, by the host itself where this machine is gone. A trial counts once all of its
cells are measured; one that was cut is tried again when the tune is taken up again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rackwright.concerns.endpoint.quality.quality_check import QualityCheck
from rackwright.messages import RackwrightError, counted
from rackwright.plan.concern import HostReading
from rackwright.record.journal import append
from rackwright_bench.endpoint_on_host import Measuree
from rackwright_bench.figures.figures import Measured
from rackwright_bench.figures.rounds import Limits
from rackwright_bench.measuring import Tool
from rackwright_bench.record import TRIAL
from rackwright_bench.running import Found, measure_round
from rackwright_bench.variants.comparing import Comparison
from rackwright_bench.variants.trials import Goal, Trials

SHORT = 12
"""Letters of a release's hash that people are shown."""


class TimeIsUpError(Exception):
    """The tune's time is over while a cell is measured: the cell ends, and the host puts back what served."""


@dataclass
class Tuning(Comparison):
    """A tune, and what it has measured. `variants` begins with the settings."""

    trials: Trials = field(default_factory=lambda: Trials((), (), Goal()))
    expected: float = 0.0
    """Seconds that a trial takes, by this site's records; 0 without any."""
    load: float = 0.0
    """Seconds that putting back takes, by this site's records."""
    clock: Callable[[], float] = time.monotonic
    ended: str = ""
    """The reason for its end."""
    _until: float = math.inf
    _began: float = 0.0
    """The begin of the trial that is under way."""
    _loaded: float = 0.0
    """Seconds until its variant served."""
    _late: bool = False
    _took: dict[str, float] = field(default_factory=dict)
    """Seconds of each variant's last trial."""

    def carry_out(self, limits: Limits) -> None:
        """Stage, then try in rounds; what served serves at the end. Raises RackwrightError; what was found stays."""
        self._until = self.clock() + limits.seconds
        self.dropped |= set(self.trials.lost)
        before = self.begin()
        self._rounds(limits)
        self.say(f"the tune has ended: {self.ended}")
        self._say_put_back(before)

    def _rounds(self, limits: Limits) -> None:
        for number in range(1, limits.most + 1):
            names = self.trials.open()
            for name in names if number % 2 else reversed(names):
                if self.trials.has(name, number) or name in self.trials.lost:
                    continue
                if self._late or self.clock() + self._expected_of(name) > self._until:
                    self.ended = f"its time ({limits.seconds:.0f} s) does not hold another trial; {self._taken_up_by}"
                    return
                self._try(name, number)
            if self._late:
                self.ended = f"its time ({limits.seconds:.0f} s) is over; {self._taken_up_by}"
                return
            if why := self.trials.decided(number, limits.narrow):
                self.ended = f"{why}, after round {number}"
                return
        self.ended = f"{counted(limits.most, 'round')} measured"

    @property
    def _taken_up_by(self) -> str:
        return f"next: the same command with --resume {self.record.stem}, and more time where one trial needs it"

    def _expected_of(self, name: str) -> float:
        """Return the seconds that a trial takes: its last one's, or the longest of this tune's, or what records say.

        The first variant is what serves as a rule, and then has no load.
        """
        if name == self.trials.first:
            return self._took.get(name, max(self.expected - 2 * self.load, 0.0))
        with_loads = [seconds for one, seconds in self._took.items() if one != self.trials.first]
        return self._took.get(name) or max(with_loads, default=self.expected)

    def _ends_without(self, _: str) -> bool:
        return False

    def _note_dropped(self, name: str, number: int, why: str) -> None:
        super()._note_dropped(name, number, why)
        self.trials.lost[name] = why
        append(self.record, TRIAL, host=self.trial.one.entry.name, variant=name, round=number, lost=why)

    def _measure(self, name: str, number: int) -> None:
        began = self._began = self.clock()
        super()._measure(name, number)
        self._took[name] = self.clock() - began
        if not self.trials.has(name, number):
            return
        worse = self.worse_answers()
        self.trials.unfit |= worse
        load = None if name == self.trials.first else round(self._loaded, 1)
        event = {"seconds": round(self._took[name], 1), "load": load, "worse": worse.get(name)}
        append(self.record, TRIAL, host=self.trial.one.entry.name, variant=name, round=number, **event)
        if fault := self.trials.fault(name):
            self.say(f"{name} {fault}" + ("" if name == self.trials.first else "; it is not tried again"))

    def _at_work(
        self, name: str, number: int, measuree: Measuree, check: QualityCheck | None, beat: Callable[[], None]
    ) -> Found:
        """Measure and ask in time: putting back takes what the load took, which is over now, or what records say.

        What serves already was not loaded, and is not put back.
        """
        self._loaded = self.clock() - self._began
        deadline = self._until - max(self._loaded, 0.0 if name == self.trials.first else self.load)
        try:
            cells = super()._at_work(name, number, measuree, check, lambda: self._in_time(beat, deadline))
        except TimeIsUpError:
            self._late = True
            self.say(f"{name}: the time is over; its cells stay in the record, and the trial does not count")
            return {}
        if not cells and name == self.trials.first:
            return cells
        self.trials.add(name, number, {cell: rounds[-1] for cell, rounds in cells.items()})
        for cell, rounds in cells.items():
            self.found.setdefault(name, {}).setdefault(cell, []).extend(rounds)
        return cells

    def _has_figures(self, name: str) -> bool:
        """Return True for settings whose requests fail, too: a variant that answers may be the one to take."""
        return self._late or bool(self.trials.done.get(name))

    def _measure_round(self, tool: Tool, measuree: Measuree, name: str, number: int) -> Found:
        cells: Found = {}
        measure_round(tool, self.plan, measuree, self.record, self.say, number, cells, name)
        return cells

    def _in_time(self, beat: Callable[[], None], deadline: float) -> None:
        beat()
        if self.clock() > deadline:
            raise TimeIsUpError

    # -- the release that it had before

    def _say_put_back(self, before: HostReading) -> None:
        """Say which release serves again. Raises RackwrightError where it is another one than before."""
        first = next(iter(self.variants.values()))
        was, now = self.trial.observed(before), self.trial.observed(self.trial.read(first))
        host = f"{self.trial.one.entry.name} {self.trial.endpoint}"
        if not now.serving or (now.proven, now.current) != (was.proven, was.current):
            raise RackwrightError(
                f"{host}: it served release {was.proven or 'unknown'} before the tune, and now "
                f"{now.current or 'nothing'}; next: rackwright status INVENTORY --limit {self.trial.one.entry.name}",
                code="RW1544",
            )
        self.say(f"{host} serves release {(now.proven or '')[:SHORT]}, as before the tune")


def whole_rounds(trials: Trials) -> dict[str, dict[str, list[Measured]]]:
    """Return the rounds of each cell, by variant, as a comparison has them."""
    found: dict[str, dict[str, list[Measured]]] = {}
    for name in trials.names:
        for _, cells in sorted(trials.done.get(name, {}).items()):
            for cell, measured in cells.items():
                found.setdefault(name, {}).setdefault(cell, []).append(measured)
    return found
