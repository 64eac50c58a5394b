"""The work of `rackwright bench` on a connected host: measure what serves, or variants of it side by side."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rackwright.adapter.run.declaring import declared_by, overlay_arguments
from rackwright.adapter.run.inventories import refused_of
from rackwright.adapter.run.session import Connected, hosts_named
from rackwright.cli.drain import refuse_too_many
from rackwright.concerns.deploy_steps import Declared
from rackwright.loading.host import InventoryHost
from rackwright.messages import SettingsError, counted, paragraph
from rackwright.record.journal import append
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.problems import InvalidSettingsError
from rackwright.sources.lockfile import Locks
from rackwright_bench.endpoint_on_host import Measuree
from rackwright_bench.figures.figures import UNMEASURED, Measured
from rackwright_bench.figures.rounds import Limits, pooled
from rackwright_bench.figures.verdict import verdict
from rackwright_bench.proven.keeping import keep_compared
from rackwright_bench.record import called
from rackwright_bench.running import BenchPlan, Found, measure, refuse_forced
from rackwright_bench.variants.comparing import Comparison
from rackwright_bench.variants.estimate import cost_in_words, estimate_of
from rackwright_bench.variants.naming import is_of_group, names_of, refuse_groups, variant_of
from rackwright_bench.variants.trial import TrialEndpoint

HOST = "\0"
Cells = Mapping[str, Measured]
Judged = tuple[bool, str]
"""True if the run ended well, and what it came to."""


@dataclass(frozen=True)
class Work:
    """The order to measure on a connected host."""

    question: str
    """The question before it is begun; HOST in it stands for host and endpoint."""
    begin: Mapping[str, object]
    """The words of the record's first event."""
    carry_out: Callable[[Connected, Path, Path], Cells]
    """With aiperf's Python and the record; returns every cell of which something came out."""
    judge: Callable[[Cells], Judged]


def all_have_figures(wanted: int) -> Callable[[Cells], Judged]:
    """Return a judge of a run that wants figures of so many cells."""

    def judge(cells: Cells) -> Judged:
        whole = [cell for cell in cells.values() if cell.requests and not cell.failed]
        return len(whole) == wanted, f"{len(whole)} of {wanted} cells have figures"

    return judge


def plain_work(plan: BenchPlan, name: str, limits: Limits) -> Work:
    """Return the work of measuring what serves, while it serves."""

    def carry_out(one: Connected, python: Path, record: Path) -> Cells:
        endpoint = one.entry.settings.all_endpoints[name]
        return measure(plan, Measuree(one, name, endpoint), python, record, say, limits)

    rounds = f", at most {counted(limits.most, 'round')} of it" if limits.most > 1 else ""
    question = f"This sends {plan.in_words()}{rounds}, to {HOST}, beside what its clients send."
    return Work(question, {"endpoint": name}, carry_out, all_have_figures(len(plan.cells)))


def compared_work(
    args: argparse.Namespace, plan: BenchPlan, entry: InventoryHost, name: str, root: Path, limits: Limits
) -> Work:
    """Measure variants in turn, on a host without other clients until then. Raises SettingsError for a wrong name."""
    entry, declared = entry_for_variants(entry, name, root)
    variants = chosen_variants(args, plan, entry, name, Locks(root))
    refuse_one_more(args, entry)
    first = next(iter(variants))

    def carry_out(one: Connected, python: Path, record: Path) -> Cells:
        endpoint = TrialEndpoint(one, name, declared.steps, say)
        work = Comparison(plan, endpoint, variants, python, record, say, {})
        try:
            work.carry_out(limits)
        finally:
            for other, shares in work.shares().items():
                text = verdict(other, first, shares)
                append(record, "verdict", text=text, variant=other, against=first)
                say(text)
            for text in work.answers_compared():
                append(record, "verdict", text=text, against=first)
                say(text)
        keep_compared(work, name, root, say)
        return pooled_cells(work.found)

    time = estimate_of(root, plan.suite_settings, len(plan.cells))
    cost = cost_in_words(time, list(variants), limits.most, plan.in_words())
    question = (
        f"This takes {HOST} out of service, and switches it to each variant and back, in {cost}. What serves now "
        "serves again at the end, whatever happens."
    )
    begin = {"endpoint": name, "compare": ",".join(variants)}
    return Work(question, begin, carry_out, all_have_figures(len(plan.cells) * len(variants)))


def pooled_cells(found: Mapping[str, Found]) -> dict[str, Measured]:
    """Return all rounds of each cell as one, by the names of a record."""
    measured = {
        called(cell, variant): [one for one in rounds if one is not UNMEASURED]
        for variant, rounds_of in found.items()
        for cell, rounds in rounds_of.items()
    }
    return {name: pooled(rounds) for name, rounds in measured.items() if rounds}


def entry_for_variants(entry: InventoryHost, name: str, root: Path) -> tuple[InventoryHost, Declared]:
    """Return a host as its deploy.py has it, and the steps there. Raises RackwrightError where nothing can be tried."""
    refuse_groups(entry, name)
    declared = declared_by(root, [entry])[entry.name]
    return overlay_arguments(entry, declared, root / "deploy.py"), declared


def refuse_one_more(args: argparse.Namespace, entry: InventoryHost) -> None:
    """Raise RackwrightError where more hosts would be down than max_unavailable; asks the others."""
    if not args.anyway:
        refuse_too_many(hosts_named(args.inventory, [entry.name]), [entry.name], refused_of(args.inventory))


def chosen_variants(
    args: argparse.Namespace, plan: BenchPlan, entry: InventoryHost, name: str, locks: Locks
) -> dict[str, HostSettings]:
    """Return the variants by their names, pinned; of a group of them, those that the host does not refuse.

    Raises SettingsError for a wrong name, for figures that are made up, and where fewer than two remain.
    """
    found = dict[str, HostSettings]()
    for one in names_of(args.compare):
        try:
            found[one] = locks.pin(variant_of(one, entry, name, plan.suite, args.suite))
        except SettingsError as error:
            if not is_of_group(one, args.compare):
                raise
            say(f"{one} is left out: {why_refused(error)}")
    if len(found) < 2:
        raise SettingsError(
            f"--compare {args.compare}: fewer than two of its variants fit this endpoint; nothing was measured",
            code="RW1547",
        )
    refuse_made_up(found, entry.name, name)
    return found


def why_refused(error: SettingsError) -> str:
    """Return the first reason for which settings are refused."""
    return error.problems[0].text if isinstance(error, InvalidSettingsError) else error.text


def refuse_made_up(variants: Mapping[str, HostSettings], host: str, name: str) -> None:
    """Raise RackwrightError for a variant in whose environment the engine makes its figures up."""
    for one, settings in variants.items():
        refuse_forced(f"{host} {name}, {one}", settings.all_endpoints[name].environment)


def say(text: str) -> None:
    """One line of progress."""
    print(f"rackwright: {paragraph(text)}", flush=True)
