"""`rackwright bench INVENTORY --limit HOST`: how fast an endpoint serves, cell by cell, measured by aiperf.

`rackwright bench --compare-runs RUN RUN` says what is better in the second, and where the two do not differ.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rackwright.adapter.run.session import chosen_hosts, connected
from rackwright.cli.inventories import DAY, add_limit, add_shared, add_timeout, one_of
from rackwright.cli.rollout import agreed
from rackwright.cli.runs import add_site, root_of
from rackwright.concerns.endpoint.switch.follow import NothingServesError
from rackwright.exit_codes import ExitCode, done_if
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, SettingsError, paragraph
from rackwright.record.journal import append, new_record
from rackwright.rollout.begin_event import beginning
from rackwright.tables import shown_width
from rackwright_bench.aiperf.environment import ready_python
from rackwright_bench.aiperf.tokenizer import refuse_without_tokenizer
from rackwright_bench.figures.compare import compared, sentences
from rackwright_bench.figures.fail_if import FailIf, broken, fail_if_of
from rackwright_bench.figures.rounds import Limits
from rackwright_bench.record import BENCH, Bench, read_bench
from rackwright_bench.report.drawing import draw, svg_texts
from rackwright_bench.report.markdown import markdown
from rackwright_bench.report.page import write_page
from rackwright_bench.report.table import clients_lines, compared_table, switches_lines, table
from rackwright_bench.running import BenchPlan
from rackwright_bench.suites.fetching import fetch_requests
from rackwright_bench.suites.loading import own_suites, suite_of, suite_text
from rackwright_bench.suites.prompts import CAVEAT, prompt_files
from rackwright_bench.suites.suite import Suite
from rackwright_bench.tune import TIME, tune_work
from rackwright_bench.work import HOST, Work, compared_work, plain_work, say
from rackwright_engines.nearest import nearest

ROUNDS = 5
"""At most, of a comparison or a tune."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "bench", help="measure how fast an endpoint serves, with aiperf; compare two such runs"
    )
    add_limit(parser)
    parser.add_argument(
        "--compare-runs", nargs=2, metavar=("RUN", "RUN"), help="compare two earlier runs instead, by name, or `last`"
    )
    tables = (
        "print tables of earlier runs instead, in Markdown: a run or variant a column, or its shares of the first one"
    )
    parser.add_argument("--table", nargs="+", metavar="RUN", help=tables)
    what = f"what is measured: {', '.join(own_suites())}, or a file"
    parser.add_argument("--suite", default="quick", metavar="NAME|FILE", help=what)
    parser.add_argument("--print-suite", action="store_true", help="print the suite's file, to copy and change it")
    fetch = "only fetch the suite's files of requests, once, from where they were published, or from a mirror of yours"
    sources = "published|URL|SET=URL"
    parser.add_argument("--fetch", action="append", metavar=sources, help=fetch)
    parser.add_argument("--endpoint", metavar="NAME", help="endpoint to measure, where the host has several")
    parser.add_argument(
        "--tokenizer", metavar="DIR", help="tokenizer that counts the prompts' tokens (default: the host's own files)"
    )
    limit = "exit 1 when a cell breaks it: 'ttft_p99 > 500' (ms), 'output_rate < 0.9x of RUN'"
    parser.add_argument("--fail-if", action="append", default=[], metavar="LIMIT", help=limit)
    names = (
        "variants of the endpoint, side by side: baseline (without its draft), settings, draft_N (tokens a draft), "
        "batch_N, tokens_N, names of the suite's file; or all heads (draft models for gpt-oss-120b) or lengths (1, 2, "
        "3, 4, 8)"
    )
    parser.add_argument("--compare", metavar="A,B|heads|lengths", help=names)
    _add_tune(parser)
    parser.add_argument("--rounds", type=int, metavar="N", help="most rounds (default: 1; 5 with --compare or --tune)")
    narrow = "no further round once every interval is within this share of its figure, after three (default: 5)"
    parser.add_argument("--narrow", type=float, default=5.0, metavar="PERCENT", help=narrow)
    add_timeout(parser, "no round begins that would end later", None, most=7 * DAY)
    anyway = "with --compare or --tune: continue although more hosts are down then than max_unavailable"
    parser.add_argument("--anyway", action="store_true", help=anyway)
    add_shared(parser, "yes")
    add_site(parser)
    parser.set_defaults(handler=run, needs_inventory=_measures)


def _measures(args: argparse.Namespace) -> bool:
    """Return False for what is read from the site's records, or from a suite's file, alone."""
    return not (args.print_suite or args.compare_runs or args.table)


def _add_tune(parser: argparse.ArgumentParser) -> None:
    names = "variants as of --compare, tried beside the settings within bounds and a time; the winner becomes a preset"
    parser.add_argument("--tune", metavar="A,B|heads|lengths", help=names)
    bound = "with --tune: what a variant must keep: 'ttft_p95 <= 500' (ms), 'context >= 8k'; may be repeated"
    parser.add_argument("--bound", action="append", default=[], metavar="BOUND", help=bound)
    goal = "with --tune: the figure that is to be the best (default: output_rate, tokens of answers a second)"
    parser.add_argument("--goal", default="output_rate", metavar="FIGURE", help=goal)
    parser.add_argument("--plan", action="store_true", help="with --tune: print the plan, with its time, and end")
    resume = "with --tune: take up a tune that was interrupted: its whole trials count"
    parser.add_argument("--resume", metavar="RUN", help=resume)


def run(args: argparse.Namespace) -> int:
    """Measure, print, write down; 1 when a cell has no figures. Raises RackwrightError before the first request."""
    if args.print_suite:
        print(suite_text(args.suite), end="")
        return ExitCode.DONE
    if args.compare_runs:
        return compare(root_of(args), args.compare_runs)
    if args.table:
        print(markdown([read_bench(root_of(args), run) for run in args.table]))
        return ExitCode.DONE
    refuse_half_a_tune(args)
    suite, rules = suite_of(suite_text(args.suite), args.suite), [fail_if_of(text) for text in args.fail_if]
    limits = limits_of(args)
    if args.fetch:
        return fetch(args, suite)
    if args.tokenizer:
        refuse_without_tokenizer(args.tokenizer)
    root = site_root(Path(args.inventory)).absolute()
    earlier = {rule.run: read_bench(root, rule.run) for rule in rules if rule.run}
    entry = one_of(args, chosen_hosts(args.inventory, args.limit, args.only))
    with tempfile.TemporaryDirectory(prefix="rackwright-bench-") as folder:
        at = Path(args.suite).absolute().parent
        prompts = prompt_files(suite, at, root, Path(folder), args.suite, limits.most)
        plan = BenchPlan(suite, Path(args.suite).stem, prompts, args.tokenizer or "")
        name = endpoint_of(entry, args.endpoint)
        work = work_of(args, plan, entry, name, root, limits)
        if work is None:
            return ExitCode.DONE
        if not goes_ahead(work.question.replace(HOST, f"{entry.name} {name}"), asks=not args.yes):
            print("nothing was done", file=sys.stderr)
            return ExitCode.ERROR
        return begun(args, entry, work, root, [(rule, earlier.get(rule.run)) for rule in rules])


def goes_ahead(cost: str, *, asks: bool) -> bool:
    """Ask whether the bench may begin; without a question, only say what it costs."""
    if asks:
        return agreed(cost)
    say(cost)
    return True


def refuse_half_a_tune(args: argparse.Namespace) -> None:
    """Raise SettingsError for options of a tune without one, and for a tune that is a comparison too."""
    given = [
        option
        for option, value in (("--bound", args.bound), ("--plan", args.plan), ("--resume", args.resume))
        if value and not args.tune
    ]
    if given:
        raise SettingsError(
            f"{given[0]} belongs to a tune; nothing was measured; next: --tune A,B with names as of --compare",
            code="RW1584",
        )
    if args.tune and args.compare:
        raise SettingsError(
            "--compare belongs to no tune; nothing was measured; next: either --tune or --compare", code="RW1584"
        )


def work_of(
    args: argparse.Namespace, plan: BenchPlan, entry: InventoryHost, name: str, root: Path, limits: Limits
) -> Work | None:
    """Return what is to be measured; None where only a plan was to be printed. Raises RackwrightError."""
    if args.tune:
        return tune_work(args, plan, entry, name, root, limits)
    return compared_work(args, plan, entry, name, root, limits) if args.compare else plain_work(plan, name, limits)


def fetch(args: argparse.Namespace, suite: Suite) -> int:
    """Fetch the suite's files of requests with the proxy, authority and hub of the inventory's first host."""
    root = site_root(Path(args.inventory)).absolute()
    entry = chosen_hosts(args.inventory, args.limit, args.only)[0]
    names = fetch_requests(suite, args.fetch, entry.settings, root, say)
    ready = (
        f"{', '.join(names)}: ready to be measured with"
        if names
        else "nothing to fetch: its sets are made here, or have a path"
    )
    say(f"suite {Path(args.suite).stem}: {ready}")
    return ExitCode.DONE


def limits_of(args: argparse.Namespace) -> Limits:
    """Return the end of the rounds. Raises SettingsError for numbers that make no sense."""
    rounds = args.rounds if args.rounds is not None else (ROUNDS if args.compare or args.tune else 1)
    seconds = args.timeout if args.timeout is not None else (TIME if args.tune else math.inf)
    if rounds < 1 or seconds <= 0 or args.narrow <= 0:
        raise SettingsError("--rounds, --timeout and --narrow must be more than 0; nothing was measured", code="RW1061")
    return Limits(rounds, args.narrow / 100, seconds)


def begun(
    args: argparse.Namespace,
    entry: InventoryHost,
    work: Work,
    root: Path,
    rules: Sequence[tuple[FailIf, Bench | None]],
) -> int:
    """Measure with a record open, end it and judge it; returns the exit status."""
    python = ready_python(say)
    record = new_record(root, BENCH)
    options = {"suite": args.suite, **work.begin}
    append(record, "begin", **beginning(Path(args.inventory).absolute(), root, [entry.name], BENCH, options))
    back = ", and the host puts back what served" if args.tune or args.compare else ""
    again = f"; next: the same command with --resume {record.stem}" if args.tune else ""
    status, text = ExitCode.ERROR, f"stopped from outside: the cells that were measured stay{back}{again}"
    try:
        with connected([entry]) as (one,):
            cells = work.carry_out(one, python, record)
        well, text = work.judge(cells)
        wrong = [why for rule, other in rules for why in broken(rule, cells, other.cells if other else {})]
        text = "; ".join([text, *wrong])
        status = done_if(well and not wrong)
    except KeyboardInterrupt:
        status = ExitCode.INTERRUPTED
        raise
    except NothingServesError as error:
        status, text = ExitCode.MANUAL_ACTION, str(error)
    except RackwrightError as error:
        text = str(error)
    finally:
        append(record, "end", status=status, text=text)
        show(root, record, text, python)
    return status


def show(root: Path, record: Path, text: str, python: Path) -> None:
    """Print the table, the engine's settings, and where record and page are. python: aiperf's."""
    found = read_bench(root, record.stem)
    if found.cells:
        print(
            paragraph("\n".join(["", table(found.cells, shown_width()), *switches_lines(found), *clients_lines(found)]))
        )
        if found.against:
            print(f"\n{markdown([found])}\n")
        kinds = {data["kind"] for data in found.conditions["settings"]["datasets"].values()}
        if "burstgpt" in kinds:
            say(CAVEAT)
        publish(found, record, python)
    say(f"{text}\nrackwright: the record of this run: {record}")


def publish(found: Bench, record: Path, python: Path) -> None:
    """Draw the pictures and write the page; without pictures the page has its tables, and says why not more."""
    drawn: dict[str, Path] = {}
    try:
        drawn = draw(found, record, python)
        say(f"its pictures, for reports: {record.with_suffix('')}.*.png and .svg")
    except RackwrightError as error:
        say(str(error))
    try:
        say(f"its page, with heat maps and curves: {write_page(found, record, svg_texts(drawn))}")
    except RackwrightError as error:
        say(str(error))


def compare(root: Path, names: Sequence[str]) -> int:
    """Print what two runs say of each other. Raises RackwrightError where they have no cell in common."""
    if len(names) != 2:
        raise SettingsError("compare takes two runs; next: rackwright bench --compare-runs RUN RUN", code="RW1021")
    one, other = (read_bench(root, name) for name in names)
    found = list(compared(one.cells, other.cells))
    if not found:
        raise SettingsError(f"{one.id} and {other.id} have no cell in common that has figures", code="RW1022")
    print(paragraph(compared_table(found, shown_width())))
    for text in [*unlike(one, other), *sentences(found, one.id, other.id)]:
        say(text)
    return ExitCode.DONE


def unlike(one: Bench, other: Bench) -> list[str]:
    """Return what was not the same in both: no figure says which of these made the difference."""
    keys = ("host", "endpoint", "model", "release", "image", "gpus", "driver", "switches", "settings", "aiperf")
    named = [key for key in keys if one.conditions.get(key) != other.conditions.get(key)]
    return [f"not the same in both: {', '.join(named)}"] if named else []


def endpoint_of(entry: InventoryHost, wanted: str | None) -> str:
    """Return the endpoint that is meant. Raises SettingsError with the names of all endpoints."""
    names = list(entry.settings.all_endpoints)
    if wanted in names or (wanted is None and len(names) == 1):
        return wanted or names[0]
    hint = nearest(wanted, names) if wanted else ""
    problem = f"has no endpoint {wanted}{hint}" if wanted else "has several endpoints"
    raise SettingsError(f"{entry.name} {problem}; next: --endpoint {'|'.join(names)}", code="RW1020")
