"""Endpoints' ports that let in the gateways alone: they are opened before a teardown takes the last gateway away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files

from rackwright.inspect.run_script import HostOutput, spread
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError
from rackwright.paths import FIREWALL_SCRIPT
from rackwright.plan.change import Shell
from rackwright.rollout.launch import Run
from rackwright.settings.problems import some

CODE = "RW3509"
STEP = "gateway"
"""The step of deploy.py that makes gateways."""
Steps = Mapping[str, Sequence[str]]
"""By host, the steps that deploy.py calls."""
CLOSED = f"if grep -qx direct=closed {FIREWALL_SCRIPT} 2>/dev/null; then echo closed; fi"


def closed_behind(inventory: str, hosts: Sequence[InventoryHost], steps: Steps | None) -> list[str]:
    """Return the hosts that would let in the gateways alone, and no gateway, after a teardown of these hosts.

    steps: by host, what deploy.py calls, where only what other steps left is to go. A host that cannot be asked counts
    as the settings say.
    """
    gateways = [entry for entry in hosts if entry.settings.is_gateway and STEP not in (steps or {}).get(entry.name, ())]
    going = {entry.name for entry in gateways}
    if not gateways or not going >= {one.host for one in gateways[0].settings.gateways}:
        return []
    torn = set() if steps is not None else {entry.name for entry in hosts}
    servers = [server.host for one in gateways[0].settings.backends for server in one.servers]
    behind = [name for name in dict.fromkeys(servers) if name not in torn]
    return still_closed(inventory, behind, gateways[0].settings.direct_is_closed)


def still_closed(inventory: str, hosts: Sequence[str], unknown: bool) -> list[str]:
    """Return the hosts whose ports let in the gateways alone. unknown: whether a host counts that cannot be asked."""
    outputs = _outputs(inventory, hosts)
    return [name for name in hosts if ("closed" in outputs[name].out if name in outputs else unknown)]


def _outputs(inventory: str, hosts: Sequence[str]) -> Mapping[str, HostOutput]:
    """Return what the hosts print on their ports; those that cannot be asked are missing."""
    try:
        found = spread(inventory, hosts, lambda _: Shell(CLOSED, timeout=60)) if hosts else {}
    except RackwrightError:
        return {}
    return {name: one for name, one in found.items() if one.ok}


def open_direct(run: Run, hosts: Sequence[str]) -> None:
    """Open the ports of these hosts to the clients of `allow_from`. Raises RackwrightError where one stays closed."""
    if not hosts:
        return
    with as_file(files("rackwright.operations.deploys") / "open_direct.py") as deploy:
        run.pyinfra(deploy, hosts, {})
    if closed := still_closed(str(run.inventory), hosts, unknown=True):
        text = f"{some(closed)} would let in no clients: the endpoints' ports let in the gateways alone, and could not "
        raise RackwrightError(f"{text}be opened, see above; no gateway was removed", code=CODE)
