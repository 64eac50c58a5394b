"""`rackwright report [RUN]`: a run as one HTML file, to read and to send on; or what it proved of its hardware."""

from __future__ import annotations

import argparse
from pathlib import Path

from rackwright.cli.inventories import add_vault
from rackwright.exit_codes import ExitCode
from rackwright.loading.files import site_root
from rackwright.record.journal import chosen_record
from rackwright.record.view.report import write


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("report", help="write a run as one HTML file that opens offline")
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run's name, or `last` (default: the last one)")
    parser.add_argument(
        "--hardware",
        action="store_true",
        help="write what the run proved of its hardware, without anything that names its owner; reads its hosts once "
        "more (default: the last run that asked an endpoint)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file to write (default: beside the run's record)")
    parser.add_argument("--site", default=".", metavar="DIR", help="the site's folder (default: here)")
    add_vault(parser)
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Write the report and print where it is; returns the exit status. Raises RackwrightError."""
    root = site_root(Path(args.site) / "site")
    if args.hardware:
        print(_hardware(root, args.run, args.out))
    else:
        print(write(chosen_record(root, args.run or "last"), args.out))
    return ExitCode.DONE


def _hardware(root: Path, run: str | None, out: Path | None) -> Path:
    # What connects to hosts takes longer to load than a report takes to write.
    from rackwright.hardware import newest_with_rows, write_bundle  # noqa: PLC0415

    return write_bundle(chosen_record(root, run) if run else newest_with_rows(root), out)
