"""Hosts that take part in a run: hosts in quarantine are skipped, and so are unreachable ones within a quorum."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rackwright.adapter.run.unreachable import offline
from rackwright.concerns.drained import Drained
from rackwright.messages import RackwrightError, counted
from rackwright.record.quarantine import Quarantined
from rackwright.record.states import RunState
from rackwright.rollout.waves import amount

Offline = Callable[[Path, Sequence[str], Path], list[str]]


@dataclass(frozen=True)
class Participants:
    """The hosts that take part, and why each of the others does not."""

    hosts: tuple[str, ...]
    quarantined: Mapping[str, Quarantined] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    drained: Mapping[str, Drained] = field(default_factory=dict)
    incomplete: Mapping[str, str] = field(default_factory=dict)
    """Hosts that serve together with one of these, and why: without it they serve nothing."""

    @property
    def reasons(self) -> list[str]:
        """Messages about the skipped hosts."""
        skipped = [f"{host} is skipped: it cannot be reached; `rackwright resume` takes it on" for host in self.skipped]
        drained = [
            f"{host} is skipped: {mark}; next: rackwright undrain INVENTORY --limit {host}"
            for host, mark in self.drained.items()
        ]
        incomplete = [f"{host} is skipped: {why}" for host, why in self.incomplete.items()]
        return (
            drained + [f"{host} is skipped: {entry}" for host, entry in self.quarantined.items()] + skipped + incomplete
        )

    @property
    def events(self) -> list[dict[str, str]]:
        """The same for the record."""
        skipped_by_mark = [(host, RunState.QUARANTINED, str(entry)) for host, entry in self.quarantined.items()]
        skipped_by_mark += [(host, RunState.DRAINED, str(mark)) for host, mark in self.drained.items()]
        away = [(host, RunState.SKIPPED, "it cannot be reached") for host in self.skipped]
        away += [(host, RunState.SKIPPED, why) for host, why in self.incomplete.items()]
        return [{"host": host, "state": state, "text": text} for host, state, text in skipped_by_mark + away]


def choose_participants(
    inventory: Path,
    hosts: Sequence[str],
    root: Path,
    quarantine: Mapping[str, Quarantined],
    quorum: str | None = None,
    of: int | None = None,
    drained: Mapping[str, Drained] | None = None,
    peers: Mapping[str, tuple[str, ...]] | None = None,
    probe: Offline = offline,
) -> Participants:
    """Find the hosts that take part.

    quorum: hosts that may be unreachable, as a number or in percent `of` so many; None: no host is asked beforehand.
    peers: by host, all that serve its endpoint together; they take part together, or none of them does.
    Raises RackwrightError when more are unreachable, or when no host remains.
    """
    resting = {host: mark for host, mark in (drained or {}).items() if host in hosts}
    quarantined = {host: quarantine[host] for host in hosts if host in quarantine and host not in resting}
    present = [host for host in hosts if host not in quarantined and host not in resting]
    if not present and resting:
        marks = "\n".join(f"{host} is {mark}" for host, mark in resting.items())
        others = f"; quarantined: {', '.join(quarantined)}" if quarantined else ""
        raise RackwrightError(
            f"every chosen host is drained{others}; nothing was done\n{marks}\n"
            f"next: rackwright undrain {inventory}{''.join(f' --limit {host}' for host in resting)}",
            code="RW0840",
        )
    if not present:
        raise RackwrightError(
            f"every chosen host is quarantined: {', '.join(quarantined)}; nothing was done; "
            f"next: rackwright quarantine {inventory}",
            code="RW0807",
        )
    away = probe(inventory, present, root) if quorum is not None else []
    _refuse_too_many(away, len(present), quorum or "0", of or len(hosts))
    incomplete = dict(_incomplete(_without(present, away), {*quarantined, *resting, *away}, peers or {}))
    going = _without(present, [*away, *incomplete])
    if not going:
        raise RackwrightError(
            "every host is skipped, or serves together with one that is; nothing was done\n"
            + "\n".join(f"{host}: {why}" for host, why in incomplete.items()),
            code="RW0846",
        )
    return Participants(tuple(going), quarantined, tuple(away), resting, incomplete)


def _incomplete(
    hosts: Iterable[str], skipped: Collection[str], peers: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, str]]:
    for host in hosts:
        if missing := [peer for peer in peers.get(host, ()) if peer in skipped]:
            verb = "do" if missing[1:] else "does"
            yield host, f"it serves together with {', '.join(missing)}, which {verb} not take part"


def _refuse_too_many(away: Sequence[str], present: int, quorum: str, of: int) -> None:
    allowed = amount(quorum, of, 0)
    if len(away) > allowed:
        raise RackwrightError(
            f"{counted(len(away), 'host')} cannot be reached, and --skip-offline {quorum} allows {allowed} of {of}: "
            f"{', '.join(away)}; nothing was done",
            code="RW0808",
        )
    if away and len(away) == present:
        raise RackwrightError(f"no host can be reached: {', '.join(away)}; nothing was done", code="RW0809")


def _without(hosts: Sequence[str], away: Collection[str]) -> list[str]:
    return [host for host in hosts if host not in away]
