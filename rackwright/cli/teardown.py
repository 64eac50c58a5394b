"""`rackwright teardown INVENTORY`: remove what Rackwright put on the hosts, and say what it left."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path

from rackwright.adapter.run.declaring import declared_by
from rackwright.adapter.run.options import data_words
from rackwright.adapter.run.session import chosen_together
from rackwright.cli.inventories import add_choice, add_shared, refuse_unchosen
from rackwright.cli.rollout import agreed
from rackwright.exit_codes import ExitCode
from rackwright.inspect.run_script import HostOutput, spread
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError
from rackwright.paths import FIREWALL_SCRIPT
from rackwright.plan.change import Shell
from rackwright.processes import module
from rackwright.record.ending import stopped
from rackwright.record.handover import Handover
from rackwright.record.journal import read_record
from rackwright.record.record import TEARDOWN
from rackwright.record.states import RunState
from rackwright.rollout.launch import Run, begin, phase, read_by_pyinfra
from rackwright.settings.problems import some

Steps = Mapping[str, Sequence[str]]
"""By host, the steps that deploy.py calls."""


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
    if not arguments.dry:
        refuse_closed_behind(arguments.inventory, hosts)
    if not arguments.dry and not arguments.yes and not _agreed(names, arguments.purge, arguments.left_behind):
        print("nothing was done", file=sys.stderr)
        return ExitCode.ERROR
    with as_file(files("rackwright.operations.deploys") / "teardown.py") as deploy:
        if arguments.dry:
            return _dry_run(arguments, deploy, names, steps)
        started = begin(arguments.inventory, root, hosts, TEARDOWN, purge=arguments.purge, steps=steps)
        if why := started.vetoed():
            return started.end(ExitCode.ERROR, f"{why}; nothing was done")
        return started.end(*tear_down(started, deploy, arguments.purge, steps))


def refuse_closed_behind(inventory: str, hosts: Sequence[InventoryHost]) -> None:
    """Raise RackwrightError where hosts would stay that let in the gateways alone, and no gateway.

    A host that cannot be asked counts as the settings say.
    """
    chosen = {entry.name for entry in hosts}
    gateways = [entry for entry in hosts if entry.settings.is_gateway]
    if not gateways or not chosen.issuperset(one.host for one in gateways[0].settings.gateways):
        return
    backends = gateways[0].settings.backends
    behind = list(dict.fromkeys(server.host for one in backends for server in one.servers if server.host not in chosen))
    meant = gateways[0].settings.direct_is_closed
    outputs = _outputs(inventory, behind)
    closed = [name for name in behind if ("closed" in outputs[name].out if name in outputs else meant)]
    if closed:
        text = f"{some(closed)} would let in no clients: the endpoints' ports let in the gateways alone"
        text += "; nothing was done; next: gateway.close_direct: false, then: pyinfra "
        raise RackwrightError(f"{text}{inventory} deploy.py; then the same command", code="RW3509")


def _outputs(inventory: str, hosts: Sequence[str]) -> dict[str, HostOutput]:
    """Return what the hosts print on their ports; those that cannot be asked are missing."""
    try:
        found = spread(inventory, hosts, lambda _: Shell(CLOSED, timeout=60)) if hosts else {}
    except RackwrightError:
        return {}
    return {name: one for name, one in found.items() if one.ok}


CLOSED = f"if grep -qx direct=closed {FIREWALL_SCRIPT} 2>/dev/null; then echo closed; fi"


def tear_down(run: Run, deploy: Path, purge: bool, steps: Steps | None = None) -> tuple[int, str]:
    """Tear the run's hosts down; returns the exit status and what to say.

    steps: by host, what deploy.py calls, when only what other steps left is to go.
    """
    started = run.as_plain()
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
