"""`rackwright bench INVENTORY --tune A,B --bound "ttft_p95 <= 500"`: the plan of a tune, and its work.

The plan is made without a connection, and is printed before anything runs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackwright.adapter.run.session import Connected
from rackwright.loading.host import InventoryHost
from rackwright.messages import SettingsError, counted, paragraph
from rackwright.record.claim import claimed
from rackwright.record.journal import append
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.settings.problems import InvalidSettingsError
from rackwright.sources.lockfile import Locks
from rackwright.tables import Column, drawn, shown_width
from rackwright_bench.endpoint_on_host import Measuree
from rackwright_bench.figures.rounds import Limits
from rackwright_bench.proven.keeping import keep_tuned
from rackwright_bench.record import TRIAL
from rackwright_bench.running import BenchPlan
from rackwright_bench.variants.bounds import bound_of, is_figure, without_room
from rackwright_bench.variants.changes import changed_keys, values_of
from rackwright_bench.variants.context import context_of, longest_request
from rackwright_bench.variants.estimate import OF_AN_INTERVAL, TimeEstimate, estimate_of, time_in_words
from rackwright_bench.variants.naming import AS_SET, is_of_group, spelled_out, variant_of
from rackwright_bench.variants.ready import groups
from rackwright_bench.variants.taken_up import (
    TUNE,
    EarlierTune,
    earlier_tune,
    print_of,
    refuse_other_machine,
    take_up,
)
from rackwright_bench.variants.trial import TrialEndpoint
from rackwright_bench.variants.trials import Goal, Trials, conclusion, rounds_in_words, share_in_words
from rackwright_bench.variants.tuning import Tuning, whole_rounds
from rackwright_bench.work import (
    HOST,
    Cells,
    Judged,
    Work,
    entry_for_variants,
    pooled_cells,
    refuse_made_up,
    refuse_one_more,
    say,
    why_refused,
)

TIME = 4 * 3600
"""Seconds of a tune, unless `--timeout` says others."""
PLANNED = (Column("variant"), Column("changes", 1, 30), Column("context"), Column("loads a round"))
STANDINGS = (
    Column("variant"),
    Column("rounds"),
    Column("figure"),
    Column("share", 2),
    Column("what became of it", 1, 30),
)


@dataclass(frozen=True)
class TunePlan:
    """The plan of a tune, before it runs."""

    plan: BenchPlan
    host: str
    endpoint: str
    variants: Mapping[str, HostSettings]
    """The settings come first."""
    left_out: Mapping[str, str]
    """Variants that are not tried, and why."""
    goal: Goal
    limits: Limits
    time: TimeEstimate

    def of(self, name: str) -> EndpointSettings:
        """Return the endpoint of a variant."""
        return self.variants[name].all_endpoints[self.endpoint]

    @property
    def unfit(self) -> dict[str, str]:
        """Return why the settings cannot be taken, where they break a bound before anything runs."""
        first = next(iter(self.variants))
        why = without_room(self.goal.bounds, context_of(self.of(first)), 0)
        return {first: why} if why else {}

    @property
    def depends_on(self) -> dict[str, Any]:
        """The things on which its trials depend: another run's count where these are the same."""
        suite = self.plan.suite.model_dump(mode="json", exclude={"variants", "timeout"})
        return {
            "host": self.host,
            "endpoint": self.endpoint,
            "variants": {name: print_of(self.of(name)) for name in self.variants},
            "bounds": [bound.text for bound in self.goal.bounds],
            "goal": self.goal.figure,
            "suite": hashlib.sha256(json.dumps(suite, sort_keys=True).encode()).hexdigest()[:16],
        }


def tune_plan(
    args: argparse.Namespace, plan: BenchPlan, entry: InventoryHost, name: str, root: Path, limits: Limits
) -> TunePlan:
    """Return the plan. Raises SettingsError for a wrong name or bound, and where nothing is left to try."""
    goal = goal_of(args)
    found, left_out = _variants(args, plan, entry, name, Locks(root))
    longest = longest_request(plan.cells)
    first = found[AS_SET].all_endpoints[name]
    for one in [one for one in found if one != AS_SET]:
        endpoint = found[one].all_endpoints[name]
        same = f"is the same as {AS_SET}" if values_of(endpoint) == values_of(first) else ""
        if why := same or without_room(goal.bounds, context_of(endpoint), longest):
            left_out[one] = why
            del found[one]
    if len(found) < 2:
        lines = "".join(f"\n  {one}: {why}" for one, why in left_out.items())
        raise SettingsError(
            f"--tune {args.tune}: none of its variants can be tried beside {AS_SET}; nothing was measured{lines}",
            code="RW1554",
        )
    refuse_made_up(found, entry.name, name)
    time = estimate_of(root, plan.suite_settings, len(plan.cells))
    return TunePlan(plan, entry.name, name, found, left_out, goal, limits, time)


def goal_of(args: argparse.Namespace) -> Goal:
    """Return what is sought. Raises SettingsError for a figure that there is not."""
    if not is_figure(args.goal):
        raise SettingsError(
            f"--goal {args.goal}: must be a figure of a cell, as output_rate or ttft_p95; nothing was measured",
            code="RW1524",
        )
    return Goal(args.goal, tuple(map(bound_of, args.bound)))


def _variants(
    args: argparse.Namespace, plan: BenchPlan, entry: InventoryHost, name: str, locks: Locks
) -> tuple[dict[str, HostSettings], dict[str, str]]:
    """Return the variants, pinned, and those that the checks of settings refuse, with why.

    Raises SettingsError for a name that there is not.
    """
    found, refused = dict[str, HostSettings](), dict[str, str]()
    for one in tuned_names(args.tune):
        try:
            found[one] = locks.pin(variant_of(one, entry, name, plan.suite, args.suite))
        except SettingsError as error:
            if one == AS_SET or not (is_of_group(one, args.tune) or isinstance(error, InvalidSettingsError)):
                raise
            refused[one] = why_refused(error)
    return found, refused


def tuned_names(text: str) -> list[str]:
    """Return the names of `--tune A,B`, the settings before them. Raises SettingsError for an empty or double one."""
    names = spelled_out(text)
    if len(set(names)) < len(names) or not all(names):
        raise SettingsError(
            f"--tune {text}: must be different names with commas between them, or one of {' and '.join(groups())}; "
            "nothing was measured",
            code="RW1574",
        )
    return [AS_SET, *(name for name in names if name != AS_SET)]


# -- the plan in words


def plan_text(found: TunePlan, taken_up: int = 0) -> str:
    """Return the plan for people. taken_up: trials that an earlier run has measured."""
    cells, most = found.plan, found.limits.most
    lines = [
        f"tune of {found.host} {found.endpoint}: {counted(len(found.variants), 'variant')}, at most "
        f"{counted(most, 'round')}; for each variant in each round {cells.in_words()}",
        "",
        drawn(PLANNED, [_row(found, name) for name in found.variants], shown_width()),
        "",
        *(f"left out: {name}: {why}" for name, why in found.left_out.items()),
        *(f"{name} is measured, and cannot be taken: {why}" for name, why in found.unfit.items()),
        *_goal_lines(found.goal, most),
        *(f"time: {text}" for text in time_in_words(found.time, len(found.variants), most, found.limits.seconds)),
        *([f"taken up from an earlier run: {counted(taken_up, 'trial')}"] if taken_up else []),
        "time: staging the variants comes first, while what serves keeps running; it counts, and is not in an estimate",
        "after each trial, and at the end, the release that serves now serves again; the winner is kept as a "
        "preset, and is not deployed",
        "",
    ]
    return paragraph("\n".join(lines))


def _row(found: TunePlan, name: str) -> tuple[str, ...]:
    endpoint, first = found.of(name), next(iter(found.variants))
    changes = "; ".join(changed_keys(found.of(first), endpoint)) if name != first else "nothing: as group_vars have it"
    context = context_of(endpoint)
    loads = "none, where the host serves it already" if name == first else "2"
    return name, changes, "not known" if context is None else str(context), loads


def _goal_lines(goal: Goal, most: int) -> Iterator[str]:
    proof = (
        f"proven by 95 % intervals beside {AS_SET}"
        if most >= OF_AN_INTERVAL
        else (f"which one round proves only where {AS_SET} break a bound: it has no interval")
    )
    yield f"sought: the best {goal.figure}, the geometric mean of all cells, {proof}"
    for bound in goal.bounds:
        where = "by its settings" if bound.is_context else "in each round of each cell"
        yield f"bound: {bound.text}, {where}"


# -- the work


def tune_work(
    args: argparse.Namespace, plan: BenchPlan, entry: InventoryHost, name: str, root: Path, limits: Limits
) -> Work | None:
    """Return the work, after the plan is printed; None where only the plan is asked for. Raises RackwrightError."""
    entry, declared = entry_for_variants(entry, name, root)
    found = tune_plan(args, plan, entry, name, root, limits)
    earlier = earlier_tune(root, args.resume, found.depends_on) if args.resume else None
    trials = Trials(list(found.variants), [cell.name for cell in plan.cells], found.goal)
    trials.unfit |= found.unfit
    if not args.plan:
        refuse_one_more(args, entry)
    print(plan_text(found, _whole_trials(earlier)))
    if args.plan:
        return None

    def carry_out(one: Connected, python: Path, record: Path) -> Cells:
        if earlier is None:
            return tuned(one, python, record)
        with claimed(earlier.path):
            measuree = Measuree(one, name, found.of(AS_SET))
            refuse_other_machine(earlier, measuree.gpu_names(), measuree.driver())
            say(f"{counted(take_up(trials, earlier, record), 'trial')} of {earlier.path.stem} taken up")
            append(earlier.path, "resumed", by=record.stem)
            return tuned(one, python, record)

    def tuned(one: Connected, python: Path, record: Path) -> Cells:
        endpoint = TrialEndpoint(one, name, declared.steps, say)
        work = Tuning(plan, endpoint, found.variants, python, record, say, {}, trials=trials)
        work.expected, work.load = found.time.trial(), found.time.load or 0.0
        try:
            work.carry_out(limits)
        finally:
            _tell(work, record)
        keep_tuned(work, name, root, say)
        return pooled_cells(whole_rounds(trials))

    def judge(_: Cells) -> Judged:
        return bool(trials.done), conclusion(trials)

    resumes = {"resumes": earlier.path.stem} if earlier else {}
    begin = {"endpoint": name, "compare": ",".join(found.variants), TUNE: found.depends_on, **resumes}
    question = f"This takes {HOST} out of service while variants are tried, as the plan above says."
    return Work(question, begin, carry_out, judge)


def _whole_trials(earlier: EarlierTune | None) -> int:
    return sum(1 for event in earlier.events if event["kind"] == TRIAL and "lost" not in event) if earlier else 0


def _tell(work: Tuning, record: Path) -> None:
    """Print how the variants stand, and write down what the tune comes to."""
    trials = work.trials
    if not trials.done:
        return
    print(paragraph(f"\n{drawn(STANDINGS, list(_standings(trials)), shown_width())}\n"))
    for text in (*work.answers_compared(), conclusion(trials)):
        append(record, "verdict", text=text, against=trials.first)
        say(text)


def _standings(trials: Trials) -> Iterator[Sequence[str]]:
    best = trials.best()
    for name in trials.names:
        figure, ratio = trials.figure(name), trials.ratio(name, trials.first)
        share = "-" if name == trials.first else share_in_words(ratio)
        became = trials.fault(name) or ("the best" if name == best else "behind" if name not in trials.open() else "-")
        shown = "-" if figure is None else f"{figure:.4g}"
        yield name, rounds_in_words(trials, name), shown, share, became
