"""Inventories: `globals().update(build(__file__, {...}))` gives pyinfra its groups, and every host its settings."""

from __future__ import annotations

import runpy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyinfra import logger
from pyinfra.api.host import Host

from rackwright.errors import RackwrightError, SettingsError
from rackwright.fleet.rollout.plain import keep_record
from rackwright.lockfile import Lock, Locks, pinned
from rackwright.pyinfra_glue import options as pyinfra_options
from rackwright.pyinfra_glue.declaring import check_steps, declared_of, is_declaring, remember, told, with_arguments
from rackwright.pyinfra_glue.importing import import_from, importing_from
from rackwright.pyinfra_glue.interrupt import fail_on_interrupt
from rackwright.pyinfra_glue.prompt import say_when_nobody_answers
from rackwright.pyinfra_glue.terminal import tame_output
from rackwright.settings.ansible_inventory import listing_of
from rackwright.settings.files import site_root
from rackwright.settings.groups import ALL, Group, Groups
from rackwright.settings.known_hosts import advice, is_unknown
from rackwright.settings.load import InventoryHost, Listing, load, standalone
from rackwright.settings.model import HostSettings
from rackwright.settings.origin import Origin
from rackwright.settings.problems import nearest

__all__ = [
    "HostEntry",
    "InventoryHost",
    "build",
    "from_ansible",
    "groups_of",
    "load_inventory",
    "settings_of",
    "site_root",
]

HostEntry = str | tuple[str, Mapping[str, Any]]
"""A host: its name, or its name and values of its own (connection keys, settings)."""
GroupEntry = Sequence[HostEntry] | tuple[Sequence[HostEntry], Mapping[str, Any]]
"""A group: its hosts, or its hosts and values of its own (`ansible_group_priority` among them)."""
PyinfraGroups = dict[str, list[Any]]

_loaded: dict[Path, list[InventoryHost]] = {}
_settings: dict[str, HostSettings] = {}
_locks: dict[str, Lock] = {}


def build(
    inventory_file: str, groups: Mapping[str, GroupEntry], children: Mapping[str, Sequence[str]] | None = None
) -> PyinfraGroups:
    """Groups for pyinfra, with the merged and validated values of group_vars and host_vars as host data.

    inventory_file: the inventory's own `__file__`.
    groups: hosts by group name; a group may be empty, then its group_vars file is known all the same.
    children: child groups by group name, as in Ansible; a child is stronger than its parent.

    Raises InvalidSettingsError with every problem at once, before anything is connected.
    """
    path = Path(inventory_file)
    return _publish(Listing(path, _groups(groups, children or {}), _own_values(groups)), path)


def from_ansible(inventory: str, inventory_file: str | None = None) -> PyinfraGroups:
    """The same from an existing Ansible inventory: an INI or YAML file, or a directory.

    inventory_file: the Python inventory that calls this, whose site's group_vars count.
    Raises SettingsError when Ansible cannot read it.
    """
    caller = Path(inventory_file or inventory).expanduser()
    listing = listing_of(Path(inventory).expanduser(), site_root(caller))
    return _publish(listing, caller)


def load_inventory(path: str | Path) -> list[InventoryHost]:
    """All hosts of an inventory with their settings, in its order, without pyinfra running.

    path: a Python inventory that calls `build` or `from_ansible`, or an Ansible inventory (INI, YAML, directory).
    Raises SettingsError for whatever is wrong with it.
    """
    inventory = Path(path).expanduser()
    if not inventory.exists():
        raise SettingsError(f"{path}: there is no such inventory; next: ls {inventory.parent}")
    if inventory.suffix != ".py":
        return with_arguments(site_root(inventory), load(listing_of(inventory)))
    _run(inventory)
    found = _loaded.get(inventory.resolve())
    if found is None:
        raise SettingsError(f"{path} names no hosts: it must say globals().update(build(__file__, {{...}}))")
    return with_arguments(site_root(inventory), found)


def settings_of(host: Host) -> HostSettings:
    """Typed settings of a host while pyinfra runs, `--data` and the site's lock file included.

    Raises SettingsError when they are not valid.
    """
    if host.name in _settings:  # by name: `pyinfra.host` is one object for all hosts
        return _settings[host.name]
    found = pinned(_loaded_settings(host), _locks.get(host.name, Lock()))
    if not is_declaring(host):
        _settings[host.name] = found
    return found


def groups_of(host: Host) -> tuple[str, ...]:
    """The groups that an inventory itself names for a host; pyinfra adds some of its own."""
    entries = (entry for entries in _loaded.values() for entry in entries if entry.name == host.name)
    return next((entry.groups for entry in entries), ())


def _loaded_settings(host: Host) -> HostSettings:
    """As `check` sees them; for a host of somebody else's inventory, what its deploy file says, and defaults."""
    entries = (entry for entries in _loaded.values() for entry in entries if entry.name == host.name)
    known = next(entries, None)
    if known:
        return known.settings
    deploy = Path(host.state.current_deploy_filename or "deploy.py")
    said = declared_of(host).arguments
    return standalone(host.name, said, Origin(str(deploy)), deploy.resolve().parent).settings


def _publish(listing: Listing, inventory_file: Path) -> PyinfraGroups:
    """Load, guard against options that do harm, and hand the groups to pyinfra."""
    options = pyinfra_options.current()
    chosen = options.chosen(list(listing.hosts), _members(listing, inventory_file)) if options else set()
    hosts = load(listing, options.data if options else {})
    unknown = [host.name for host in hosts if host.name in chosen and is_unknown(host.name, host.data)]
    if options and options.connects:
        fail_on_interrupt()
        say_when_nobody_answers()
        tame_output()
    if unknown and options and options.connects:
        logger.warning(advice(unknown))
    if options and options.connects and options.deploy and not options.dry:
        names = [host.name for host in hosts if host.name in chosen]
        keep_record(inventory_file, listing.root or site_root(listing.path), names, Path(options.deploy), options.data)
    _loaded[inventory_file.resolve()] = hosts
    root = listing.root or site_root(listing.path)
    import_from(root)
    locks = Locks(root)
    _locks.update({host.name: locks.of(host.settings) for host in hosts})
    if options and options.deploy:
        deploy = Path(options.deploy)
        declared = check_steps(deploy, [host for host in hosts if host.name in chosen])
        remember(declared)
        hosts = [told(host, declared[host.name], deploy) if host.name in declared else host for host in hosts]
        _loaded[inventory_file.resolve()] = hosts
    everyone: PyinfraGroups = {ALL: [(host.name, host.data) for host in hosts]}
    return {**_members(listing, inventory_file), **everyone}


def _members(listing: Listing, inventory_file: Path) -> PyinfraGroups:
    names = [name for name in listing.groups.names if name != ALL]
    groups: PyinfraGroups = {name: list(listing.groups.members(name)) for name in names}
    return {**groups, inventory_file.stem: groups.get(inventory_file.stem, list(listing.hosts))}


def _groups(groups: Mapping[str, GroupEntry], children: Mapping[str, Sequence[str]]) -> Groups:
    found = [
        Group(name, [_entry(entry)[0] for entry in hosts], list(children.get(name, ())), dict(values))
        for name, (hosts, values) in ((name, _with_values(name, group)) for name, group in groups.items())
    ]
    missing = [Group(name, [], list(below)) for name, below in children.items() if name not in groups]
    _refuse_unknown({*groups, *children}, children)
    for name in [group.name for group in (*found, *missing)]:
        if not name or name.startswith("_"):
            raise SettingsError(f"group {name!r}: pyinfra ignores names that begin with an underscore; rename it")
    return Groups([*missing, *found])


def _refuse_unknown(known: set[str], children: Mapping[str, Sequence[str]]) -> None:
    for parent, below in children.items():
        for child in below:
            if child not in known:
                raise SettingsError(f"children of {parent}: no group is named {child}{nearest(child, known)}")


def _own_values(groups: Mapping[str, GroupEntry]) -> dict[str, dict[str, Any]]:
    """What the inventory says of each host; a host in several groups gathers what each says of it."""
    hosts: dict[str, dict[str, Any]] = {}
    for group_name, group in groups.items():
        for entry in _with_values(group_name, group)[0]:
            name, values = _entry(entry)
            hosts.setdefault(name, {}).update(values)
    return hosts


def _with_values(name: str, group: GroupEntry) -> tuple[Sequence[HostEntry], Mapping[str, Any]]:
    if (
        isinstance(group, tuple)
        and len(group) == 2
        and isinstance(group[1], Mapping)
        and isinstance(group[0], list | tuple)
    ):
        return group[0], group[1]
    if isinstance(group, list | tuple):
        return group, {}
    raise SettingsError(f"group {name}: its hosts must be a list, not {type(group).__name__}")


def _entry(entry: HostEntry) -> tuple[str, Mapping[str, Any]]:
    if isinstance(entry, str):
        return entry, {}
    if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], Mapping):
        return entry
    raise SettingsError(f'a host must be "name" or ("name", {{"key": value}}), not {entry!r}')


def _run(inventory: Path) -> None:
    """Run a Python inventory as pyinfra would, with the site's own modules importable."""
    try:
        with importing_from(site_root(inventory)):
            runpy.run_path(str(inventory))
    except RackwrightError:
        raise
    except Exception as error:
        raise SettingsError(f"{inventory}: {type(error).__name__}: {error}") from error
