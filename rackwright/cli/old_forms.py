"""Forms of the command line before 0.2.0: each works in this version, as the new form that it stands for. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

RENAMED_VERBS = {"lock": ("pin",), "unlock": ("lease", "break")}
RENAMED_OPTIONS = {
    **dict.fromkeys((("check", "--host"), ("render", "--host"), ("engine-data", "--host")), "--limit"),
    ("quarantine", "--why"): "--reason",
    ("reboot", "--back-within"): "--timeout",
}
"""By verb and option."""
SUFFIXES = (".py", ".ini", ".yml", ".yaml", ".json")
OLD_VALUES = frozenset({"-i", "--inventory", "--host", "--why", "--time-limit"})
"""Options of old forms that take a value."""


@dataclass
class Typed:
    """A command line in parts."""

    verb: str
    words: list[str] = field(default_factory=list)
    """Words that are neither options nor values of options."""
    options: list[str] = field(default_factory=list)
    """Options with their values."""
    behind: list[str] | None = None
    """The words behind `--`; None without one."""

    def joined(self) -> list[str]:
        """Return the command line, options last."""
        return [self.verb, *self.words, *self.options, *([] if self.behind is None else ["--", *self.behind])]

    def take(self, *names: str) -> list[str]:
        """Remove an option that takes a value; return its values."""
        found, others, words = list[str](), list[str](), iter(self.options)
        for arg in words:
            name, equals, value = arg.partition("=")
            if name in names:
                found.append(value if equals else next(words, ""))
            else:
                others.append(arg)
        self.options = others
        return found

    def limit(self, hosts: Sequence[str]) -> None:
        """Choose hosts."""
        self.options = [*(arg for host in hosts for arg in ("--limit", host)), *self.options]


def renewed(words: Sequence[str], with_values: Collection[str]) -> list[str]:
    """Return the new form of a command line; one in the new form is returned as it is.

    words: the command line behind `rackwright`. with_values: the verb's options that take a value.
    """
    verb, *given = [*RENAMED_VERBS.get(words[0], words[:1]), *words[1:]]
    given = [_renamed(verb, arg) for arg in given]
    typed = _parted(verb, given, {*with_values, *OLD_VALUES})
    before = typed.joined()
    if change := CHANGES.get(verb):
        change(typed)
    return typed.joined() if typed.joined() != before else [verb, *given]


def _renamed(verb: str, arg: str) -> str:
    name, equals, value = arg.partition("=")
    return f"{RENAMED_OPTIONS.get((verb, name), name)}{equals}{value}"


def _parted(verb: str, given: Sequence[str], with_values: Collection[str]) -> Typed:
    typed, words = Typed(verb), list(takewhile(lambda arg: arg != "--", given))
    if len(words) < len(given):
        typed.behind = list(given[len(words) + 1 :])
    takes_next = False
    for arg in words:
        is_option = takes_next or (arg.startswith("-") and len(arg) > 1)
        takes_next = not takes_next and arg in with_values
        (typed.options if is_option else typed.words).append(arg)
    return typed


def is_inventory(arg: str) -> bool:
    """Return True for what names a file or folder of an inventory, and cannot be a host's name."""
    return ("/" in arg and not arg.startswith("@")) or arg.endswith(SUFFIXES) or Path(arg).exists()


def _hosts(typed: Typed) -> None:
    """`VERB HOST... -i INVENTORY`."""
    named = typed.take("-i", "--inventory")
    hosts = [arg for arg in typed.words if not is_inventory(arg)]
    typed.words = [*named, *(arg for arg in typed.words if is_inventory(arg))]
    typed.limit(hosts)


def _firewall(typed: Typed) -> None:
    """`firewall pause INVENTORY HOST...`."""
    if typed.words[:1] in (["pause"], ["resume"]):
        typed.limit(typed.words[2:])
        typed.words = typed.words[:2]


def _quarantine(typed: Typed) -> None:
    """`quarantine INVENTORY --add HOST`."""
    hosts = [arg for arg in typed.words if not is_inventory(arg)]
    if {"--add", "--release"}.intersection(typed.options):
        typed.words = [arg for arg in typed.words if is_inventory(arg)]
        typed.limit(hosts)


def _behind_dashes(typed: Typed) -> None:
    """`chat INVENTORY QUESTION`, `exec INVENTORY CMD`."""
    if typed.behind is None and len(typed.words) > 1:
        typed.behind, typed.words = typed.words[1:], typed.words[:1]


def _bench(typed: Typed) -> None:
    """`bench compare RUN RUN`; `--time-limit MINUTES`."""
    for minutes in typed.take("--time-limit"):
        typed.options += ["--timeout", _seconds(minutes)]
    if typed.words[:1] == ["compare"]:
        typed.options = ["--compare-runs", *typed.words[1:], *typed.options]
        typed.words = []


def _seconds(minutes: str) -> str:
    try:
        return str(round(float(minutes) * 60))
    except (ValueError, OverflowError):
        return minutes


CHANGES: dict[str, Callable[[Typed], None]] = {
    **dict.fromkeys(("drain", "undrain", "rebuild"), _hosts),
    **dict.fromkeys(("chat", "exec"), _behind_dashes),
    "firewall": _firewall,
    "quarantine": _quarantine,
    "bench": _bench,
}
