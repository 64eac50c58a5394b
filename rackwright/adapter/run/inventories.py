"""The inventories of this run: their hosts with all settings, for whatever asks, within pyinfra or without."""

from __future__ import annotations

import os
import runpy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pyinfra import logger
from pyinfra.api.host import Host

from rackwright.adapter.run.current_run import Inventories, current_state
from rackwright.adapter.run.declaring import declared_of, is_declaring, with_arguments
from rackwright.adapter.run.importing import importing_from
from rackwright.adapter.run.options import data_given
from rackwright.adapter.run_context import part_of
from rackwright.loading.ansible.listing import listing_of
from rackwright.loading.choice import EVERYBODY, Choice, is_matched
from rackwright.loading.files import is_python, refuse_no_file, site_root
from rackwright.loading.group import left_out
from rackwright.loading.host import InventoryHost
from rackwright.loading.load import load, standalone
from rackwright.messages import RackwrightError, SettingsError
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.origin import Origin
from rackwright.sources.lockfile import Lock, Locks, pinned

Refused = Mapping[str, tuple[str, ...]]
"""Hosts whose settings are not valid, each with its groups."""


def publish(inventory: Path, hosts: Sequence[InventoryHost], refused: Refused | None = None) -> None:
    """Make the hosts of an inventory known, in place of what was known of it.

    refused: those that were not chosen, and whose settings are not valid.
    """
    _inventories().hosts[inventory.resolve()] = list(hosts)
    _inventories().refused[inventory.resolve()] = refused or {}


def refused_of(inventory: str | Path) -> Refused:
    """Return the hosts of an inventory that was loaded for others, whose settings are not valid."""
    return _inventories().refused.get(Path(inventory).expanduser().resolve(), {})


def pin(hosts: Sequence[InventoryHost], root: Path) -> None:
    """Let the lock file of a site count for these hosts. root: the site's folder.

    A broken one is kept as its error: logs, a shell command and a teardown need no lock.
    """
    locks = Locks(root)
    _inventories().locks.update({host.name: _lock(locks, host) for host in hosts})


def _lock(locks: Locks, host: InventoryHost) -> Lock | SettingsError:
    try:
        return locks.of(host.settings)
    except SettingsError as error:
        return error


def refuse_broken_locks() -> None:
    """Raise SettingsError for a lock file that is broken, saying what is wrong with it."""
    for lock in _inventories().locks.values():
        if isinstance(lock, SettingsError):
            raise lock


def forgo_broken_locks() -> None:
    """Let hosts whose lock file is broken have none, with a warning: for a run that fetches nothing."""
    locks = _inventories().locks
    broken = {name: lock for name, lock in locks.items() if isinstance(lock, SettingsError)}
    tell(f"{error}; this command needs no lock, and continues without it" for error in broken.values())
    locks.update(dict.fromkeys(broken, Lock()))


def load_inventory(path: str | Path, arguments: bool = True, choice: Choice = EVERYBODY) -> list[InventoryHost]:
    """Return all hosts of an inventory with their settings, in its order, without pyinfra running.

    path: a Python inventory that calls `build` or `from_ansible`, or an Ansible inventory (INI, YAML, directory).
    arguments: with what deploy.py says; not for who asks deploy.py itself, and refuses one that is broken.
    choice: the hosts whose settings must be valid; of the others, those that are not are left out, with a warning.
    Raises SettingsError for whatever is wrong with it.
    """
    inventory = Path(path).expanduser()
    if not inventory.exists():
        raise SettingsError(f"{path}: inventory not found; next: ls {inventory.parent}", code="RW1306")
    refuse_no_file(inventory)
    if not is_python(inventory):
        loaded = load(listing_of(inventory), data_given(), choice)
        tell(loaded.remarks(str(path)))
        publish(inventory, loaded.hosts, {name: one.groups for name, one in loaded.refused.items()})
        return with_arguments(site_root(inventory), loaded.hosts) if arguments else list(loaded.hosts)
    with _choosing(choice):
        _run(inventory)
    found = _inventories().hosts.get(inventory.resolve())
    if found is None:
        raise SettingsError(
            f"{path} names no hosts: it must say globals().update(build(__file__, {{...}})); next: write that, or, "
            f"where it prints JSON for Ansible: chmod +x {path}",
            code="RW1307",
        )
    return with_arguments(site_root(inventory), found) if arguments else list(found)


def refuse_unreadable(path: Path) -> None:
    """Refuse what pyinfra would wait for, take for an inventory without hosts, or end in a traceback at."""
    refuse_no_file(path)
    if os.path.lexists(path) and not path.exists():
        raise SettingsError(f"{path}: this link leads to no file; next: ls -l {path}", code="RW1306")
    if not (path.is_file() and is_python(path)):
        return
    try:
        compile(path.read_bytes(), str(path), "exec")
    except (OSError, SyntaxError, ValueError) as error:
        raise SettingsError(f"{path}: {type(error).__name__}: {error}", code="RW1308") from None


@contextmanager
def _choosing(choice: Choice) -> Iterator[None]:
    """Let an inventory that runs now be loaded for these hosts."""
    inventories = _inventories()
    before, inventories.choice = inventories.choice, choice
    try:
        yield
    finally:
        inventories.choice = before


def choice_of_run() -> Choice:
    """Return the hosts that the inventory which runs now is loaded for."""
    return _inventories().choice


def limited(hosts: Sequence[InventoryHost], limit: Sequence[str], inventory: str) -> list[InventoryHost]:
    """Return the hosts that a `--limit` selects, by group or by name pattern, in their order.

    Raises RackwrightError when a pattern matches nothing.
    """
    for pattern in limit:
        if not any(_matches(entry, pattern) for entry in hosts):
            raise RackwrightError(
                f"--limit {pattern}: no host and no group of {inventory} matches; nothing was done", code="RW1312"
            )
    return [entry for entry in hosts if not limit or any(_matches(entry, pattern) for pattern in limit)]


def refuse_half_groups(hosts: Sequence[InventoryHost], chosen: Iterable[str]) -> None:
    """Raise SettingsError, with the right --limit, when a run would touch some hosts of an endpoint and not others."""
    problems = [
        f"{', '.join(group.hosts)} serve endpoint {group.endpoint} together, and {', '.join(missing)} is not chosen; "
        f"next, the same command with {' '.join(f'--limit {host}' for host in group.hosts)}"
        for group, missing in left_out(hosts, chosen).items()
    ]
    if problems:
        raise SettingsError("\n".join([*problems, "nothing was done"]), code="RW1330")


def _matches(entry: InventoryHost, pattern: str) -> bool:
    return is_matched(entry.name, entry.groups, pattern)


def tell(lines: Iterable[str]) -> None:
    """Say what was left out of an inventory, once a command however often it is loaded."""
    printed = _inventories().left_out
    for message in lines:
        if message not in printed:
            printed.add(message)
            logger.warning(message)


def settings_of(host: Host) -> HostSettings:
    """Return typed settings of a host while pyinfra runs, `--data` and the site's lock file included.

    Raises SettingsError when they are not valid.
    """
    inventories = part_of(host.state, Inventories)
    if host.name in inventories.settings:  # by name: `pyinfra.host` is one object for all hosts
        return inventories.settings[host.name]
    lock = inventories.locks.get(host.name, Lock())
    if isinstance(lock, SettingsError):
        raise lock
    found = pinned(_loaded_settings(host), lock)
    if not is_declaring(host):
        inventories.settings[host.name] = found
    return found


def count_as_deployed(host: Host, root: Path) -> HostSettings:
    """Let what the site's deploy.py says as arguments count for a host, in a run of another file; return its settings.

    root: the site's folder.
    """
    inventories = part_of(host.state, Inventories)
    entry = inventories.entry(host.name)
    if entry is not None and host.name not in inventories.as_deployed:
        lock = inventories.locks.get(host.name, Lock())
        if isinstance(lock, SettingsError):
            raise lock
        (declared,) = with_arguments(root, [entry])
        inventories.settings[host.name] = pinned(declared.settings, lock)
        inventories.as_deployed.add(host.name)
    return settings_of(host)


def settings_beside(hosts: Iterable[Host]) -> dict[str, HostSettings]:
    """Return the settings, by name, of hosts that the run was not begun for, as far as they are valid.

    They have the site's lock file, and what its deploy.py says as arguments.
    """
    found: dict[Path, list[InventoryHost]] = {}
    for host in hosts:
        if entry := part_of(host.state, Inventories).entry(host.name):
            found.setdefault(entry.root, []).append(entry)
    return {name: one for root, entries in found.items() for name, one in _pinned_beside(root, entries)}


def _pinned_beside(root: Path, entries: Sequence[InventoryHost]) -> Iterator[tuple[str, HostSettings]]:
    locks = Locks(root)
    for entry in with_arguments(root, entries):
        with suppress(SettingsError):
            yield entry.name, locks.pin(entry.settings)


def groups_of(host: Host) -> tuple[str, ...]:
    """Return the groups that an inventory itself lists for a host; pyinfra adds some of its own."""
    entry = part_of(host.state, Inventories).entry(host.name)
    return entry.groups if entry else ()


def _loaded_settings(host: Host) -> HostSettings:
    """Return what `check` sees; for a host of a foreign inventory, what its deploy file says, and defaults."""
    entry = part_of(host.state, Inventories).entry(host.name)
    if entry:
        return entry.settings
    if any(host.name in names for names in _inventories().refused.values()):
        raise SettingsError(f"{host.name}: the settings are not valid; next: rackwright check INVENTORY", code="RW1325")
    deploy = Path(host.state.current_deploy_filename or "deploy.py")
    values = declared_of(host).arguments
    return standalone(host.name, values, Origin(str(deploy)), deploy.resolve().parent).settings


def _inventories() -> Inventories:
    return part_of(current_state(), Inventories)


def _run(inventory: Path) -> None:
    """Run a Python inventory as pyinfra would, with the site's own modules importable."""
    try:
        with importing_from(site_root(inventory)):
            runpy.run_path(str(inventory))
    except RackwrightError:
        raise
    except Exception as error:
        raise SettingsError(f"{inventory}: {type(error).__name__}: {error}", code="RW1308") from error
