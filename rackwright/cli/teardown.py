"""`rackwright teardown INVENTORY`: remove what Rackwright put on the hosts, and say what it left."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from rackwright.adapter.run.declaring import declared_by
from rackwright.adapter.run.options import data_words
from rackwright.adapter.run.session import chosen_together
from rackwright.cli.direct_ports import Steps, closed_behind, open_direct
from rackwright.cli.inventories import add_choice, add_shared, refuse_unchosen
from rackwright.cli.rollout import agreed
from rackwright.exit_codes import ExitCode
from rackwright.loading.files import site_root
from rackwright.messages import RackwrightError
from rackwright.processes import module
from rackwright.record.ending import stopped
from rackwright.record.handover import Handover
from rackwright.record.journal import read_record
from rackwright.record.record import TEARDOWN
from rackwright.record.states import RunState
from rackwright.rollout.launch import Run, begin, phase, read_by_pyinfra
from rackwright.settings.problems import some


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("teardown", help="remove what Rackwright put on the hosts, and nothing else")
    add_choice(parser)
    parser.add_argument("--purge", action="store_true", help="remove models and images too")
    explanation = "remove only what is left of steps that deploy.py no longer calls"
    parser.add_argument("--left-behind", action="store_true", help=explanation)
    parser.add_argument("--dry", action="store_true", help="show what would be removed, and remove nothing")
    add_shared(parser, "yes")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the teardown through pyinfra; returns its exit status."""
    if not arguments.dry:
        refuse_unchosen(arguments)
    hosts = chosen_together(arguments.inventory, arguments.limit, arguments.only)
    root = site_root(Path(arguments.inventory).expanduser()).absolute()
    steps = (
        {name: declared.steps for name, declared in declared_by(root, hosts).items()} if arguments.left_behind else None
    )
    names = [entry.name for entry in hosts]
    closed = closed_behind(arguments.inventory, hosts, steps)
    if closed:
        print(f"rackwright: the ports of {some(closed)} let in the gateways alone, and are opened first", flush=True)
    if not arguments.dry and not arguments.yes and not _agreed(names, arguments.purge, arguments.left_behind):
        print("nothing was done", file=sys.stderr)
        return ExitCode.ERROR
    with as_file(files("rackwright.operations.deploys") / "teardown.py") as deploy:
        if arguments.dry:
            return _dry_run(arguments, deploy, names, steps)
        started = begin(arguments.inventory, root, hosts, TEARDOWN, purge=arguments.purge, steps=steps, opens=closed)
        if why := started.vetoed():
            return started.end(ExitCode.ERROR, f"{why}; nothing was done")
        return started.end(*tear_down(started, deploy, arguments.purge, steps, closed))


def tear_down(
    run: Run, deploy: Path, purge: bool, steps: Steps | None = None, opens: Sequence[str] = ()
) -> tuple[int, str]:
    """Tear the run's hosts down; returns the exit status and what to say.

    steps: by host, what deploy.py calls, when only what other steps left is to go.
    opens: hosts behind the gateways, whose ports are opened to direct clients first.
    """
    started = run.as_plain()
    try:
        open_direct(started, opens)
    except RackwrightError as error:
        return ExitCode.ERROR, str(error)
    started.note("phase", name=TEARDOWN)
    status = started.pyinfra(deploy, started.hosts, {}, purge=purge, steps=steps)
    found = phase(started, TEARDOWN)
    unfinished = [host for host in started.hosts if found.states.get(host) != RunState.DONE]
    if steps and not unfinished:
        return status, "done: what steps that are no longer called had left is gone"
    retained = any(event["kind"] == "left" and event.get("kept") for event in read_record(started.record))
    gone = [host for host in started.hosts if host not in unfinished]
    return stopped(gone) if unfinished else status, ending(unfinished, retained)


def ending(unfinished: Sequence[str], retained: bool) -> str:
    """Return how a teardown ended.

    unfinished: hosts that may still have something of it. retained: something stays on purpose.
    """
    if unfinished:
        return f"not everything is gone, or known to be gone, from {', '.join(unfinished)}, see above"
    return "done: gone, but for what is left on purpose, see above" if retained else "done: nothing of it is left"


def _dry_run(arguments: argparse.Namespace, deploy: Path, hosts: list[str], steps: Steps | None) -> int:
    inventory = Path(arguments.inventory).expanduser().absolute()
    words = [*module("pyinfra"), read_by_pyinfra(inventory), str(deploy), "--dry"]
    words += [*(argument for name in hosts for argument in ("--limit", name)), *data_words({})]
    environment = Handover(inventory=str(inventory), purge=arguments.purge, steps=steps).environment
    return subprocess.run(words, cwd=site_root(inventory), env=environment, check=False).returncode


def _agreed(hosts: list[str], purge: bool, left_behind: bool) -> bool:
    what = "removes from {} what steps that deploy.py no longer calls have left"
    what = what if left_behind else "stops the endpoints of {} and removes what Rackwright put there"
    print(f"This {what.format(', '.join(hosts))}", end="")
    return agreed(", models and images included." if purge else "; models and images stay.")
