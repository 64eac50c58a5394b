"""The order of switches inside a pyinfra run: canaries first, waves and limits, a stop at the first failure.

pyinfra runs an operation's hosts in random order. So the hosts that must switch are announced beforehand,
and the first worker in the switch operation takes the *next host in inventory order*, whichever host
it came for. `waves` decides which that is; this module only keeps the turns and waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rackwright.adapter.concurrency import new_condition
from rackwright.record.cause import Cause, Reason
from rackwright.record.fault import Failure, judged
from rackwright.record.journal import note
from rackwright.rollout.waves import (
    CANARIES,
    Node,
    RunLimits,
    RunProgress,
    Turn,
    bake_due,
    eligible,
    in_order,
    wave_numbers,
    waves_event,
)

if TYPE_CHECKING:
    from rackwright.adapter.concurrency import Condition

__all__ = ["Outcome", "Turn", "TurnQueue"]

Work = Callable[[], "Outcome"]


@dataclass(frozen=True)
class Outcome:
    """The end of a switch, or of the watching after it."""

    reasons: tuple[Reason, ...] = ()
    """All that went wrong, what says most first; empty when well."""
    serves: bool = True
    """True if the host serves now."""

    @property
    def is_well(self) -> bool:
        """True when nothing went wrong."""
        return not self.reasons


@dataclass
class Entry:
    """One announced host. `work` switches and proves it."""

    node: Node
    work: Work
    turn: Turn = Turn.WAITING
    outcome: Outcome = field(default_factory=Outcome)


@dataclass(frozen=True)
class Bake:
    """A finished wave that is to be watched before the next one."""

    wave: int
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Begin:
    """A wave that is about to begin."""

    wave: int
    hosts: tuple[str, ...]


@dataclass
class TurnQueue:
    """The queue of one run. Hosts wait for their turn on its condition.

    bake: watches the hosts of a finished wave and tells which of them failed, or None without a bake.
    """

    limits: RunLimits = field(default_factory=lambda: RunLimits({}))
    bake: Callable[[Bake], dict[str, Outcome]] | None = None
    entries: dict[str, Entry] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    baked: int = 0
    baking: bool = False
    reported: bool = False
    on_wave: Callable[[Begin], str] | None = None
    """Called before a wave begins; returns why it must not, or nothing."""
    on_end: Callable[[str, Outcome], None] | None = None
    """Called when a host's switch has ended, or when it has failed afterwards."""
    begun: int = CANARIES - 1
    beginning: bool = False
    held: str = ""
    """The reason for which no further wave begins."""
    changed: Condition = field(default_factory=new_condition)

    def announce(self, node: Node, work: Work) -> None:
        """Put a host into the queue."""
        self.entries[node.name] = Entry(node, work)

    def failed(self) -> list[str]:
        """Names of hosts whose switch failed, in inventory order."""
        return [node.name for node in in_order(self._nodes()) if self.entries[node.name].turn is Turn.FAILED]

    def is_canary(self, name: str) -> bool:
        """Return True if no host of the same shape has switched and answered yet."""
        shape = self.entries[name].node.shape
        same = (entry for entry in self.entries.values() if entry.node.shape == shape)
        return not any(entry.turn is Turn.DONE for entry in same)

    def pass_through(self, name: str) -> bool:
        """Work on the queue until host `name` has had its turn; returns whether its switch went well."""
        entry = self.entries[name]
        self._tell_waves()
        while (task := self._take_next(entry)) is not None:
            if isinstance(task, Begin):
                self._begin(task)
            elif isinstance(task, Bake):
                outcomes = self._bake_wave(task)
                self._finish_bake(outcomes)
                self._tell_ends(outcomes)
            else:
                with self._in_turn(task):
                    outcome = task.work()
                self._finish(task, outcome)
                self._tell_ends({task.node.name: outcome})
        return entry.turn is Turn.DONE

    def _tell_waves(self) -> None:
        """Report once, when all hosts are in the queue, which follows which, and how many may be down where."""
        with self.changed:
            first, self.reported = not self.reported, True
        if first:
            note("waves", **waves_event(self._nodes(), self.limits))

    def _tell_ends(self, outcomes: Mapping[str, Outcome]) -> None:
        if self.on_end is not None:
            for name, outcome in outcomes.items():
                self.on_end(name, outcome)

    def _begin(self, task: Begin) -> None:
        why = "asking whether the wave may begin broke off"
        try:
            why = self.on_wave(task) if self.on_wave else ""
        finally:
            with self.changed:
                self.begun, self.beginning, self.held = task.wave, False, why
                self.changed.notify_all()

    def _take_next(self, entry: Entry) -> Entry | Bake | Begin | None:
        with self.changed:
            while self._wanted(entry):
                if self.held or not judged(self.failures, self.limits.budget).goes_on:
                    self._stop_the_rest()
                elif (task := self._task()) is not None:
                    return task
                elif self._under_way():
                    self.changed.wait()
                else:  # hosts that are down for good have used up every limit
                    self._stop_the_rest()
        return None

    def _task(self) -> Entry | Bake | Begin | None:
        progress = self._progress()
        if names := eligible(self._nodes(), progress, self.limits):
            if self.on_wave and self._wave_of(names[0]) > self.begun:
                return self._new_wave(self._wave_of(names[0]))
            entry = self.entries[names[0]]
            entry.turn = Turn.RUNNING
            return entry
        wave = bake_due(self._nodes(), progress, self.limits.wave)
        if wave is None or self.baking:
            return None
        self.baking = True
        return self._bake(wave)

    def _wave_of(self, name: str) -> int:
        return wave_numbers(self._nodes(), self.limits.wave).get(name, CANARIES)

    def _new_wave(self, wave: int) -> Begin | None:
        if self.beginning:
            return None
        self.beginning = True
        names = [node.name for node in in_order(self._nodes()) if self._wave_of(node.name) == wave]
        return Begin(wave, tuple(names))

    def _wanted(self, entry: Entry) -> bool:
        return entry.turn in (Turn.WAITING, Turn.RUNNING)

    def _under_way(self) -> bool:
        return self.baking or self.beginning or any(entry.turn is Turn.RUNNING for entry in self.entries.values())

    def _bake(self, wave: int) -> Bake:
        numbers = wave_numbers(self._nodes(), self.limits.wave)
        done = [name for name, entry in self.entries.items() if entry.turn is Turn.DONE and numbers[name] <= wave]
        return Bake(wave, tuple(done))

    def _bake_wave(self, task: Bake) -> dict[str, Outcome]:
        try:
            return self.bake(task) if self.bake else {}
        except BaseException:
            broken = Outcome((Reason(Cause.OTHER, "watching broke off"),))
            self._finish_bake(dict.fromkeys(task.hosts[:1], broken))
            raise

    def _finish_bake(self, outcomes: dict[str, Outcome]) -> None:
        with self.changed:
            self.baked += 1
            self.baking = False
            for name, outcome in outcomes.items():
                self._note(self.entries[name], outcome)
            self.changed.notify_all()

    @contextmanager
    def _in_turn(self, entry: Entry) -> Iterator[None]:
        """Leave the queue to the others where a turn breaks off."""
        try:
            yield
        except BaseException:
            self._finish(entry, Outcome((Reason(Cause.OTHER, "the run broke off"),), serves=False))
            raise

    def _finish(self, entry: Entry, outcome: Outcome) -> None:
        with self.changed:
            self._note(entry, outcome)
            self.changed.notify_all()

    def _note(self, entry: Entry, outcome: Outcome) -> None:
        entry.outcome = outcome
        entry.turn = Turn.DONE if outcome.is_well else Turn.FAILED
        name, wave = entry.node.name, self._wave_of(entry.node.name)
        self.failures += [Failure(name, reason.cause, reason.check, wave) for reason in outcome.reasons]
        fault = judged(self.failures).whose(name)
        for reason in outcome.reasons:
            note("failure", host=name, cause=reason.cause, check=reason.check, wave=wave, fault=fault)

    def _stop_the_rest(self) -> None:
        for entry in self.entries.values():
            if entry.turn is Turn.WAITING:
                entry.turn = Turn.STOPPED
        self.changed.notify_all()
        if self._under_way():
            self.changed.wait()

    def _nodes(self) -> list[Node]:
        return [entry.node for entry in self.entries.values()]

    def _progress(self) -> RunProgress:
        lost = frozenset(
            name for name, entry in self.entries.items() if entry.turn is Turn.FAILED and not entry.outcome.serves
        )
        return RunProgress({name: entry.turn for name, entry in self.entries.items()}, lost, self.baked)
