"""`rackwright bench INVENTORY --limit HOST`: how fast an endpoint serves, cell by cell, measured by aiperf.

`rackwright bench compare RUN RUN` says what is better in the second, and what is no difference.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rackwright.commands.inventories import add_limit
from rackwright.commands.rollout import agreed
from rackwright.commands.runs import add_site, root_of
from rackwright.errors import RackwrightError, SettingsError
from rackwright.fleet.bench.aiperf.environment import ready_python
from rackwright.fleet.bench.figures.compare import compared, sentences
from rackwright.fleet.bench.figures.fail_if import FailIf, broken, fail_if_of
from rackwright.fleet.bench.looking import Measuree
from rackwright.fleet.bench.record import BENCH, Bench, read_bench
from rackwright.fleet.bench.report.page import write_page
from rackwright.fleet.bench.report.table import compared_table, switches_line, table
from rackwright.fleet.bench.running import Plan, measure
from rackwright.fleet.bench.suites.loading import suite_of, suite_text
from rackwright.fleet.bench.suites.prompts import CAVEAT, prompt_files
from rackwright.fleet.rollout.launch import beginning
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright.printable import paragraph
from rackwright.pyinfra_glue.session import chosen_hosts, connected
from rackwright.runs.ending import ERROR
from rackwright.runs.journal import append, new_record
from rackwright.settings.problems import nearest

COMPARE = "compare"
INTERRUPTED = 130


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "bench", help="measure how fast an endpoint serves, with aiperf; compare two such runs"
    )
    add_limit(parser)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="`bench compare RUN RUN`: two runs, by name, or `last`")
    what = "what is measured (default: quick)"
    parser.add_argument("--suite", default="quick", metavar="quick|seed003|FILE", help=what)
    parser.add_argument("--print-suite", action="store_true", help="print the suite's file, to copy and change it")
    parser.add_argument("--endpoint", metavar="NAME", help="which one, where the host has several")
    parser.add_argument("--tokenizer", metavar="DIR", help="counts the prompts' tokens (default: the host's own files)")
    limit = "exit 1 when a cell breaks it: 'ttft_p99 > 500' (ms), 'output_rate < 0.9x of RUN'"
    parser.add_argument("--fail-if", action="append", default=[], metavar="LIMIT", help=limit)
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    add_site(parser)
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Measure, print, write down; 1 when a cell has no figures. Raises RackwrightError before the first request."""
    if args.print_suite:
        print(suite_text(args.suite), end="")
        return 0
    if args.inventory == COMPARE:
        return compare(root_of(args), args.runs)
    if args.runs:
        raise SettingsError(f"{' '.join(args.runs)}: runs stand behind `compare` alone", code="RW1021")
    suite, rules = suite_of(suite_text(args.suite), args.suite), [fail_if_of(text) for text in args.fail_if]
    root = site_root(Path(args.inventory)).absolute()
    earlier = {rule.run: read_bench(root, rule.run) for rule in rules if rule.run}
    entry = the_host(chosen_hosts(args.inventory, args.limit, args.only), args.inventory)
    with tempfile.TemporaryDirectory(prefix="rackwright-bench-") as folder:
        prompts = prompt_files(suite, Path(args.suite).absolute().parent, root, Path(folder))
        plan = Plan(suite, Path(args.suite).stem, prompts, args.tokenizer or "")
        name = endpoint_of(entry, args.endpoint)
        asked = f"This sends {plan.in_words()}, to {entry.name} {name}, beside what its clients send."
        if not args.yes and not agreed(asked):
            print("nothing was done", file=sys.stderr)
            return ERROR
        return begun(args, plan, entry, name, root, [(rule, earlier.get(rule.run)) for rule in rules])


def begun(
    args: argparse.Namespace,
    plan: Plan,
    entry: InventoryHost,
    name: str,
    root: Path,
    rules: Sequence[tuple[FailIf, Bench | None]],
) -> int:
    """Measure with a record open, end it and judge it; returns the exit status."""
    python = ready_python(say)
    record = new_record(root, BENCH)
    asked = {"suite": args.suite, "endpoint": name}
    append(record, "begin", **beginning(Path(args.inventory).absolute(), root, [entry.name], BENCH, asked))
    status, text = ERROR, "stopped from outside: the cells that were measured stay"
    try:
        with connected([entry]) as (one,):
            cells = measure(plan, Measuree(one, name, entry.settings.all_endpoints[name]), python, record, say)
        whole = [cell for cell in cells.values() if cell.requests and not cell.failed]
        wrong = [why for rule, other in rules for why in broken(rule, cells, other.cells if other else {})]
        text = "; ".join([f"{len(whole)} of {len(plan.cells)} cells have figures", *wrong])
        status = 0 if len(whole) == len(plan.cells) and not wrong else ERROR
    except KeyboardInterrupt:
        status = INTERRUPTED
        raise
    except RackwrightError as error:
        text = str(error)
    finally:
        append(record, "end", status=status, text=text)
        show(root, record, text)
    return status


def show(root: Path, record: Path, text: str) -> None:
    """Print the table, what the engine was told, and where record and page lie."""
    found = read_bench(root, record.stem)
    if found.cells:
        print(paragraph(f"\n{table(found.cells)}\n{switches_line(found.conditions['switches'])}"))
        kinds = {data["kind"] for data in found.conditions["settings"]["datasets"].values()}
        if "burstgpt" in kinds:
            say(CAVEAT)
        say(f"its page, with curves: {write_page(found, record)}")
    say(f"{text}\nrackwright: the record of this run: {record}")


def compare(root: Path, names: Sequence[str]) -> int:
    """Print what two runs say of each other. Raises RackwrightError where they have no cell in common."""
    if len(names) != 2:
        raise SettingsError("compare takes two runs; next: rackwright bench compare RUN RUN", code="RW1021")
    one, other = (read_bench(root, name) for name in names)
    found = list(compared(one.cells, other.cells))
    if not found:
        raise SettingsError(f"{one.id} and {other.id} have no cell in common that has figures", code="RW1022")
    print(paragraph(compared_table(found)))
    for text in [*unlike(one, other), *sentences(found, one.id, other.id)]:
        say(text)
    return 0


def unlike(one: Bench, other: Bench) -> list[str]:
    """What was not the same in both: no figure says which of these made the difference."""
    keys = ("host", "endpoint", "model", "release", "image", "gpus", "switches", "settings", "aiperf")
    named = [key for key in keys if one.conditions.get(key) != other.conditions.get(key)]
    return [f"not the same in both: {', '.join(named)}"] if named else []


def the_host(hosts: list[InventoryHost], inventory: str) -> InventoryHost:
    """The one host that is measured. Raises SettingsError when several are chosen."""
    if len(hosts) > 1:
        raise SettingsError(
            f"{len(hosts)} hosts are chosen, and one is measured at a time; next: rackwright bench {inventory} --limit "
            f"{hosts[0].name}",
            code="RW1019",
        )
    return hosts[0]


def endpoint_of(entry: InventoryHost, asked: str | None) -> str:
    """The endpoint that is meant. Raises SettingsError with the names that there are."""
    known = list(entry.settings.all_endpoints)
    if asked in known or (asked is None and len(known) == 1):
        return asked or known[0]
    hint = nearest(asked, known) if asked else ""
    told = f"has no endpoint {asked}{hint}" if asked else "has several endpoints"
    raise SettingsError(f"{entry.name} {told}; next: --endpoint {'|'.join(known)}", code="RW1020")


def say(text: str) -> None:
    """One line of progress."""
    print(f"rackwright: {paragraph(text)}", flush=True)
