"""All hosts of an inventory, each judged alone: what is wrong with one says nothing of another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rackwright.adapter.run.declaring import alike_hosts, declared_by, overlay_all
from rackwright.adapter.run.inventories import limited, load_inventory
from rackwright.cli.inventories import refuse_unknown
from rackwright.concerns.catalog import refuse_broken_templates
from rackwright.concerns.deploy_steps import Declared
from rackwright.loading.choice import Choice
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright.messages import SettingsError
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.problems import InvalidSettingsError, some
from rackwright.sources.lockfile import Locks


@dataclass(frozen=True)
class WrongHosts:
    """A problem, and the hosts that have it."""

    error: SettingsError
    hosts: tuple[str, ...]


@dataclass
class Judged:
    """The hosts that are right, with what deploy.py says and declares of them, and what is wrong with the others."""

    hosts: list[InventoryHost] = field(default_factory=list)
    declared: dict[str, Declared] = field(default_factory=dict)
    refusals: list[WrongHosts] = field(default_factory=list)

    @property
    def errors(self) -> list[str]:
        """Return the messages, with their hosts; the settings' own says them at each line."""
        return [f"{one.error}{self._on(one)}" for one in self.refusals]

    def _on(self, wrong: WrongHosts) -> str:
        if isinstance(wrong.error, InvalidSettingsError) or (len(self.refusals) == 1 and not self.hosts):
            return ""
        return f" (on {some(wrong.hosts)})"


def judge(inventory: str, choice: Choice) -> Judged:
    """Judge the chosen hosts of an inventory offline. Raises SettingsError for an inventory that cannot be read."""
    found = Judged()
    hosts = _loaded(inventory, choice, found)
    root = site_root(Path(inventory).expanduser())
    try:
        _declare(root, hosts, found)
    except SettingsError:
        _each_alone(root, hosts, found)
    return found


def _loaded(inventory: str, choice: Choice, found: Judged) -> list[InventoryHost]:
    try:
        hosts = load_inventory(inventory, arguments=False, choice=choice)
    except InvalidSettingsError as error:
        found.refusals.append(WrongHosts(error, tuple(sorted(error.hosts))))
        remaining = replace(choice, without=error.hosts)
        try:
            return [one for one in load_inventory(inventory, False, remaining) if remaining.takes(one.name, one.groups)]
        except InvalidSettingsError:  # it is the site's, and so every host's
            return []
    refuse_unknown(hosts, choice.limit, inventory)
    return limited(hosts, choice.limit, inventory)


def _declare(root: Path, hosts: Sequence[InventoryHost], found: Judged) -> None:
    """Add hosts whose deploy file and templates are right too. Raises SettingsError for the first that is not."""
    declared = declared_by(root, hosts)
    whole = overlay_all(hosts, declared, root / "deploy.py")
    locks = Locks(root)
    for steps, settings in _each_once(whole, declared):
        refuse_broken_templates(steps, locks.pin(settings))
    found.hosts += whole
    found.declared |= declared


def _each_once(
    hosts: Sequence[InventoryHost], declared: Mapping[str, Declared]
) -> Iterator[tuple[tuple[str, ...], HostSettings]]:
    """Return the steps and settings of the hosts; those that several share, once."""
    shared = {(declared[host.name].steps, id(host.settings)): host.settings for host in hosts}
    yield from ((steps, settings) for (steps, _), settings in shared.items())


def _each_alone(root: Path, hosts: Sequence[InventoryHost], found: Judged) -> None:
    """Do the same for each lot of hosts that nothing tells apart; what is wrong with several is one refusal."""
    wrong: dict[str, tuple[SettingsError, list[str]]] = {}
    for lot in alike_hosts(root / "deploy.py", hosts):
        try:
            _declare(root, lot, found)
        except SettingsError as error:
            text = str(error).replace(f": {lot[0].name}: ", ": ")
            wrong.setdefault(text, (error, []))[1].extend(host.name for host in lot)
    order = {host.name: index for index, host in enumerate(hosts)}
    found.hosts.sort(key=lambda host: order[host.name])
    found.refusals += [WrongHosts(error, tuple(names)) for error, names in wrong.values()]
