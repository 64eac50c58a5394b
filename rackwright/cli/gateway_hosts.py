"""The gateways of an inventory, and the file with their clients' keys, for verbs that work on them alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rackwright.adapter.run.session import chosen_hosts
from rackwright.inspect.run_script import HostOutput, spread_over
from rackwright.loading.files import site_root
from rackwright.loading.gateways import GROUP
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, SettingsError
from rackwright.plan.change import Shell
from rackwright.settings.gateway import Gateway

NO_MATCH, NO_HOST_REACHED = "RW1312", "RW1314"


@dataclass(frozen=True)
class Gateways:
    """The gateways of an inventory, in its order."""

    inventory: str
    hosts: tuple[InventoryHost, ...]

    @property
    def names(self) -> list[str]:
        """Their names in the inventory."""
        return [host.name for host in self.hosts]

    @property
    def settings(self) -> Gateway:
        """Settings of the first: limits and the name of the file are the same for all."""
        return self.hosts[0].settings.gateway

    @property
    def models(self) -> list[str]:
        """The models behind them."""
        return [backend.model for backend in self.hosts[0].settings.backends]

    @property
    def key_file(self) -> Path:
        """The site's file of keys. Raises SettingsError where the gateways name several."""
        files = {host.settings.gateway.keys: host.name for host in self.hosts}
        if len(files) > 1:
            each = ", ".join(f"{name} on {host}" for name, host in files.items())
            raise SettingsError(
                f"gateway.keys names {each}; one address has one file of keys; nothing was done; next: set it in "
                "group_vars/gateway.yml alone",
                code="RW1096",
            )
        return site_root(Path(self.inventory).expanduser()) / next(iter(files))

    def run(self, script: Shell) -> dict[str, HostOutput]:
        """Run a script on each; what it printed, in the inventory's order, also where none can be reached."""
        try:
            return spread_over(self.hosts, lambda _: script)
        except RackwrightError as error:
            if error.code != NO_HOST_REACHED:
                raise
            return {name: HostOutput(False, err=("cannot be reached",)) for name in self.names}


def gateways_of(inventory: str) -> Gateways:
    """Return the gateways of an inventory. Raises RackwrightError for one that has none."""
    try:
        return Gateways(inventory, tuple(chosen_hosts(inventory, (GROUP,))))
    except RackwrightError as error:
        if error.code != NO_MATCH:
            raise
    raise RackwrightError(
        f"{inventory} has no group {GROUP}; nothing was done; next: name the gateway's host in that "
        "group, then: rackwright check INVENTORY",
        code="RW1056",
    )


def each_of(outputs: dict[str, HostOutput], wanted: Callable[[HostOutput], bool]) -> list[str]:
    """Return the names of the hosts whose output is as wanted."""
    return [name for name, output in outputs.items() if wanted(output)]
