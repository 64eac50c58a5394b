"""The hosts of the lab that is up, as a pyinfra inventory has them."""

from __future__ import annotations

from typing import Any

from rackwright.messages import counted
from rackwright.settings.secret import Secret
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.machine.shell import LabError
from rackwright_lab.real.builds import named


def hosts(lab_id: str | None = None, together: int = 1) -> list[tuple[str, dict[str, Any]]]:
    """Name, SSH data and settings of every host of a lab (default: RACKWRIGHT_LAB_ID, or "demo").

    Host keys are checked strictly, against the known_hosts file that the lab wrote. The settings are the lab's
    own certificate authority, registry key and hub token. together: how many of them serve one endpoint.
    Raises LabError when no lab is up, or when some of its hosts would be left over.
    """
    lab = Lab.open(lab_id)
    _refuse_uneven(lab.paths.id, len(lab.hosts), together)
    return [(host.name, {**ssh_data(host), **settings(lab)}) for host in lab.hosts]


def _refuse_uneven(lab_id: str, number: int, together: int) -> None:
    left_over = number % together
    if left_over:
        more = number + together - left_over
        text = f"the lab {lab_id} has {counted(number, 'host')}, and each {together} serve its profile together"
        raise LabError(f"{text}; next: rackwright lab up --id {lab_id} --hosts {more}")


def endpoint(lab_id: str | None = None) -> dict[str, Any]:
    """Return settings of an endpoint that serves the lab's real vLLM, of the version that the lab offers, on a CPU.

    Raises LabError when no lab is up, or it offers none.
    """
    lab = Lab.open(lab_id)
    if lab.real is None:
        raise LabError(
            f"the lab {lab.paths.id} offers no real engine: rackwright lab up --id {lab.paths.id} --engine vllm"
        )
    return named(lab.real).settings


def settings(lab: Lab) -> dict[str, Any]:
    """Return what a host needs to use the lab's servers: settings keys, and secrets that print as a mask."""
    found = lab.secrets()
    return {
        # The same names lead to the lab here: its digests and commits must not become the site's, nor another lab's.
        "paths": {
            "lock_file": f"rackwright.lock.{lab.paths.id}.yml",
            "presets_file": f"rackwright.presets.{lab.paths.id}.yml",
            "private_ca": str(lab.paths.pki / "ca.crt"),
        },
        # The hosts need no proxy; this machine finds the lab's names through it.
        "control_proxy": {"http": lab.proxy.url},
        "mirrors": {f"{name}_keys": list(keys) for name, keys in lab.apt_keys().items()},
        "registry": {"key": Secret(found["registry-key"])},
        "models": {"hub_token": Secret(found["hub-token"])},
    }


def ssh_data(host: Host) -> dict[str, Any]:
    """Return what pyinfra's SSH connector needs to reach one host."""
    return {
        "ssh_hostname": host.address,
        "ssh_port": host.port,
        "ssh_user": host.user,
        "ssh_key": str(host.key),
        "ssh_known_hosts_file": str(host.known_hosts),
        "ssh_strict_host_key_checking": "yes",
        "ssh_allow_agent": False,
        "ssh_look_for_keys": False,
    }
