"""`rackwright runs [RUN]`: what was done to the fleet, by whom, and how it ended."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from rackwright.errors import RackwrightError
from rackwright.fleet.journal import FOLDER, Event, read_record, summary
from rackwright.settings.files import site_root

TOLD = ("host", "row", "failure", "phase", "bake", "end")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("runs", help="list the runs of this site, or show one")
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run's name, or `last`")
    parser.add_argument("--site", default=".", metavar="DIR", help="the site's folder (default: here)")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Print the runs, the newest last, or the events of one; returns the exit status. Raises RackwrightError."""
    folder = site_root(Path(args.site) / "site").absolute() / FOLDER
    records = sorted(folder.glob("*.jsonl"))
    if args.run is None:
        for path in records:
            print(_line(path))
        return 0
    for event in read_record(_chosen(records, args.run, folder)):
        if event["kind"] in TOLD:
            print(_event(event))
    return 0


def _chosen(records: list[Path], name: str, folder: Path) -> Path:
    found = records[-1:] if name == "last" else [path for path in records if path.stem == name]
    if not found:
        raise RackwrightError(f"{folder} has no run {name}; next: rackwright runs")
    return found[0]


def _line(path: Path) -> str:
    told = summary(path.stem, read_record(path))
    states = ", ".join(f"{count} {state}" for state, count in Counter(told.hosts.values()).items())
    return f"{told.id}  {told.who}  {told.what}  [{states or 'no host'}]  {told.end}"


def _event(event: Event) -> str:
    words = [f"{key}={value}" for key, value in event.items() if key not in ("time", "kind", "host")]
    return f"{event['time'][11:23]}  {event.get('host', '-')}  {event['kind']}  {'  '.join(words)}"
