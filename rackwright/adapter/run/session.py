"""Connections to an inventory's hosts outside a deploy: the same connector, host keys and sudo as pyinfra's."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyinfra.api import Config, Inventory
from pyinfra.api.connect import connect_all, disconnect_all
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.context import ctx_config, ctx_inventory, ctx_state
from pyinfra.progress import progress_spinner

from rackwright.adapter.run.current_run import inventory_of, state_beside
from rackwright.adapter.run.inventories import limited, load_inventory, refuse_half_groups, tell
from rackwright.adapter.ssh.client import use_patient_client
from rackwright.adapter.ssh.open_files import allow_open_files
from rackwright.adapter.terminal import tame_output
from rackwright.adapter.timeouts import tune
from rackwright.loading.choice import Choice
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, listed, waiting
from rackwright.record.selection import named_by
from rackwright.settings.ssh.known_hosts import not_followed

__all__ = ["Connected", "chosen_hosts", "chosen_together", "connected", "hosts_named", "progress_spinner"]


@dataclass(frozen=True)
class Connected:
    """One connected host with its settings."""

    host: Host
    entry: InventoryHost


def chosen_hosts(
    inventory: str,
    limit: Sequence[str],
    only: Sequence[str] = (),
    arguments: bool = True,
    profiles_as_shipped: bool = False,
) -> list[InventoryHost]:
    """Return the hosts of an inventory that a `--limit` names, by group or by name pattern, in inventory order.

    only: of those, the ones that an earlier run left in a state, as `failed@last`. arguments: as in load_inventory.
    profiles_as_shipped: as in Choice.
    The settings of the others need not be valid.
    Raises RackwrightError when a pattern matches nothing, or when no host is left.
    """
    return loaded_for(inventory, limit, only, arguments, profiles_as_shipped)[1]


def loaded_for(
    inventory: str,
    limit: Sequence[str],
    only: Sequence[str] = (),
    arguments: bool = True,
    profiles_as_shipped: bool = False,
) -> tuple[list[InventoryHost], list[InventoryHost]]:
    """Return all hosts of an inventory, and those that are chosen; refusals as in chosen_hosts."""
    root = site_root(Path(inventory).expanduser())
    names = {name for text in only for name in named_by(root, text)} if only else None
    everybody = load_inventory(inventory, arguments, Choice(limit, names, profiles_as_shipped=profiles_as_shipped))
    found = limited(everybody, limit, inventory)
    if names is not None and not any(entry.name in names for entry in found):
        raise RackwrightError(
            f"--only {', '.join(only)} and --limit together leave no host; nothing was done", code="RW1311"
        )
    return everybody, [entry for entry in found if names is None or entry.name in names]


def hosts_named(inventory: str, names: Collection[str]) -> list[InventoryHost]:
    """Return the hosts of an inventory, of which those of these names must be right; others may be missing."""
    return load_inventory(inventory, choice=Choice(names=names))


def chosen_together(inventory: str, limit: Sequence[str], only: Sequence[str] = ()) -> list[InventoryHost]:
    """Do the same for what changes hosts: hosts that serve an endpoint together are chosen together.

    Raises SettingsError, with the right --limit, when only some of them are.
    """
    found = chosen_hosts(inventory, limit, only)
    refuse_half_groups(found, [entry.name for entry in found])
    return found


def _prepare(hosts: int) -> None:
    """Make this process one that connects to so many hosts."""
    # Imported late: `rackwright status` logs in without them.
    from rackwright.adapter.ssh.cooperation import cooperate  # noqa: PLC0415
    from rackwright.adapter.ssh.passwords import refuse_passwords  # noqa: PLC0415

    cooperate()
    refuse_passwords()
    use_patient_client()
    allow_open_files(hosts)


def _not_in(inventory: Inventory) -> list[str]:
    return [host.name for host in inventory if not host.connected]


@contextmanager
def connected(entries: Sequence[InventoryHost]) -> Iterator[list[Connected]]:
    """Connect to hosts side by side; hosts that cannot be reached are left out and have said why.

    Raises RackwrightError when none can be reached.
    """
    tell(not_followed((entry.name, entry.data) for entry in entries))
    _prepare(len(entries))
    from rackwright.adapter.run.interrupt import interruptible  # noqa: PLC0415 - as above
    from rackwright.adapter.ssh.way_back import end_ways_back  # noqa: PLC0415 - as above

    inventory = inventory_of((entry.name, entry.data) for entry in entries)
    tame_output()
    config = Config()
    config.FAIL_PERCENT = 100
    state = state_beside(inventory, config)
    with interruptible(), ctx_state.use(state), ctx_inventory.use(inventory), ctx_config.use(config):
        try:
            with waiting(lambda: f"the login at {listed(_not_in(inventory), len(entries))}"):
                connect_all(state)
        except PyinfraError as error:
            text = (
                "no host could be reached: the lines above say why; next: check the network, VPN, "
                "ssh-add -l and ~/.ssh/config, then: rackwright status INVENTORY"
            )
            raise RackwrightError(text, code="RW1314") from error
        by_name = {entry.name: entry for entry in entries}
        try:
            reached = [host for host in inventory if host.connected]
            for host in reached:
                tune(host)
            yield [Connected(host, by_name[host.name]) for host in reached]
        finally:
            end_ways_back(state)
            disconnect_all(state)


def reachable(entries: Sequence[InventoryHost]) -> list[str]:
    """Return the names of the hosts that can be connected to; the others have said why."""
    try:
        with connected(entries) as hosts:
            return [one.host.name for one in hosts]
    except RackwrightError:
        return []
