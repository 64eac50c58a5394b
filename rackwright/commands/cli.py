"""The `rackwright` command. Exit codes: rackwright.exit_codes."""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import NoReturn

from rackwright import __version__
from rackwright.commands.habits import option_hints, verb_hint
from rackwright.commands.vault import open_vault
from rackwright.exit_codes import ExitCode
from rackwright.garbage import collect_seldom
from rackwright.masks import tell_mistake
from rackwright.messages import RackwrightError, coded, name_inventory
from rackwright.processes import ReportedInterrupt, end_undisturbed, ended_in_order

VERBS = (
    "init",
    "check",
    "render",
    "lock",
    "plan",
    "drift",
    "rollout",
    "rollback",
    "rebuild",
    "drain",
    "undrain",
    "reboot",
    "runs",
    "report",
    "resume",
    "quarantine",
    "firewall",
    "status",
    "logs",
    "exec",
    "chat",
    "bench",
    "unlock",
    "teardown",
    "engine-data",
    "explain",
    "advise",
    "schema",
)
"""Each is a module of rackwright.commands with `add_parser`."""
GROUP = "rackwright.commands"
"""The entry points by which other packages bring verbs of their own: modules with `add_parser`, too."""

VERSION = "--version"

Handler = Callable[[argparse.Namespace], int]


class Parser(argparse.ArgumentParser):
    """argparse ends with 2 on a wrong word; here 2 means that changes are pending."""

    verb, verb_options = "", frozenset[str]()
    """The command that was typed, and its options."""

    def error(self, message: str) -> NoReturn:
        """Print usage, message and what is typed here instead of somebody's habit, exit 1."""
        self.print_usage(sys.stderr)
        more = "".join(f"{self.prog}: {line}\n" for line in option_hints(message, self.verb, self.verb_options))
        refused = f"the command line is not understood: {message}; next: {self.prog} --help"
        self.exit(ExitCode.ERROR, f"{self.prog}: {coded('RW1024', refused)}\n{more}")


def parser(verb: str | None = None) -> Parser:
    """The command line, of one verb or of all; every verb sets `handler`."""
    found = Parser(prog="rackwright", description="Bare-metal GPU hosts into LLM endpoints that have answered.")
    found.add_argument(VERSION, action="version", version=f"rackwright {__version__}")
    verbs = found.add_subparsers(dest="command", required=True, metavar="COMMAND")
    # A verb's modules are loaded only when it is asked for: all of them take longer than asking a hundred hosts.
    for name in _asked_for(verb):
        import_module(f"rackwright.commands.{name.replace('-', '_')}").add_parser(verbs)
    if verb in VERBS:
        found.verb, found.verb_options = verb, _options_of(verbs.choices[verb])
    for brought in () if verb in (*VERBS, VERSION) else entry_points(group=GROUP):
        brought.load().add_parser(verbs)
    return found


def _asked_for(word: str | None) -> Sequence[str]:
    return [word] if word in VERBS else () if word == VERSION else VERBS


def _options_of(verb: argparse.ArgumentParser) -> frozenset[str]:
    return frozenset(re.findall(r"--[a-z-]+", verb.format_usage()))


def _given(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Let `--data` count wherever the command loads settings; a resumed run has its own."""
    if args.command == "resume" or not getattr(args, "data", None):
        return nullcontext()
    data = import_module("rackwright.commands.inventories").data_of(args)
    found: AbstractContextManager[None] = import_module("rackwright.pyinfra_glue.options").given(data)
    return found


def _verbs() -> list[str]:
    return [*VERBS, *(brought.name for brought in entry_points(group=GROUP))]


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. What a user can fix is printed as text, never as a traceback."""
    sys.excepthook = tell_mistake
    try:
        with ended_in_order():
            return _main(words)
    except ReportedInterrupt:
        end_undisturbed()
    except KeyboardInterrupt as error:
        end_undisturbed()
        with suppress(OSError):
            print(f"\nrackwright: {str(error) or 'interrupted'}", file=sys.stderr)
    finally:
        name_inventory("")
    return ExitCode.INTERRUPTED


def _main(words: Sequence[str] | None) -> int:
    if sys.stdin is None:
        # It was closed (<&-): what asks then finds its end, and no socket gets its number.
        sys.stdin = Path(os.devnull).open()  # noqa: SIM115 - as long as the process lives
    typed = sys.argv[1:] if words is None else words
    # What is loaded stays: looking through it for garbage again and again is an eighth of a verb's start.
    gc.disable()
    if not typed:
        parser().print_help()
        return ExitCode.DONE
    if typed[0] not in VERBS and (text := verb_hint(typed, _verbs())):
        print(f"rackwright: {coded('RW1023', text)}", file=sys.stderr)
        return ExitCode.ERROR
    try:
        args = parser(typed[0]).parse_args(typed)
        collect_seldom()
        gc.enable()
        handler: Handler = args.handler
        open_vault(args)
        if getattr(args, "inventory", "") is None:
            args.inventory = import_module("rackwright.commands.default_inventory").default_inventory(
                getattr(args, "hosts", ())
            )
        name_inventory(getattr(args, "inventory", ""))
        with _given(args):
            return handler(args)
    except RackwrightError as error:
        print(f"rackwright: {error}", file=sys.stderr)
    except BrokenPipeError:
        sys.stderr.close()
    return ExitCode.ERROR
