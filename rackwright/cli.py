"""The `rackwright` command. Exit codes: 0 done, 1 error, 2 changes pending, 3 rolled back, 4 hands needed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from rackwright import __version__
from rackwright.commands import (
    advise,
    chat,
    check,
    drift,
    exec,
    explain,
    init,
    lock,
    logs,
    plan,
    render,
    rollback,
    rollout,
    runs,
    schema,
    status,
    teardown,
)
from rackwright.errors import RackwrightError
from rackwright.lab import cli as lab

ERROR = 1
COMMANDS = (
    init,
    check,
    render,
    lock,
    plan,
    drift,
    rollout,
    rollback,
    runs,
    status,
    logs,
    exec,
    chat,
    teardown,
    explain,
    advise,
    schema,
    lab,
)

Handler = Callable[[argparse.Namespace], int]


class Parser(argparse.ArgumentParser):
    """argparse ends with 2 on a wrong word; here 2 means that changes are pending."""

    def error(self, message: str) -> NoReturn:
        """Print usage and message, exit 1."""
        self.print_usage(sys.stderr)
        self.exit(ERROR, f"{self.prog}: {message}\n")


def parser() -> Parser:
    """The whole command line; every verb sets `handler`."""
    found = Parser(prog="rackwright", description="Bare-metal GPU hosts into LLM endpoints that have answered.")
    found.add_argument("--version", action="version", version=f"rackwright {__version__}")
    verbs = found.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(verbs)
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. What a user can mend is printed as text, never as a traceback."""
    args = parser().parse_args(words)
    handler: Handler = args.handler
    try:
        return handler(args)
    except RackwrightError as error:
        print(f"rackwright: {error}", file=sys.stderr)
    except BrokenPipeError:
        sys.stderr.close()
    except KeyboardInterrupt:
        print("rackwright: interrupted", file=sys.stderr)
    return ERROR
