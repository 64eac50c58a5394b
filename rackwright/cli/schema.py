"""`rackwright schema`: the settings' JSON Schema for editors, and their reference page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rackwright.exit_codes import ExitCode
from rackwright.messages import writing
from rackwright.settings.json_schema import json_text, markdown


def add_parser(subparsers: Any) -> None:
    """Add `schema` to the command line."""
    parser = subparsers.add_parser("schema", help="print the JSON Schema of the settings")
    parser.add_argument("--markdown", action="store_true", help="the reference page instead")
    parser.add_argument("--out", metavar="FILE", help="write there instead of printing")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Print or write; returns 0. Raises RackwrightError where it cannot be written."""
    text = markdown() if args.markdown else json_text()
    if args.out:
        with writing(Path(args.out)):
            Path(args.out).write_text(text)
    else:
        print(text, end="")
    return ExitCode.DONE
