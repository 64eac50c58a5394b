"""Variants of one endpoint on one host, in interleaved rounds: stage all, then serve, measure and put back, in turn.

The order turns round from round to round, so that a host that grows warm favours none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rackwright.concerns.endpoint.container import local_url, served_name
from rackwright.concerns.endpoint.quality.quality_check import AskedRelease, QualityCheck, check_of
from rackwright.concerns.endpoint.quality.question_run import JudgedAnswers, QuestionRun
from rackwright.concerns.endpoint.switch.follow import RolledBackError
from rackwright.concerns.lease import LEASED
from rackwright.concerns.lease.take_lease import take
from rackwright.messages import RackwrightError
from rackwright.plan.concern import HostReading
from rackwright.quality.pairs import Comparison as PairedAnswers
from rackwright.quality.pairs import compare, points
from rackwright.settings.host_settings import HostSettings
from rackwright_bench.endpoint_on_host import Measuree
from rackwright_bench.figures.figures import UNMEASURED
from rackwright_bench.figures.rounds import Limits, round_numbers
from rackwright_bench.figures.verdict import Share, shares, widest
from rackwright_bench.measuring import Tool
from rackwright_bench.record import called, last_text, note_cell
from rackwright_bench.running import BenchPlan, Found, Say, measure_round, prepared
from rackwright_bench.variants.naming import on_trial
from rackwright_bench.variants.trial import Beat, TrialEndpoint


@dataclass
class Comparison:
    """The variants of a comparison, and their results."""

    plan: BenchPlan
    trial: TrialEndpoint
    variants: Mapping[str, HostSettings]
    """The first one is what the others are compared with."""
    python: Path
    record: Path
    say: Say
    found: dict[str, Found]
    answers: dict[str, JudgedAnswers] = field(default_factory=dict)
    """Of each variant, to the questions of the settings' gate, asked in the first round."""
    dropped: set[str] = field(default_factory=set)
    """Variants that did not start or did not prove themselves: they are not tried again."""

    def carry_out(self, limits: Limits) -> None:
        """Stage, then measure in rounds. Raises RackwrightError; what was found stays."""
        self.begin()
        for number in round_numbers(limits, self._widest):
            names = [name for name in self.variants if name not in self.dropped]
            for name in names if number % 2 else reversed(names):
                self._try(name, number)

    def begin(self) -> HostReading:
        """Take the host's lease, and stage every release; returns the host as it was. Raises RackwrightError."""
        first = next(iter(self.variants.values()))
        reading = self.trial.read(first)
        self.trial.refuse_unproven(reading)
        take(self.trial.one.host, reading[LEASED])
        for name, settings in self.variants.items():
            if name not in self.dropped:
                self.say(f"{name}: staging its release; what serves is untouched")
                self.trial.stage(settings)
        return reading

    def _try(self, name: str, number: int) -> None:
        """Measure a variant. One that the host rolls back is dropped, unless the others are compared with it."""
        try:
            self._measure(name, number)
        except RolledBackError as error:
            self.dropped.add(name)
            if name == next(iter(self.variants)) or self._ends_without(name):
                raise
            self._note_dropped(name, number, f"the host rolled it back: {error.text.partition(chr(10))[0]}")

    def _ends_without(self, _: str) -> bool:
        """Return True if nothing is left to compare with the first one."""
        return len(self.variants) - len(self.dropped) < 2

    def _note_dropped(self, name: str, number: int, why: str) -> None:
        for cell in self.plan.cells:
            note_cell(self.record, self.trial.one.entry.name, called(cell.name, name), why, None, number)
        self.say(f"{name} is not tried again: {why}")

    def _measure(self, name: str, number: int) -> None:
        settings = on_trial(self.variants[name], self.trial.endpoint)
        measuree = Measuree(self.trial.one, self.trial.endpoint, settings.all_endpoints[self.trial.endpoint])
        self.say(f"round {number}: {name}")

        def work(beat: Beat) -> None:
            self._at_work(name, number, measuree, check, beat)

        check = variant_check(name, self.trial.endpoint, settings)
        self.trial.while_serving(settings, self.plan.seconds + (check.seconds if check else 0), work)
        if name == next(iter(self.variants)) and not self._has_figures(name):
            raise RackwrightError(self._without_figures(name, number), code="RW1542")

    def _has_figures(self, name: str) -> bool:
        """Return True if a cell of a variant that was measured has figures."""
        return any(one.has_figures for rounds in self.found.get(name, {}).values() for one in rounds)

    def _without_figures(self, name: str, number: int) -> str:
        others, why = ", ".join(one for one in self.variants if one != name), last_text(self.record, name)
        command = "" if "; next: " in why else "; next: correct that, then the same command"
        return (
            f"{name} has no figure in any cell of round {number}, so nothing can be compared with it: {others} not "
            f"tried, what served serves again; {why}{command}"
        )

    def _at_work(
        self, name: str, number: int, measuree: Measuree, check: QualityCheck | None, beat: Callable[[], None]
    ) -> Found:
        """Measure all cells of a variant that serves, and ask it the questions of the gate once."""
        tool = replace(prepared(self.plan, measuree, self.python, self.record, name), beat=beat)
        cells = self._measure_round(tool, measuree, name, number)
        if check is not None and name not in self.answers:
            self.answers[name] = QuestionRun(self.trial.one.host, check, check.now, self.say, beat).ask()
        return cells

    def _measure_round(self, tool: Tool, measuree: Measuree, name: str, number: int) -> Found:
        """Measure all cells of a variant that serves."""
        cells = self.found.setdefault(name, {})
        measure_round(tool, self.plan, measuree, self.record, self.say, number, cells, name)
        for cell in self.plan.cells:
            if len(rounds := cells.setdefault(cell.name, [])) < number:
                rounds.append(UNMEASURED)
        return cells

    def answers_compared(self) -> list[str]:
        """Return how each variant answers beside the first one, in sentences; nothing where none was asked."""
        first = next(iter(self.variants))
        if first not in self.answers:
            return []
        right = self.answers[first].right
        begins = f"{first} answers {sum(right.values())} of {len(right)} questions rightly"
        compared = self._answers_beside_first().items()
        return [begins, *(f"{name} beside {first}: {found.sentence}" for name, found in compared)]

    def worse_answers(self) -> dict[str, str]:
        """Return why variants cannot be taken whose answers are worse than the first one's by more than is allowed."""
        first, allowed = next(iter(self.variants)), f"gate.worse_by allows {self._worse_by:g}"
        worse = {name: found for name, found in self._answers_beside_first().items() if found.worse}
        return {
            name: f"answers worse than {first} by {points(found.difference)}; {allowed}"
            for name, found in worse.items()
        }

    def _answers_beside_first(self) -> dict[str, PairedAnswers]:
        """Return the answers of each other variant that was asked, in pairs with the first one's."""
        first, *others = self.variants
        if first not in self.answers:
            return {}
        right = {name: self.answers[name].right for name in (first, *others) if name in self.answers}
        return {name: compare(right[first], right[name], self._worse_by) for name in others if name in right}

    @property
    def _worse_by(self) -> float:
        return next(iter(self.variants.values())).all_endpoints[self.trial.endpoint].gate.worse_by

    def shares(self) -> dict[str, list[Share]]:
        """Of each variant but the first one: its share of the first one's tokens a second, cell by cell."""
        concurrency = {cell.name: cell.pattern.concurrency for cell in self.plan.cells}
        first, *others = self.variants
        one = self.found.get(first, {})
        return {name: shares(one, self.found.get(name, {}), concurrency) for name in others}

    def _widest(self) -> float:
        return max(widest(found) for name, found in self.shares().items() if name not in self.dropped)


def variant_check(name: str, endpoint: str, settings: HostSettings) -> QualityCheck | None:
    """Return the questions to a variant on trial; None without a file of them in the settings."""
    wanted = settings.all_endpoints[endpoint]
    if not wanted.gate.questions:
        return None
    keyed = wanted.api_key is not None
    of = AskedRelease(endpoint, name, local_url(wanted), served_name(wanted), keyed, wanted.engine_kind)
    return check_of(of, wanted, wanted.gate.questions, settings.site)
