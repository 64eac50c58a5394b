"""Let a canary serve beside its peers before its commit, look at all of them at the same time, and judge it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rackwright.adapter.command_output import tail
from rackwright.adapter.concurrency import side_by_side, sleep
from rackwright.adapter.connection import Command
from rackwright.adapter.host import Host, say
from rackwright.adapter.run_context import part_of
from rackwright.concerns.endpoint.peers.engine_sums import (
    AnsweredPair,
    EngineSums,
    drafts_between,
    drafts_by_rate,
    own_script,
    pace_between,
    parse_own,
    parse_sums,
    sums_script,
)
from rackwright.concerns.endpoint.peers.peer_check import MOST_PEERS, PAIRS, PeerCheck
from rackwright.concerns.endpoint.peers.peer_verdict import NO_PEER, ROW, Watched, enough, peer_verdict
from rackwright.concerns.endpoint.proof.proof_row import Verdict, mark_of
from rackwright.concerns.endpoint.quality.canaries import Canaries
from rackwright.concerns.endpoint.quality.quality_check import AskedRelease
from rackwright.concerns.endpoint.switch.events import COLOURS
from rackwright.quality.beside import BesidePeers, HostPace, PacePair
from rackwright.record.journal import note
from rackwright.remote.commands import command_of, remote
from rackwright.remote.errors import ConnectionLostError, StepFailedError

FRUITLESS = 3
"""Windows without a pair, after which clients send too few requests to wait for more."""
Tell = Callable[[str], None]
"""Sends the waiting host a message: `hold` or `admit`."""


@dataclass(frozen=True)
class Peer:
    """A host that serves the release before, and how that is reached on it."""

    host: Host
    of: AskedRelease


@dataclass(frozen=True)
class PeerFinders:
    """By canary, what finds its peers among the hosts of the run."""

    by_host: dict[str, Callable[[PeerCheck], list[Peer]]] = field(default_factory=dict)


def refused_beside_peers(host: Host, checks: Sequence[PeerCheck], tell: Tell) -> dict[str, str]:
    """Let a canary's clients in, compare it with its peers, show and note each verdict, and return refused rows."""
    if not checks or host.name not in part_of(host.state, Canaries).names:
        return {}
    refused, admitted = {}, False
    for check in checks:
        peers = _peers(host, check)
        if peers and not admitted:
            say(host, "  clients are let in, on trial: without a word from here the host drains and rolls back")
            tell("admit")
            admitted = True
        watched = _Watch(host, check, peers, tell).watched() if peers else None
        verdict = peer_verdict(check, watched) if watched else Verdict(False, NO_PEER, measured=False)
        _show(host, check, verdict, watched)
        if verdict.measured and not verdict.passed:
            refused[ROW if len(checks) == 1 else f"{check.now.endpoint}: {ROW}"] = verdict.text
    return refused


def _peers(host: Host, check: PeerCheck) -> list[Peer]:
    find = part_of(host.state, PeerFinders).by_host.get(host.name)
    return find(check)[:MOST_PEERS] if find else []


def _show(host: Host, check: PeerCheck, verdict: Verdict, watched: Watched | None) -> None:
    mark = mark_of(verdict, not verdict.passed)
    say(host, f"  {mark}: {ROW}: {verdict.text}", COLOURS[mark])
    pairs = watched.pairs if watched else []
    fields = {"row": ROW, "mark": mark, "seen": verdict.text, "figure": verdict.figure}
    figures = {"figure_before": BesidePeers(pairs, check.slower_by).figures()[1] if pairs else None}
    values = {"pairs": [_values(pair) for pair in pairs]} if pairs else {}
    note("row", host=host.name, endpoint=check.now.endpoint, **fields, **figures, **values)


def _values(pair: PacePair) -> dict[str, list[float | None]]:
    """Return a pair as the record keeps it: seconds to the first token, and a token; the canary's have no name."""
    return {name: [pace.first, pace.token] for name, pace in {"": pair.canary, **pair.peers}.items()}


@dataclass
class _Watch:
    """One look after the other at a canary and its peers."""

    host: Host
    check: PeerCheck
    peers: list[Peer]
    tell: Tell
    lost: set[str] = field(default_factory=set)

    def watched(self) -> Watched:
        """Return pairs under clients' load; where that is too little, of requests of its own."""
        names = ", ".join(peer.host.name for peer in self.peers)
        if not self.check.metrics:
            say(self.host, f"  {ROW}: {self.check.why_no_metrics}; requests of its own are sent, to {names} too")
            return self._own("the engine shows no times of clients' requests")
        say(self.host, f"  {ROW}: it serves beside {names} for about {self.check.seconds} s before its commit")
        found = self._under_load()
        if enough(found.pairs):
            return found
        say(self.host, f"  {ROW}: {found.why_few}; requests of its own are sent, to {names} too")
        return self._own(found.why_few)

    def _under_load(self) -> Watched:
        """Ask all at the end of each window; the first one lets caches and queues fill, and does not count."""
        found, window = Watched(), self.check.window
        began = time.monotonic()
        first = before = None
        for number in range(PAIRS + 2):
            sleep(max(0.0, began + number * window - time.monotonic()))
            self.tell("hold")
            after = self._look()
            if before is not None and number > 1:
                found.pairs += self._pair(before, after)
            else:
                first = after
            before = after
            if number == 1 + FRUITLESS and not found.pairs:
                break
        found.source = f"{len(found.pairs)} windows of {window:.0f} s under clients' load"
        found.why_few = f"clients' requests make {len(found.pairs)} pairs in {time.monotonic() - began:.0f} s"
        found.drafts = drafts_between(self.check.now.engine, (first or {}).get(""), (before or {}).get(""))
        return found

    def _look(self) -> dict[str, EngineSums | None]:
        """Return the sums of all hosts at one moment; the canary's have no name."""
        hosts = [(self.host, self.check.now), *((peer.host, peer.of) for peer in self._there())]
        looks = side_by_side(lambda one: self._sums(*one), hosts, len(hosts))
        names = ["", *(host.name for host, _ in hosts[1:])]
        return dict(zip(names, looks, strict=True))

    def _sums(self, host: Host, of: AskedRelease) -> EngineSums | None:
        lines = self._printed(host, command_of(sums_script(of, self.check.metrics)))
        return parse_sums(lines or [])

    def _printed(self, host: Host, command: Command) -> Sequence[str] | None:
        """Return what a command prints; None where a peer is lost, of which the canary is innocent."""
        try:
            ok, output = remote(host, command, quiet=True, twice=True)
        except (ConnectionLostError, StepFailedError):
            if host.name == self.host.name:
                raise
            self.lost.add(host.name)
            return None
        return output.stdout_lines if ok else [tail(output)]

    def _there(self) -> list[Peer]:
        return [peer for peer in self.peers if peer.host.name not in self.lost]

    def _pair(self, before: dict[str, EngineSums | None], after: dict[str, EngineSums | None]) -> list[PacePair]:
        engine = self.check.now.engine
        paces = {name: pace_between(engine, before.get(name), look) for name, look in after.items()}
        pair = PacePair(paces.pop(""), {name: pace for name, pace in paces.items() if pace != HostPace()})
        return [pair] if pair.canary != HostPace() and pair.peers else []

    def _own(self, why: str) -> Watched:
        """Send canary and peers the same requests in turn, one at a time, so that each is alone with them."""
        found, rates, failures = Watched(), list[float](), list[str]()
        for number in range(PAIRS):
            peers = self._there()
            if not peers:
                break
            peer = peers[number % len(peers)]
            order = [(self.host, self.check.now), (peer.host, peer.of)]
            paces = {host.name: self._answered(host, of, number) for host, of in order[:: 1 if number % 2 else -1]}
            canary, other = paces[self.host.name], paces[peer.host.name]
            rates += [canary.rate] if canary.rate else []
            failures += [one.why for one in (canary, other) if one.why]
            if canary.pace != HostPace() and other.pace != HostPace():
                found.pairs.append(PacePair(canary.pace, {peer.host.name: other.pace}))
            elif number + 1 >= FRUITLESS and not found.pairs:
                break
        found.source = f"{len(found.pairs)} pairs of Rackwright's own requests, since {why}"
        found.why_few = failures[-1] if failures else "its peers are lost"
        found.drafts = drafts_by_rate(rates) if self.check.drafting else ""
        return found

    def _answered(self, host: Host, of: AskedRelease, number: int) -> AnsweredPair:
        self.tell("hold")
        lines = self._printed(host, command_of(own_script(of, number)))
        return AnsweredPair(HostPace(), why=f"{host.name} is lost") if lines is None else parse_own(lines)
