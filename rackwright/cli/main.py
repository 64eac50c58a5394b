"""The `rackwright` command. Exit codes: rackwright.exit_codes."""

from __future__ import annotations

import argparse
import gc
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module
from importlib.metadata import entry_points
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from rackwright import __version__
from rackwright.cli.habits import option_hints, verb_hint
from rackwright.cli.old_forms import RENAMED_VERBS, renewed
from rackwright.cli.vault import open_vault
from rackwright.cli.verbs import BEHIND_DASHES, BELOW, EXAMPLES, PACKAGES, VERB_GROUPS, VERBS
from rackwright.exit_codes import ExitCode
from rackwright.garbage import collect_seldom
from rackwright.masks import tell_mistake
from rackwright.messages import RackwrightError, coded, name_inventory, printable
from rackwright.processes import ReportedInterrupt, end_undisturbed, ended_in_order

GROUP = "rackwright.commands"
"""The entry points by which other packages bring verbs of their own: modules with `add_parser`, too."""

VERSION = "--version"

Handler = Callable[[argparse.Namespace], int]


class Formatter(argparse.HelpFormatter):
    """Help that names the default of an option that has one, and does not say it itself."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        shown = f" (default: {action.default})" if action.option_strings and "default" not in text else ""
        says = action.default != "" and isinstance(action.default, int | float | str) and action.nargs != 0
        return text + (shown if says else "")


class Parser(argparse.ArgumentParser):
    """argparse ends with 2 on a wrong word; here 2 means that changes are pending."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**{"formatter_class": Formatter, **fields})

    verb, verb_options = "", frozenset[str]()
    """The command that was typed, and its options."""
    typed: Parser | None = None
    """The parser of that command."""
    verbs: argparse._SubParsersAction[Parser] | None = None
    """All verbs; only of the whole command line."""

    def format_help(self) -> str:
        """Return the help; of the whole command line, the verbs in their groups with an example each."""
        return super().format_help() if self.verbs is None else "\n".join(_overview(self.verbs)) + "\n"

    def error(self, message: str) -> NoReturn:
        """Print usage, message and what is typed here instead of somebody's habit, exit 1."""
        nearest = self.typed or self
        nearest.print_usage(sys.stderr)
        more = "".join(f"{self.prog}: {hint}\n" for hint in option_hints(message, self.verb, self.verb_options))
        refused = f"the command line is not understood: {message}; next: {nearest.prog} --help"
        self.exit(ExitCode.ERROR, f"{self.prog}: {coded('RW1024', refused)}\n{more}")


def parser(verb: str | None = None) -> Parser:
    """Return the command line, of one verb or of all; every verb sets `handler`."""
    found = Parser(prog="rackwright", usage="rackwright VERB [INVENTORY] [--limit HOST]")
    found.add_argument(VERSION, action="version", version=f"rackwright {__version__}")
    verbs = found.add_subparsers(dest="command", required=True, metavar="VERB", prog="rackwright")
    # A verb's modules are loaded only when it is asked for: all of them take longer than asking a hundred hosts.
    for name in _asked_for(verb):
        for module in _modules_of(name):
            module.add_parser(verbs)
        _explain(verbs, {**EXAMPLES, **BELOW})
        if name in BEHIND_DASHES:
            _with_dashes(verbs.choices[name], name)
    if verb in VERBS:
        found.verb, found.verb_options, found.typed = verb, _options_of(verbs.choices[verb]), verbs.choices[verb]
    for brought in () if verb in (*VERBS, VERSION) else entry_points(group=GROUP):
        if brought.name not in VERBS:
            brought.load().add_parser(verbs)
    found.verbs = verbs
    return found


def _modules_of(name: str) -> Iterator[Any]:
    """Yield the module of a verb; none where its package is not installed."""
    if name not in PACKAGES:
        yield import_module(f"rackwright.cli.{name.replace('-', '_')}")
    yield from (brought.load() for brought in entry_points(group=GROUP, name=name))


def _refuse_absent(verb: str) -> None:
    """Raise RackwrightError for a verb whose package is not installed."""
    if verb in PACKAGES and not entry_points(group=GROUP, name=verb):
        package = PACKAGES[verb]
        install = f"next: in a checkout of {__version__}: pip install ./packages/{package.removeprefix('rackwright-')}"
        raise RackwrightError(f"{verb} is in the package {package}, which is not installed; {install}", code="RW1029")


def _explain(verbs: argparse._SubParsersAction[Parser], examples: Mapping[str, str]) -> None:
    """Let each verb's help begin with what it does, and end with an example; those of verbs included."""
    for choice in verbs._choices_actions:
        verb, text = verbs.choices[choice.dest], choice.help or ""
        verb.description = f"{text[:1].upper()}{text[1:]}."
        if example := examples.get(verb.prog.removeprefix("rackwright ")):
            verb.epilog = f"example: {example}"
        for below in [action for action in verb._actions if isinstance(action, argparse._SubParsersAction)]:
            _explain(below, examples)


def _with_dashes(verb: argparse.ArgumentParser, name: str) -> None:
    _, metavar, text = BEHIND_DASHES[name]
    verb.usage = f"{verb.format_usage().removeprefix('usage: ').rstrip()} -- {metavar}"
    verb.add_argument_group(f"-- {metavar}", text)


def _overview(verbs: argparse._SubParsersAction[Parser]) -> Iterator[str]:
    helps = {choice.dest: choice.help or "" for choice in verbs._choices_actions}
    yield "usage: rackwright VERB [INVENTORY] [--limit HOST]"
    yield "\nBare-metal GPU hosts into LLM endpoints that have answered. A deploy is `pyinfra INVENTORY deploy.py`."
    brought = {verb: f"rackwright {verb} --help" for verb in helps if verb not in VERBS}
    for title, examples in {**VERB_GROUPS, **({"Other packages": brought} if brought else {})}.items():
        yield f"\n{title}:"
        for verb, example in examples.items():
            yield f"  {verb:<12} {helps.get(verb) or _package_of(verb)}\n{'':<15}{example}"
    yield "\nINVENTORY may be left out where the site has one. Options of a verb: rackwright VERB --help"


def _package_of(verb: str) -> str:
    return f"not installed: the package {PACKAGES[verb]}" if verb in PACKAGES else ""


def parsed(commands: Parser, words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; what stands behind `--` belongs to the verb's own argument."""
    behind = BEHIND_DASHES.get(words[0])
    before = list(takewhile(lambda arg: arg != "--", words))
    if behind is None or {"-h", "--help"}.intersection(before):
        return commands.parse_args(words)
    if len(words) <= len(before) + 1:
        commands.error(f"the following arguments are required: -- {behind.metavar}")
    return commands.parse_args(before, argparse.Namespace(**{behind.dest: list(words[len(before) + 1 :])}))


def _in_new_form(commands: Parser, typed: Sequence[str]) -> list[str]:
    """Return the command line in the new form; print the new form of an old one."""
    if commands.verb not in VERBS or commands.verbs is None:
        return list(typed)
    words = renewed(typed, _with_values(commands.verbs.choices[commands.verb]))
    if words != list(typed):
        text = f"this form ends with the next version; type: {shlex.join(['rackwright', *words])}"
        print(f"rackwright: {printable(text)}", file=sys.stderr)
    return words


def _with_values(verb: argparse.ArgumentParser) -> set[str]:
    found = {name for action in verb._actions if action.nargs != 0 for name in action.option_strings}
    below = [action for action in verb._actions if isinstance(action, argparse._SubParsersAction)]
    return found.union(*(_with_values(inner) for action in below for inner in action.choices.values()))


def _asked_for(argument: str | None) -> Sequence[str]:
    return [argument] if argument in VERBS else () if argument == VERSION else VERBS


def _options_of(verb: argparse.ArgumentParser) -> frozenset[str]:
    return frozenset(re.findall(r"--[a-z-]+", verb.format_usage()))


def _given(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Let `--data` count wherever the command loads settings; a resumed run has its own."""
    if args.command == "resume" or not getattr(args, "data", None):
        return nullcontext()
    data = import_module("rackwright.cli.inventories").data_of(args)
    found: AbstractContextManager[None] = import_module("rackwright.adapter.run.options").given(data)
    return found


def _needs_inventory(args: argparse.Namespace) -> bool:
    """Return True unless a verb has said that it is asked for what no inventory is needed for."""
    needs: Callable[[argparse.Namespace], bool] | None = getattr(args, "needs_inventory", None)
    return needs is None or needs(args)


def _verbs() -> list[str]:
    return [*VERBS, *PACKAGES, *(brought.name for brought in entry_points(group=GROUP))]


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
    verb = RENAMED_VERBS.get(typed[0], typed)[0]
    if verb not in VERBS and (text := verb_hint(typed, _verbs())):
        print(f"rackwright: {coded('RW1023', text)}", file=sys.stderr)
        return ExitCode.ERROR
    try:
        _refuse_absent(verb)
        commands = parser(verb)
        words = _in_new_form(commands, typed)
        args = parsed(commands, words)
        collect_seldom()
        gc.enable()
        handler: Handler = args.handler
        open_vault(args)
        if getattr(args, "inventory", "") is None and _needs_inventory(args):
            args.inventory = import_module("rackwright.cli.default_inventory").default_inventory(
                getattr(args, "limit", ())
            )
        elif (inventory := getattr(args, "inventory", "")) and not Path(inventory).expanduser().exists():
            import_module("rackwright.cli.default_inventory").refuse_host(inventory, words)
        name_inventory(getattr(args, "inventory", "") or "")
        with _given(args):
            return handler(args)
    except RackwrightError as error:
        print(f"rackwright: {error}", file=sys.stderr)
    except BrokenPipeError:
        sys.stderr.close()
    return ExitCode.ERROR
