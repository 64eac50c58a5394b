"""Ask by a real connection whether an endpoint's port is open to those who are let in.

This machine tries, where it is let in; and where it is not, or does not get through, another host of the run does.
Nothing is changed, and whatever comes of it is a sentence: the release does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from rackwright.adapter.command_output import tail
from rackwright.adapter.host import Host
from rackwright.adapter.timeouts import is_direct
from rackwright.hostside import host_script
from rackwright.messages import ReadingError
from rackwright.plan.change import Shell
from rackwright.plan.reach import (
    HERE,
    SECONDS,
    ClientPort,
    Prober,
    ProbeResult,
    first_let_in,
    likely_first,
    not_checked,
    reachable,
    unreachable,
    why_probe_failed,
)
from rackwright.remote.commands import command_of, remote
from rackwright.remote.errors import StepFailedError
from rackwright.remote.local_probe import probe, source_to

PEERS = 3
"""Hosts that are asked whether they may try."""


def reach_of(host: Host, client_port: ClientPort) -> str:
    """Return one sentence on whether those who are let in reach the port; never an error."""
    try:
        return _Probe(host, client_port).sentence()
    except (StepFailedError, ReadingError, ValueError) as error:
        return f"port {client_port.port} is not checked: {error}"


@dataclass(frozen=True)
class _Probe:
    host: Host
    client_port: ClientPort

    def sentence(self) -> str:
        failed: list[ProbeResult] = []
        try:
            for prober in self._let_in():
                result = self._probe_from(prober)
                if not result.why:
                    return reachable(self.client_port, prober, failed)
                failed.append(result)
        except (StepFailedError, ReadingError):
            # A peer that cannot try takes nothing from what this machine has found.
            if not failed:
                raise
        if not failed:
            return not_checked(self.client_port, self._here, self._known_peers, self._inside)
        return unreachable(self.client_port, failed, self._inside)

    def _let_in(self) -> Iterator[Prober]:
        """Yield this machine and one peer, as far as they are let in; the peer is asked only when it is needed."""
        for group in (iter([self._here]), self._peers()):
            found = first_let_in(self.client_port, group)
            if found is not None:
                yield found

    # -- who may try

    @cached_property
    def _asked(self) -> str:
        """The host as this machine knows it."""
        return str(self.host.data.get("ssh_hostname") or self.host.name)

    @cached_property
    def _seen(self) -> list[str]:
        """Return who came by SSH, from which port, and to which address, as the host says."""
        ok, output = remote(self.host, command_of(Shell(host_script("seen_from"), timeout=30)))
        words = output.stdout_lines[-1].split() if ok and output.stdout_lines else []
        return words if len(words) == 4 else []

    @property
    def _inside(self) -> str:
        """The host's address for its peers."""
        return self.client_port.address or (self._seen[2] if self._seen else self._asked)

    @cached_property
    def _here(self) -> Prober:
        """This machine, as the host sees it; with no address when it comes by a jump host."""
        if not is_direct(self.host):
            return Prober(HERE, "")
        by_ssh = self._seen and self.client_port.address in ("", self._seen[2])
        return Prober(HERE, self._seen[0] if by_ssh else source_to(self.client_port.address or self._asked))

    @cached_property
    def _known_peers(self) -> list[Prober]:
        others = [one for one in self.host.state.inventory if one.connected and one.name != self.host.name]
        peers = [Prober(one.name, str(one.data.get("ssh_hostname") or one.name)) for one in others]
        return likely_first(self.client_port, peers)[:PEERS]

    def _peers(self) -> Iterator[Prober]:
        """Yield each by the address that it would really come from."""
        for peer in self._known_peers:
            lines = self._on(peer, host_script("source_to", address=self._inside))
            yield Prober(peer.name, lines[-1] if lines else "")

    # -- what they see

    def _probe_from(self, prober: Prober) -> ProbeResult:
        if prober.name == HERE:
            return ProbeResult(prober, probe(self.client_port.address or self._asked, self.client_port.port))
        script = host_script("port_probe", address=self._inside, port=self.client_port.port, seconds=SECONDS)
        return ProbeResult(prober, why_probe_failed(self._on(prober, script)))

    def _on(self, prober: Prober, script: str) -> list[str]:
        peer = self.host.state.inventory.get_host(prober.name)
        ok, output = remote(peer, command_of(Shell(script, timeout=30)))
        if not ok:
            raise StepFailedError(f"{prober.name} could not be asked: {tail(output)}", code="RW0709")
        return list(output.stdout_lines)
