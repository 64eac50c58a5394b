"""`rackwright rollout INVENTORY`: stage everywhere, switch in waves; a bad change stops and is rolled back."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rackwright.adapter.prompt import answer_to
from rackwright.adapter.run.declaring import declared_by
from rackwright.adapter.run.session import chosen_together
from rackwright.cli.drivers import switch
from rackwright.cli.inventories import add_limit, add_shared, add_timeout, data_of
from rackwright.exit_codes import ExitCode
from rackwright.inspect.host_names import hosts_text
from rackwright.loading.files import site_root
from rackwright.loading.group import mates_of
from rackwright.messages import RackwrightError, counted, paragraph
from rackwright.processes import module
from rackwright.record.record import FORWARD
from rackwright.rollout.forward_and_back import roll_out
from rackwright.rollout.launch import begin
from rackwright.rollout.maintenance.host_marks import drained_in, marks_of
from rackwright.rollout.maintenance.in_waves import BACK_WITHIN
from rackwright.rollout.maintenance.quarantine_marks import quarantined_by
from rackwright.rollout.participants import choose_participants
from rackwright.rollout.silent_gateways import refuse_silent_gateways
from rackwright.rollout.waits import waits_of
from rackwright.tables import folded, shown_width

KEYS = {
    "wave": "rollout.wave",
    "bake": "rollout.bake",
    "max_unavailable": "rollout.max_unavailable",
    "error_budget": "rollout.error_budget",
    "gate": "gate.level",
    "adopt": "rollout.adopt",
}
"""Options of the command, and the settings that they stand for."""
GROUPS = 4
"""Groups of hosts whose changes the question shows."""
PLAN_SECONDS = 300
"""Longest time for reading a whole fleet before it is asked for yes."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("rollout", help="stage everywhere, then switch in waves behind the full gate")
    add_limit(parser)
    add_waves(parser)
    adopt = "also switch hosts whose release differs in its unit or its helper scripts alone"
    parser.add_argument("--adopt", action="store_const", const=True, help=adopt)
    drivers = "switch NVIDIA's driver instead, as driver.version says: drain, install, restart, prove, next"
    parser.add_argument("--drivers", action="store_true", help=drivers)
    add_timeout(parser, "with --drivers, from its restart until it is back", BACK_WITHIN, least=30)
    parser.add_argument("--plain", action="store_true", help="print what pyinfra prints, instead of the live view")
    add_shared(parser, "yes")
    parser.set_defaults(handler=run)


def add_waves(parser: argparse.ArgumentParser) -> None:
    """Add the limits of a run in waves."""
    parser.add_argument("--wave", metavar="N|P%", help="hosts a wave after the canaries (default: the settings')")
    parser.add_argument(
        "--bake", type=int, metavar="SECONDS", help="time to watch a wave before the next (default: the settings')"
    )
    parser.add_argument(
        "--max-unavailable",
        metavar="N|P%",
        help="serving hosts of a group or rack that may be down (default: the settings')",
    )
    parser.add_argument(
        "--error-budget",
        metavar="N|P%",
        help="hosts with a fault of their own that may be skipped (default: the settings')",
    )
    parser.add_argument(
        "--gate",
        choices=("basic", "full"),
        default="full",
        help="what must be proven: that it answers, or all of the proof",
    )
    parser.add_argument("--skip-offline", metavar="N|P%", type=quorum, help="unreachable hosts that may be skipped")


def run(args: argparse.Namespace) -> int:
    """Roll the site's settings out; returns the exit status. Raises RackwrightError."""
    if args.drivers:
        return switch(args, given(args), agreed)
    entries = chosen_together(args.inventory, args.limit, args.only)
    hosts = [entry.name for entry in entries]
    root = site_root(Path(args.inventory)).absolute()
    deploy = root / "deploy.py"
    if not deploy.exists():
        raise RackwrightError(
            f"{deploy} is not there, so there is nothing to roll out; next: rackwright init DIR", code="RW1014"
        )
    declared_by(root, entries)
    data = given(args)
    marks = marks_of(entries)
    inventory, listed = Path(args.inventory).absolute(), quarantined_by(marks, root, entries)
    present = choose_participants(
        inventory, hosts, root, listed, args.skip_offline, drained=drained_in(marks), peers=mates_of(entries)
    )
    refuse_silent_gateways(args.inventory, entries, marks, present.hosts)
    number = counted(len(present.hosts), "host")
    waits = waits_of([entry.settings for entry in entries if entry.name in present.hosts], data)
    messages = [*present.reasons, f"this run has {number}", *waits]
    print(folded(paragraph("\n".join(f"rackwright: {text}" for text in messages)), shown_width()))
    if not args.yes:
        print("rackwright: reading what the rollout changes there", flush=True)
        plan = read_plan(args, present.hosts, data)
        if changes_nothing(plan):
            print(f"rackwright: there is nothing to change on {number}; nothing was done")
            return ExitCode.DONE
        if not agreed(f"This rolls {args.inventory} out on {number}: {plan_headline(plan, args.inventory)}"):
            print("nothing was done", file=sys.stderr)
            return ExitCode.ERROR
    options = {"deploy": str(deploy), "data": data, "skip_offline": args.skip_offline}
    started = begin(args.inventory, root, entries, FORWARD, not args.plain, **options).with_only(
        present.hosts, present.events
    )
    if why := started.vetoed():
        return started.end(ExitCode.ERROR, f"{why}; nothing was done")
    return started.end(*roll_out(started, deploy, data))


def read_plan(args: argparse.Namespace, hosts: Sequence[str], data: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """Return the plan, read by another process, or why it is not known: connecting makes this process cooperative."""
    words = [*module("rackwright"), "plan", args.inventory, "--json", "--in-waves"]
    words += [argument for host in hosts for argument in ("--limit", host)]
    words += [argument for key, value in data.items() for argument in ("--data", f"{key}={json.dumps(value)}")]
    try:
        # In a session of its own: Ctrl-C reaches this process alone, which says so once.
        done = subprocess.run(
            words,
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            timeout=PLAN_SECONDS,
            check=False,
            start_new_session=True,
        )
        return dict(json.loads(done.stdout))
    except (subprocess.SubprocessError, ValueError) as error:
        return "reading took too long" if isinstance(error, subprocess.TimeoutExpired) else "see above"


def changes_nothing(plan: Mapping[str, Any] | str) -> bool:
    """Return whether all hosts of a plan are as wanted."""
    return not isinstance(plan, str) and all(host["state"] == "converged" for host in plan["hosts"])


def plan_headline(plan: Mapping[str, Any] | str, inventory: str) -> str:
    """Return a plan's headline and what changes, or that it is not known."""
    if isinstance(plan, str):
        return f"what it stops is not known, {plan}; to see it: rackwright plan {inventory}"
    return "\n  ".join(_asked_of(plan))


def _asked_of(plan: Mapping[str, Any]) -> Iterator[str]:
    """Yield the headline, and below it what changes, a line for hosts that change alike; of many, the first few."""
    changing = {host["host"] for host in plan["hosts"] if host["state"] != "converged"}
    groups = [one for one in plan["groups"] if changing.intersection(one["hosts"])]
    yield plan["headline"]
    yield from (f"{hosts_text(one['hosts'])}: {one['summary']}" for one in groups[:GROUPS])
    if groups[GROUPS:]:
        yield f"and {counted(len(groups) - GROUPS, 'group')} more: rackwright plan INVENTORY"


def agreed(sentence: str) -> bool:
    """Ask before something is done to a fleet. Raises RackwrightError where no operator can answer."""
    print(folded(paragraph(sentence), shown_width()))
    try:
        return answer_to("Type yes to continue: ").strip() == "yes"
    except EOFError:
        print()
        raise RackwrightError(
            "no answer is possible, since standard input is closed; nothing was done; next: the same command with -y",
            code="RW1025",
        ) from None


def given(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that the command line overrides. Raises RackwrightError for a word that is not KEY=VALUE."""
    return data_of(args) | {
        key: getattr(args, option) for option, key in KEYS.items() if getattr(args, option, None) is not None
    }


def quorum(text: str) -> str:
    """Return a number of hosts, or a part of them as `5%`."""
    if not re.fullmatch(r"\d+|100%|\d{1,2}%", text):
        raise argparse.ArgumentTypeError(f"{text} is not a number of hosts, or a part of them such as 5%")
    return text
