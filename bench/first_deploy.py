"""Measures what uses the CPU of one lab host in a first deploy and in a switch, and what a switch takes by the clock.

Run it as root with `python bench/first_deploy.py INVENTORY`, on a lab of one host that was never deployed. Every
control group of the host is looked at ten times a second, and what each has used when it was seen last is added up by
what runs in it: a transient unit of Rackwright's, a login over SSH, Docker, a container, the rest of the machine.

`--megabits` slows what the host downloads down, `--load` the engine's load, until they are as long beside the rest as
they are at a site; the critical path then tells how much of the deploy's time they were.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from bench.peers.meter import Command, Meter, Outcome, Spent, seconds_of
from rackwright.record.journal import chosen_record, read_record
from rackwright.record.view.critical_path import critical_path, own_part
from rackwright.record.view.timeline_events import timeline_of
from rackwright_lab import Host, Lab

PAUSE = 0.1
BIN = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parents[1]
CHANGE = {"stream_interval": 5}
"""What the switch is made for."""
KINDS = (
    ("packages: apt, dpkg and our script", r"rackwright-job-docker"),
    ("jobs: pull, fetch", r"rackwright-job-(pull|fetch|model)"),
    ("jobs: check of the options, switch", r"rackwright-job-"),
    ("SSH: logins, sudo, readings, writing, following", r"/(ssh|sshd|session-|user-|user@)[^/]*"),
    ("dockerd and containerd", r"/(docker|containerd)\.service"),
    ("containers: fetch, check, judge, engine", r"docker-[0-9a-f]{64}|/docker/[0-9a-f]{64}"),
    ("the endpoint's unit", r"/rackwright-(?!job-|lab)"),
)
OTHER = "systemd, journald and all else"


class Groups(threading.Thread):
    """Looks at the control groups of a host, again and again."""

    def __init__(self, host: Host) -> None:
        super().__init__(daemon=True)
        self._top, self._over = host.machine.group, threading.Event()
        self._before = self._look()
        self._seen: dict[str, float] = {}

    def __enter__(self) -> Groups:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        """Remember what each group has used when it was seen last."""
        while not self._over.wait(PAUSE):
            self._seen |= self._look()

    @property
    def spent(self) -> dict[str, float]:
        """CPU seconds by kind, those of groups that have gone included."""
        found: defaultdict[str, float] = defaultdict(float)
        for name, used in own_parts(self._seen).items():
            before = own_parts(self._before).get(name, 0.0)
            found[kind_of(name)] += max(0.0, used - before)
        return dict(found)

    def _look(self) -> dict[str, float]:
        found: dict[str, float] = {}
        # Groups end while they are looked through, which os.walk takes as it comes.
        for folder in map(Path, (folder_path for folder_path, _, _ in os.walk(self._top))):
            with suppress(OSError):
                found[str(folder.relative_to(self._top))] = seconds_of(folder)
        return found


def own_parts(used: Mapping[str, float]) -> dict[str, float]:
    """Return what each group has used itself: less what the groups directly below it have."""
    below: defaultdict[str, float] = defaultdict(float)
    for name, seconds in used.items():
        if name != ".":
            below[str(Path(name).parent)] += seconds
    return {name: seconds - below[name] for name, seconds in used.items()}


def kind_of(group: str) -> str:
    """Return what runs in a group of that name."""
    return next((kind for kind, pattern in KINDS if re.search(pattern, f"/{group}")), OTHER)


def measured(host: Host, *options: str, inventory: str) -> tuple[Outcome, Spent, dict[str, float]]:
    """One deploy, with what it costs."""
    words = [str(BIN / "pyinfra"), inventory, "deploy.py", "-y", "--limit", host.name, *options]
    with Meter([host], settle=1.0) as meter, Groups(host) as groups:
        outcome, spent = meter.spend(Command(words, ROOT, {"PYINFRA_PROGRESS": "off"}))
    return outcome, spent, groups.spent


def show(title: str, spent: Spent, by_kind: Mapping[str, float]) -> None:
    """Print one table."""
    print(f"\n{title}: {spent.wall:.1f} s; {spent.others:.1f} other cores were busy at the same time\n")
    print("| | CPU s |\n|---|---|")
    for kind, seconds in sorted({**by_kind, "control machine": spent.client}.items(), key=lambda row: -row[1]):
        print(f"| {kind} | {seconds:.2f} |")


def switch_parts(journal: Sequence[str]) -> dict[str, float]:
    """Seconds of the last switch, from the endpoint's journal (short-unix): stop, start up to the server, its load."""
    times = [(float(row.split(" ", 1)[0]), row) for row in journal if re.match(r"\d+\.\d+ ", row)]
    last = {event: max((at for at, row in times if f" {event}" in row), default=0.0) for event in WORDS}
    return {
        "docker stop": last["Stopped "] - last["Stopping "],
        "start": last["Started "] - last["Starting "],
    }


WORDS = ("Stopping ", "Stopped ", "Starting ", "Started ")
"""How systemd begins what it says of a unit."""


def show_path(host: Host) -> None:
    """Print the chain that decided how long the last deploy of a host took."""
    timeline = timeline_of(read_record(chosen_record(ROOT, "last")))
    path = critical_path(timeline, timeline.hosts[host.name])
    print("\n| critical path | s |\n|---|---|")
    for piece in path:
        print(f"| {piece.phase} {piece.text} | {piece.seconds:.1f} |")
    needed = own_part(path) * timeline.duration
    share = timeline.duration / needed
    print(f"\n{timeline.duration:.1f} s are {share:.2f} x its own downloads and load, {needed:.1f} s\n")


def main() -> None:
    """Deploy, switch, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("inventory")
    parser.add_argument("--megabits", type=int, help="how many the host downloads in a second")
    parser.add_argument("--load", type=int, help="seconds that the engine loads")
    arguments = parser.parse_args()
    host = Lab.open().hosts[0]
    if arguments.megabits:
        host.limit_line(arguments.megabits)
    if arguments.load:
        host.set_engine_faults({"fault": "load_seconds", "value": arguments.load})
    for title, options in (("first deploy", ()), ("switch", ("--data", f"engine={json.dumps(CHANGE)}"))):
        outcome, spent, by_kind = measured(host, *options, inventory=arguments.inventory)
        if outcome.status:
            sys.exit(outcome.output)
        show(title, spent, by_kind)
        show_path(host)
    time.sleep(0.5)
    journal = host.run("journalctl --sync; journalctl -u rackwright-llm --no-pager -o short-unix").stdout.splitlines()
    for name, seconds in switch_parts(journal).items():
        print(f"{name}: {seconds:.2f} s")


if __name__ == "__main__":
    main()
