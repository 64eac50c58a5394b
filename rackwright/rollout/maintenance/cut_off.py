"""Hosts whose restart would cut the run off: this machine itself, and jump hosts to others of the inventory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rackwright.adapter.ssh.proxy_route import chain_of
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, listed
from rackwright.settings.ssh.openssh import SshQuestion, ask

BOOT = Path("/proc/sys/kernel/random/boot_id")


def refuse_this_machine(boots: Mapping[str, str], here: str | None = None) -> None:
    """Raise RackwrightError where one of the hosts is the machine that this command runs on.

    boots: boot of each host. here: this machine's; by default it is read.
    """
    boot_here = BOOT.read_text().strip() if here is None else here
    if same := [name for name, boot in boots.items() if boot == boot_here]:
        raise RackwrightError(
            f"{', '.join(same)} is this machine itself: its restart would end the run; nothing was done; next: the "
            "same command from another machine, or the other hosts by --limit",
            code="RW4156",
        )


def refuse_jump_hosts(everybody: Sequence[InventoryHost], restarts: Sequence[InventoryHost]) -> None:
    """Raise RackwrightError where one of the hosts is the way to others. everybody: all hosts of the inventory."""
    restarted = {address: host.name for host in restarts for address in _addresses(host)}
    for other in everybody:
        hop = next((hop for hop in _hops(other) if restarted.get(hop, other.name) != other.name), None)
        if hop is not None:
            behind = listed([one.name for one in everybody if hop in set(_hops(one))], len(everybody))
            raise RackwrightError(
                f"{restarted[hop]} is the jump host to {behind}, which its restart would cut off; nothing was done; "
                "next: the other hosts by --limit, and this one from a machine that reaches them without it",
                code="RW4166",
            )


def _question(host: InventoryHost) -> SshQuestion:
    data = host.data
    user, port = data.get("ssh_user"), data.get("ssh_port")
    name = str(data.get("ssh_hostname") or host.name)
    return SshQuestion(name, data.get("ssh_config_file") or None, user or None, int(port) if port else None)


def _addresses(host: InventoryHost) -> Iterator[str]:
    question = _question(host)
    yield from (host.name, question.host)
    if real := ask(question).get("hostname"):
        yield real


def _hops(host: InventoryHost) -> Iterator[str]:
    """Yield the names and addresses of a host's jump hosts."""
    question = _question(host)
    answer = ask(question)
    if answer.get("proxyjump") in ("", "none"):
        return
    for hop in chain_of(answer, question):
        yield hop.host
        if real := ask(hop.question(question.file)).get("hostname"):
            yield real
