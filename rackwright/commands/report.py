"""`rackwright report [RUN]`: a run as one HTML file, to read and to send on."""

from __future__ import annotations

import argparse
from pathlib import Path

from rackwright.fleet.view.report import write
from rackwright.loading.files import site_root
from rackwright.runs.journal import chosen_record


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("report", help="write a run as one HTML file that opens offline")
    parser.add_argument("run", nargs="?", default="last", metavar="RUN", help="a run's name (default: the last one)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file to write (default: beside the run's record)")
    parser.add_argument("--site", default=".", metavar="DIR", help="the site's folder (default: here)")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Write the report and print where it is; returns the exit status. Raises RackwrightError."""
    print(write(chosen_record(site_root(Path(args.site) / "site"), args.run), args.out))
    return 0
