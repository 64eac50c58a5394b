"""`rackwright completion SHELL`: the completion of verbs and options, for bash, zsh and fish."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from rackwright.exit_codes import ExitCode

SHELLS = ("bash", "zsh", "fish")
FILES = ("INVENTORY", "FILE", "DIR")
"""Arguments, by their names in the usage, that are completed as files."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("completion", help="print a shell's completion of verbs and options")
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Print the script; returns the exit status."""
    # Only here: no other verb needs shtab, or the parsers of all verbs.
    import shtab  # noqa: PLC0415

    from rackwright.cli.main import parser  # noqa: PLC0415

    commands = parser()
    for action in _actions(commands):
        if action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # as shtab wants it
    print(shtab.complete(commands, args.shell))
    return ExitCode.DONE


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
