"""pyinfra's command line as seen from an inventory: what is unsafe there is refused before any connection."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any

import click
from pyinfra.api import State

from rackwright.adapter.run.current_run import Inventories, current_state
from rackwright.adapter.run_context import part_of
from rackwright.messages import SettingsError, name_inventory
from rackwright_engines.nearest import nearest

STEPS = ("tasks", "rackwright.tasks")
"""Packages of the steps: a site's, which takes them from the library or has a file for each, and the library's."""


@dataclass(frozen=True)
class Options:
    """The options as typed: `--data` values as pyinfra reads them, and those that decide who is touched and how."""

    data: dict[str, Any] = field(default_factory=dict)
    limit: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    dry: bool = False
    yes: bool = False
    no_wait: bool = False
    connects: bool = True
    """False for `debug-inventory`, which looks at no host."""
    deploy: str | None = None
    """The deploy file, or that of the one step that runs; none for `exec`, `fact` and single operations."""
    arguments: tuple[str, ...] = ()
    """The arguments of a single step."""

    def chosen(self, hosts: Sequence[str], groups: Mapping[str, Collection[str]]) -> set[str]:
        """Return the hosts that are going to be touched.

        Raises SettingsError for options with which pyinfra does less, or more, than it seems to.
        """
        if self.no_wait:
            raise SettingsError(
                "--no-wait is refused: a failure would not stop the other hosts, and would exit 0; leave it out",
                code="RW1309",
            )
        if self.dry and self.yes:
            raise SettingsError(
                "--dry with -y is refused: pyinfra then looks at no host and reports nothing; leave -y out",
                code="RW1310",
            )
        if self.arguments:
            text = f"a step that runs alone takes no arguments, and was given {' '.join(self.arguments)}; next: --data"
            raise SettingsError(f"{text} KEY=VALUE, or a deploy file that calls it", code="RW1322")
        chosen = self._matches("--limit", self.limit, hosts, groups) if self.limit else set(hosts)
        chosen -= self._matches("--exclude", self.exclude, hosts, groups)
        if hosts and not chosen:
            raise SettingsError("--limit and --exclude together leave no host; nothing was connected", code="RW1311")
        return chosen

    def _matches(
        self, option: str, patterns: Sequence[str], hosts: Sequence[str], groups: Mapping[str, Collection[str]]
    ) -> set[str]:
        found: set[str] = set()
        for pattern in patterns:
            matched = set(groups.get(pattern, ())) or {host for host in hosts if fnmatch(host, pattern)}
            if not matched:
                raise SettingsError(_no_match(option, pattern, [*hosts, *groups]), code="RW1312")
            found |= matched
        return found


def _no_match(option: str, pattern: str, names: Sequence[str]) -> str:
    if pattern == "all":
        return f"{option} all matches nothing in pyinfra: leave {option} out to mean every host"
    return f"{option} {pattern} matches no host and no group{nearest(pattern, names)}; nothing was connected"


@contextmanager
def given(data: Mapping[str, Any]) -> Iterator[None]:
    """Let `--data` of a command that does not run pyinfra count for the inventories that it loads."""
    inventories = part_of(current_state(), Inventories)
    before = dict(inventories.data)
    inventories.data.update(data)
    try:
        yield
    finally:
        inventories.data.clear()
        inventories.data.update(before)


def data_given() -> dict[str, Any]:
    """Return the value of `--data`, of pyinfra's command or of Rackwright's."""
    options = current()
    return options.data if options else dict(part_of(current_state(), Inventories).data)


def data_words(data: Mapping[str, Any]) -> list[str]:
    """Return the arguments for a process that loads the inventory again; `data` wins over what was typed."""
    given_too = {**data_given(), **data}
    return [argument for key, value in given_too.items() for argument in ("--data", f"{key}={json.dumps(value)}")]


def current() -> Options | None:
    """Return the options of the pyinfra command that loads an inventory; None when something else loads it."""
    context = click.get_current_context(silent=True)
    if context is None or "no_wait" not in context.params:
        return None
    typed = context.params
    step = _step_file(typed["operations"][0])
    return Options(
        data=_data(typed),
        limit=tuple(typed["limit"] or ()),
        exclude=tuple(typed["exclude"] or ()),
        dry=bool(typed["dry"]),
        yes=bool(typed["yes"]),
        no_wait=bool(typed["no_wait"]),
        connects=tuple(typed["operations"]) != ("debug-inventory",),
        deploy=step or next((argument for argument in typed["operations"][:1] if argument.endswith(".py")), None),
        arguments=tuple(typed["operations"][1:]) if step else (),
    )


def _step_file(name: str) -> str | None:
    """Return the file of a step that runs alone, as `tasks.firewall`; None for other words.

    pyinfra has imported it by now. A function of the site's own in tasks/__init__.py has no file of its own.
    """
    package, _, step = name.replace(":", ".").rpartition(".")
    if package not in STEPS:
        return None
    module = getattr(getattr(sys.modules.get(package), step, None), "__module__", "")
    return sys.modules[module].__file__ if module in {f"{one}.{step}" for one in STEPS} else None


@dataclass
class Flags:
    """The arguments of a pyinfra command, for the whole run."""

    dry: bool = False
    verbose: bool = False


def keep_flags() -> None:
    """Keep `--dry` and `-v` for the operations: pyinfra prepares a host in a greenlet, where click has no command."""
    context = click.get_current_context(silent=True)
    if context is not None:
        flags = part_of(current_state(), Flags)
        flags.dry, flags.verbose = bool(context.params.get("dry")), bool(context.params.get("verbosity"))


def is_dry(state: State) -> bool:
    """Return whether the pyinfra command of this run has `--dry`."""
    return part_of(state, Flags).dry


def is_verbose(state: State) -> bool:
    """Return whether the pyinfra command of this run has `-v`."""
    return part_of(state, Flags).verbose


def name_in_commands(inventory: str) -> None:
    """Let printed commands name this inventory until the pyinfra command ends."""
    name_inventory(inventory)
    click.get_current_context().call_on_close(lambda: name_inventory(""))


def inventory_named() -> str:
    """Return the inventory of the pyinfra command that runs; empty when something else runs."""
    context = click.get_current_context(silent=True)
    return str(context.params.get("inventory") or "") if context else ""


def _data(typed: Mapping[str, Any]) -> dict[str, Any]:
    # Imported here, since it patches the whole process for gevent: right in pyinfra's own command, wrong in ours.
    from pyinfra_cli.util import parse_cli_arg  # noqa: PLC0415

    values = {key: parse_cli_arg(value) for key, value in (pair.split("=", 1) for pair in typed["data"] or ())}
    for key in ("ssh_user", "ssh_key", "ssh_port"):
        if typed.get(key):
            values[key] = typed[key]
    return values
