"""Inventories: `globals().update(build(__file__, {...}))` gives pyinfra its groups, and every host its settings."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from rackwright.adapter.host import logger
from rackwright.adapter.run import options as pyinfra_options
from rackwright.adapter.run.current_run import current_state
from rackwright.adapter.run.declaring import check_steps, overlay_all, remember
from rackwright.adapter.run.importing import import_from
from rackwright.adapter.run.interrupt import die_with_rollout, fail_on_interrupt
from rackwright.adapter.run.inventories import (
    choice_of_run,
    forgo_broken_locks,
    groups_of,
    load_inventory,
    pin,
    publish,
    refuse_broken_locks,
    refuse_half_groups,
    refuse_unreadable,
    settings_of,
    tell,
)
from rackwright.adapter.run.options import Options
from rackwright.adapter.short_output import shorten_output
from rackwright.adapter.ssh.client import use_patient_client
from rackwright.adapter.ssh.open_files import allow_open_files
from rackwright.adapter.terminal import say_when_nobody_answers, tame_output
from rackwright.concerns.deploy_steps import Declared
from rackwright.garbage import collect_seldom
from rackwright.loading.ansible.listing import listing_of
from rackwright.loading.choice import Choice
from rackwright.loading.files import is_python, site_root
from rackwright.loading.host import InventoryHost
from rackwright.loading.load import Listing, Loaded, load
from rackwright.messages import SettingsError, coded, shortest
from rackwright.settings.inventory_groups import ALL, InventoryGroup, InventoryGroups
from rackwright.settings.secret import showable_data
from rackwright.settings.ssh.known_hosts import advice, is_unknown, not_followed
from rackwright.sources.profile_lock import lock_profiles
from rackwright_engines.nearest import nearest

__all__ = [
    "HostEntry",
    "InventoryHost",
    "build",
    "from_ansible",
    "groups_of",
    "load_inventory",
    "refuse_other_formats",
    "settings_of",
    "site_root",
]

HostEntry = str | tuple[str, Mapping[str, Any]]
"""A host: its name, or its name and values of its own (connection keys, settings)."""
GroupEntry = Sequence[HostEntry] | tuple[Sequence[HostEntry], Mapping[str, Any]]
"""A group: its hosts, or its hosts and values of its own (`ansible_group_priority` among them)."""
TEARDOWN = Path(__file__).resolve().parent / "operations" / "deploys" / "teardown.py"
"""The only deploy that fetches nothing and starts nothing: it needs no lock file."""
PyinfraGroups = dict[str, list[Any]]
"""The groups as pyinfra takes them from an inventory."""
NAMED = "RACKWRIGHT_ANSIBLE_INVENTORY"
"""The variable that names the Ansible inventory of a site's inventory/ansible.py."""
RECORD = "rackwright.rollout.deploy_record"
"""What keeps the record of a run. A command that only reads hosts loads inventories too, without waiting for it."""


def build(
    inventory_file: str, groups: Mapping[str, GroupEntry], children: Mapping[str, Sequence[str]] | None = None
) -> PyinfraGroups:
    """Return groups for pyinfra, with the merged and validated values of group_vars and host_vars as host data.

    inventory_file: the inventory's own `__file__`.
    groups: hosts by group name; a group may be empty, then its group_vars file is known anyway.
    children: child groups by group name, as in Ansible; a child is stronger than its parent.

    Raises InvalidSettingsError with every problem at once, before anything is connected.
    """
    collect_seldom()
    path = Path(inventory_file)
    return _publish(Listing(path, _groups(groups, children or {}), _own_values(groups)), path)


def from_ansible(inventory: str, inventory_file: str | None = None) -> PyinfraGroups:
    """Do the same from an existing Ansible inventory: an INI or YAML file, or a directory.

    inventory_file: the Python inventory that calls this, whose site's group_vars count.
    Raises SettingsError when Ansible cannot read it.
    """
    caller = Path(inventory_file or inventory).expanduser()
    root = site_root(caller)
    listing = listing_of(_found(inventory, root), root)
    # A variable that the caller set for one command is not there for the next one, which then takes the file itself.
    named = "" if NAMED in os.environ or inventory_file is None else _from_here(caller)
    return _publish(replace(listing, named=named), caller)


def _from_here(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _found(inventory: str, root: Path) -> Path:
    """Return the path of a named inventory: what the variable says, from the user's folder; else the site's file first.

    The variable then holds the whole path, since a process that starts from here has the site as its folder.
    """
    path, here = Path(inventory).expanduser(), Path.cwd()
    if path.is_absolute():
        return path
    typed = os.environ.get(NAMED) == inventory
    places = [folder / path for folder in ((here, root) if typed else (root, here))]
    found = next((candidate for candidate in places if candidate.exists()), path)
    if typed and found.is_absolute():
        os.environ[NAMED] = str(found)
    return found.relative_to(here) if found.is_relative_to(here) else found


def refuse_other_formats() -> None:
    """Say what to type when pyinfra is handed an Ansible inventory: it would run the file as Python, and fail there."""
    # The first Rackwright code that runs in a site under pyinfra.
    collect_seldom()
    if pyinfra_options.current():
        fail_on_interrupt()
    named = pyinfra_options.inventory_named()
    path = Path(named) if named else None
    if path is not None:
        refuse_unreadable(path)
    if path is not None and path.suffix == ".py" and not os.path.lexists(path):
        # pyinfra would take it for a list of hosts, find none, deploy nothing, and end with 0.
        raise SettingsError(f"{path}: inventory not found; next: ls {path.parent}", code="RW1306")
    if path is None or is_python(path) or not path.exists():
        return
    reader = Path("inventory/ansible.py")
    made = "" if reader.exists() else "rackwright init . --ansible, then: "
    raise SettingsError(
        f"{path} is not written in Python, and pyinfra reads no other inventory; next: {made}"
        f"RACKWRIGHT_ANSIBLE_INVENTORY={path} pyinfra {reader} deploy.py; "
        "rackwright's own commands take the file as it is",
        code="RW1407",
    )


@dataclass(frozen=True)
class _Command:
    """The command that loads an inventory: one of pyinfra's, or any other, which has no options of it."""

    options: Options | None
    chosen: set[str]
    """The hosts that pyinfra is going to touch."""
    choice: Choice
    """The hosts whose settings must be valid."""

    @property
    def connects(self) -> bool:
        return self.options is not None and self.options.connects

    @property
    def deploy(self) -> Path | None:
        return Path(self.options.deploy) if self.options and self.options.deploy else None

    def chosen_among(self, hosts: Iterable[InventoryHost]) -> list[InventoryHost]:
        return [host for host in hosts if host.name in self.chosen]


def _publish(listing: Listing, inventory_file: Path) -> PyinfraGroups:
    """Load, guard against options that do harm, and hand the groups to pyinfra.

    The order is safety, each step before the one that it protects:
    1. options that do harm are refused before a file of settings is read;
    2. ssh's own refusals come before pyinfra is changed; its client, output and Ctrl-C are ours before any connection;
    3. a run of half a group is refused before it has a record, and the record stands before any connection;
    4. hosts and locks are published before deploy.py is asked what it declares, since it reads both;
    5. broken locks, steps and templates are refused before pyinfra gets a single host;
    6. profiles are in the lock file before a host has anything of them.
    """
    command = _command(listing, inventory_file)
    loaded = load(listing, pyinfra_options.data_given(), command.choice)
    tell(loaded.remarks(str(listing.path)))
    if command.connects:
        _prepare_pyinfra(command, loaded)
    _begin_run(command, loaded, listing, inventory_file)
    _make_available(command, loaded, listing, inventory_file)
    hosts = _with_declared(command, loaded, inventory_file)
    _lock_profiles(command, hosts, _root(listing))
    return {**_members(listing, inventory_file, loaded.foreign.skipped), ALL: _all(command, hosts, loaded, listing)}


def _command(listing: Listing, inventory_file: Path) -> _Command:
    """Return the command that runs, with errors and advice naming its inventory. Refuses options that do harm."""
    options = pyinfra_options.current()
    if options is None:
        return _Command(None, set(), choice_of_run())
    chosen = options.chosen(list(listing.hosts), _members(listing, inventory_file))
    if options.connects:
        pyinfra_options.name_in_commands(shortest(str(inventory_file.absolute())))
    return _Command(options, chosen, Choice(names=chosen))


def _prepare_pyinfra(command: _Command, loaded: Loaded) -> None:
    """Change what pyinfra does from now on, and warn of what ssh would do differently."""
    reached = {host.name: host.data for host in command.chosen_among(loaded.hosts)}
    tell(not_followed(reached.items()))
    pyinfra_options.keep_flags()
    fail_on_interrupt()
    die_with_rollout()
    say_when_nobody_answers()
    tame_output()
    if not pyinfra_options.is_verbose(current_state()):
        shorten_output()
    use_patient_client()
    allow_open_files(len(command.chosen))
    if unknown := {name: data for name, data in reached.items() if is_unknown(name, data)}:
        logger.warning(coded("RW1406", advice(unknown)))


def _begin_run(command: _Command, loaded: Loaded, listing: Listing, inventory_file: Path) -> None:
    """Refuse a deploy of half a group; begin the record of one that changes hosts."""
    options = command.options
    if options is None or not options.connects or command.deploy is None:
        return
    refuse_half_groups(loaded.hosts, command.chosen)
    if not options.dry:
        addresses = {host.name: host.address for host in command.chosen_among(loaded.hosts)}
        import_module(RECORD).keep_record(inventory_file, _root(listing), addresses, command.deploy, options.data)


def _make_available(command: _Command, loaded: Loaded, listing: Listing, inventory_file: Path) -> None:
    """Let the site's modules, deploy.py and its tasks see the hosts with their locks."""
    root = _root(listing)
    publish(inventory_file, loaded.hosts, _refused(loaded))
    import_from(root)
    pin([host for host in loaded.hosts if command.choice.takes(host.name, host.groups)], root)


def _with_declared(command: _Command, loaded: Loaded, inventory_file: Path) -> list[InventoryHost]:
    """Return the hosts with what deploy.py says as arguments, and publish them in place of those without."""
    deploy = command.deploy
    if deploy is None:
        return loaded.hosts
    (forgo_broken_locks if deploy.resolve() == TEARDOWN else refuse_broken_locks)()
    declared = check_steps(deploy, command.chosen_among(loaded.hosts))
    remember(declared)
    hosts = overlay_all(loaded.hosts, declared, deploy)
    _refuse_broken_templates(hosts, declared)
    publish(inventory_file, hosts, _refused(loaded))
    return hosts


def _lock_profiles(command: _Command, hosts: Iterable[InventoryHost], root: Path) -> None:
    """Keep the profiles of the hosts that a deploy is going to change."""
    options = command.options
    if options is None or not options.connects or options.dry or command.deploy is None:
        return
    if command.deploy.resolve().is_relative_to(TEARDOWN.parent):  # rackwright's own, which roll nothing new out
        return
    for text in lock_profiles(root, [host.settings for host in command.chosen_among(hosts)]):
        logger.info(text)


def _refuse_broken_templates(hosts: Iterable[InventoryHost], declared: Mapping[str, Declared]) -> None:
    # Imported late: who only looks at hosts loads inventories too, and renders nothing.
    from rackwright.concerns.catalog import refuse_broken_templates  # noqa: PLC0415

    for host in hosts:
        if host.name in declared:
            refuse_broken_templates(declared[host.name].steps, host.settings)


def _all(command: _Command, hosts: Iterable[InventoryHost], loaded: Loaded, listing: Listing) -> list[Any]:
    """Return all hosts with their data, in the inventory's order; without secrets where pyinfra prints the data."""
    printed = command.options is not None and not command.connects
    of_others = {name: dict(one.values) for name, one in loaded.refused.items()}
    data = {host.name: host.data for host in hosts} | of_others
    names = [name for name in listing.hosts if name in data]
    return [(name, showable_data(data[name]) if printed else data[name]) for name in names]


def _refused(loaded: Loaded) -> dict[str, tuple[str, ...]]:
    return {name: one.groups for name, one in loaded.refused.items()}


def _root(listing: Listing) -> Path:
    return listing.root or site_root(listing.path)


def _members(listing: Listing, inventory_file: Path, skipped: Collection[str] = ()) -> PyinfraGroups:
    def remaining(hosts: Iterable[str]) -> list[str]:
        return [host for host in hosts if host not in skipped]

    names = [name for name in listing.groups.names if name != ALL]
    groups: PyinfraGroups = {name: remaining(listing.groups.members(name)) for name in names}
    return {**groups, inventory_file.stem: groups.get(inventory_file.stem, remaining(listing.hosts))}


def _groups(groups: Mapping[str, GroupEntry], children: Mapping[str, Sequence[str]]) -> InventoryGroups:
    found = [
        InventoryGroup(name, [_entry(entry)[0] for entry in hosts], list(children.get(name, ())), dict(values))
        for name, (hosts, values) in ((name, _with_values(name, group)) for name, group in groups.items())
    ]
    missing = [InventoryGroup(name, [], list(below)) for name, below in children.items() if name not in groups]
    _refuse_unknown({*groups, *children}, children)
    for name in [group.name for group in (*found, *missing)]:
        if not name or name.startswith("_"):
            raise SettingsError(
                f"group {name!r}: pyinfra ignores names that begin with an underscore; rename it", code="RW1402"
            )
    return InventoryGroups([*missing, *found])


def _refuse_unknown(groups: set[str], children: Mapping[str, Sequence[str]]) -> None:
    for parent, below in children.items():
        for child in below:
            if child not in groups:
                raise SettingsError(
                    f"children of {parent}: unknown group {child}{nearest(child, groups)}", code="RW1403"
                )


def _own_values(groups: Mapping[str, GroupEntry]) -> dict[str, dict[str, Any]]:
    """Return what the inventory says of each host; a host in several groups gathers what each says of it."""
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
    raise SettingsError(f"group {name}: its hosts must be a list, not {type(group).__name__}", code="RW1401")


def _entry(entry: HostEntry) -> tuple[str, Mapping[str, Any]]:
    if isinstance(entry, str):
        return entry, {}
    if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], Mapping):
        return entry
    raise SettingsError(f'a host must be "name" or ("name", {{"key": value}}), not {entry!r}', code="RW1401")
