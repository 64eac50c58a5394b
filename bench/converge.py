"""Measures a run over converged hosts side by side: Ansible, pyinfra's own operations, bare clients, and ours.

Run it with `python bench/converge.py INVENTORY [--hosts 4 16] [--rounds 3]` as root, on hosts of a lab that are
deployed and serve. Each tool must first be seen to change nothing; then all are measured in turn, so that all meet the
same machine. What a bare client does is log in and run our own reading, once. `--keep` adds the figures to
bench/figures/converge.json and draws docs/pictures/converge.svg from all that are in it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.peers.figures import Sitting, figure_of, sitting_of, table
from bench.peers.meter import Meter, Spent
from bench.peers.plot import picture
from bench.peers.state import PYTHON, tasks_of, written
from bench.peers.tools import OURS, ChangedError, Tool, tools
from rackwright.adapter.run.session import chosen_hosts
from rackwright_lab import Host, Lab

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "bench" / "figures" / "converge.json"
PLOT = ROOT / "docs" / "pictures" / "converge.svg"
AT_REST = 30.0
"""Seconds for which the hosts are watched at rest: as long as their own timer takes."""


def main() -> None:
    """Measure, print the tables, and keep them when asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inventory")
    parser.add_argument(
        "--hosts", type=int, nargs="+", help="how many of the hosts, a sitting each; default: 1, 4, 16, ..."
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="add the figures to the kept ones, and draw the plot")
    options = parser.parse_args()
    entries = chosen_hosts(options.inventory, ())
    by_name = {host.name: host for host in Lab.open().hosts}
    hosts = [by_name[entry.name] for entry in entries]
    with tempfile.TemporaryDirectory() as folder:
        prepare(hosts, Path(folder))
        for count in options.hosts or counts(len(hosts)):
            measured = tools(options.inventory, entries[:count], count == len(hosts), Path(folder))
            tasks = tasks_of(json.loads(Path(folder, "state.json").read_text()))
            done = sitting(measured, hosts[:count], tasks, options.rounds)
            print("\n".join(table(done, OURS)), flush=True)
            if options.keep:
                keep(done)


def counts(total: int) -> list[int]:
    """Numbers of hosts for a sitting each: powers of four, and all."""
    return [*(4**power for power in range(total.bit_length()) if 4**power < total), total]


def prepare(hosts: Sequence[Host], folder: Path) -> None:
    """Prepare what the other tools need: Python on the hosts for Ansible's modules, and the state to converge to."""
    for host in hosts:
        host.run(PYTHON)
    written(hosts[0], folder)


def sitting(measured: Sequence[Tool], hosts: Sequence[Host], tasks: int, rounds: int) -> Sitting:
    """See that no tool changes anything, then measure all in turn. Raises ChangedError."""
    with Meter(hosts) as meter:
        unchanged = {tool.name: seen_unchanged(meter, tool, hosts) for tool in measured}
        idle = meter.at_rest(AT_REST)
        print(
            f"{len(hosts)} hosts at rest: {idle:.2f} CPU seconds a second, left out; load {os.getloadavg()}", flush=True
        )
        spent: dict[str, list[Spent]] = {tool.name: [] for tool in measured}
        for _ in range(rounds):
            for tool in measured:
                outcome, one = meter.spend(tool.command)
                tool.unchanged(outcome, [host.name for host in hosts])
                spent[tool.name].append(one)
    figures = {name: figure_of(spent[name], *unchanged[name]) for name in spent}
    return Sitting(len(hosts), rounds, tasks, figures)


def seen_unchanged(meter: Meter, tool: Tool, hosts: Sequence[Host]) -> tuple[int, int]:
    """Peak memory in bytes and commands a host of a tool that has changed nothing. Raises ChangedError."""
    outcome, memory, commands = meter.watch(tool.command)
    try:
        tool.unchanged(outcome, [host.name for host in hosts])
    except ChangedError as error:
        raise ChangedError(f"{tool.name} changes converged hosts, or fails there: {error}") from error
    print(f"{tool.name}: no change; {memory / 2**20:.0f} MiB, {commands} commands a host", flush=True)
    return memory, commands


def stored() -> list[Sitting]:
    """Return the figures that are stored in the repository."""
    return [sitting_of(values) for values in json.loads(KEPT.read_text())] if KEPT.exists() else []


def keep(done: Sitting) -> None:
    """Put a sitting in the place of the one with as many hosts, and draw all of them."""
    found = sorted([*(one for one in stored() if one.hosts != done.hosts), done], key=lambda one: one.hosts)
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps([one.as_json for one in found], indent=1) + "\n")
    PLOT.write_text(picture(stored(), OURS))


if __name__ == "__main__":
    main()
