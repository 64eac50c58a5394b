"""The run that this process is at now: what it knows of its inventories, and what became of its hosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyinfra.api import Config, Inventory, State
from pyinfra.api.host import Host
from pyinfra.api.state import StateStage
from pyinfra.context import ctx_state

from rackwright.adapter.cheap_lookups import use_cheap_lookups
from rackwright.adapter.run_context import share
from rackwright.loading.choice import EVERYBODY, Choice
from rackwright.loading.host import InventoryHost
from rackwright.messages import SettingsError
from rackwright.record.states import ENDED_WELL, RunState
from rackwright.settings.host_settings import HostSettings
from rackwright.sources.lockfile import Lock

BEFORE_PYINFRA = State()
"""Stands for the run of a command that loads inventories while no pyinfra runs."""


@dataclass
class Inventories:
    """The inventories of a run, by their files, and what is known of their hosts by name."""

    hosts: dict[Path, list[InventoryHost]] = field(default_factory=dict)
    refused: dict[Path, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """Hosts that an inventory was not loaded for, and whose settings are not valid, each with its groups."""
    choice: Choice = EVERYBODY
    """The hosts that an inventory is being loaded for."""
    settings: dict[str, HostSettings] = field(default_factory=dict)
    """With `--data` and the lock file: those that are asked for while pyinfra runs."""
    as_deployed: set[str] = field(default_factory=set)
    """Hosts whose settings have what the site's deploy.py says, in a run of another deploy file."""
    data: dict[str, Any] = field(default_factory=dict)
    """`--data` of a Rackwright command."""
    locks: dict[str, Lock | SettingsError] = field(default_factory=dict)
    """By host; an error where its file is broken, which refuses whatever asks for the lock."""
    left_out: set[str] = field(default_factory=set)
    """Reports made already of variables in an Ansible inventory that Rackwright leaves alone."""

    def entry(self, host: str) -> InventoryHost | None:
        """Return a host, of whichever inventory lists it first."""
        return next((one for hosts in self.hosts.values() for one in hosts if one.name == host), None)


def current_state() -> State:
    """Return the State of the current run."""
    found = ctx_state.get()
    return found if isinstance(found, State) else BEFORE_PYINFRA


def inventory_of(hosts: Iterable[tuple[str, Mapping[str, Any]]]) -> Inventory:
    """Return pyinfra's inventory of these hosts, by name and data; `use_cheap_lookups` counts from then on."""
    use_cheap_lookups()
    return Inventory(([(name, dict(data)) for name, data in hosts], {}))


def state_beside(inventory: Inventory, config: Config, check_for_changes: bool = True) -> State:
    """Make a separate State that uses the inventories of the current run."""
    made = State(inventory, config, check_for_changes=check_for_changes)
    share(Inventories, current_state(), made)
    return made


def has_executed(state: State) -> bool:
    """Return whether operations have begun to run on hosts."""
    return state.current_stage >= StateStage.Execute


def last_words(state: State, reported: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what is still to report of hosts. reported: what their switch has reported of them."""
    if not state.initialised:
        return
    finished = state.current_stage == StateStage.Disconnect
    for host in state.inventory:
        if state.is_host_in_limit(host) and (last := _last_word(host, reported.get(host.name), finished)):
            yield host.name, last


def _last_word(host: Host, reported: str | None, finished: bool) -> str | None:
    if host in host.state.failed_hosts:
        if host not in host.state.activated_hosts:
            return RunState.UNREACHABLE
        return RunState.NOT_STAGED if reported is None else RunState.NOT_CONVERGED if reported in ENDED_WELL else None
    return RunState.DONE if reported is None and finished else None
