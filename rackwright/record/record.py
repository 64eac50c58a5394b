"""The contents of a run's record: who, what, how each host ended, and what is left to do. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rackwright.exit_codes import ExitCode
from rackwright.messages import counted
from rackwright.processes import lives
from rackwright.record.fault import Failure, Judgement, failures_in, judged
from rackwright.record.journal import Event
from rackwright.record.states import ENDED_WELL, SKIPPED_HOSTS, UNTOUCHED, RunState, state_named

FORWARD, BACKWARD, BY_HAND, TEARDOWN = "rollout", "rolling back", "rollback", "teardown"
DRAIN, UNDRAIN, REBOOT, DRIVERS = "drain", "undrain", "reboot", "drivers"
CACHE_VERIFY, CACHE_REPAIR, CACHE_PRUNE = "cache-verify", "cache-repair", "cache-prune"
DIAGNOSE = "diagnose"
"""Phases of a run."""

SILENT = frozenset({TEARDOWN, DRAIN, UNDRAIN, CACHE_VERIFY, CACHE_REPAIR, CACHE_PRUNE, DIAGNOSE})
"""Purposes whose runs say nothing of a host until that has ended."""
REFUSED = "refused"
"""Mark of a row that its proof did not accept."""
NOTHING_BEGUN = frozenset({RunState.BUSY, RunState.REFUSED, *SKIPPED_HOSTS})
"""States of hosts on which a run that holds them has done nothing."""


@dataclass(frozen=True)
class Record:
    """One run, as its record tells it."""

    id: str
    begin: Mapping[str, Any]
    """The first event; empty when the run was killed before it."""
    end: Mapping[str, Any] | None
    phases: Mapping[str, Mapping[str, RunState]]
    """Each host's last state, by phase; what was said outside of any phase is under the empty name."""
    before: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Proven release by endpoint by host, from before its switch."""
    targets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Release by endpoint by host that a rollback was bringing back."""
    failures: Mapping[str, tuple[Failure, ...]] = field(default_factory=dict)
    """By phase, as `phases`."""
    boots: Mapping[str, str] = field(default_factory=dict)
    """By host, the boot that the run was to end."""
    touched: frozenset[str] = frozenset()
    """Hosts that it has begun to change."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The last message about a host that did not end well."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """The first thing that went wrong on a host."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """By host, the last row of a proof that was refused, and what was seen."""
    processes: tuple[Mapping[str, Any], ...] = ()
    resumed_by: str | None = None
    mistaken: frozenset[str] = frozenset()
    """Hosts that only other settings help: an image or a repository that there is not, or that wants a key."""
    fixes: tuple[str, ...] = ()
    """Their remedies, each once, as far as their refusals say them."""
    cells: tuple[bool, ...] = ()
    """Cells of a bench that are over: True for one that gave figures."""

    @property
    def hosts(self) -> list[str]:
        """The hosts that the run was asked for, in inventory order."""
        return list(self.begin.get("hosts", []))

    @property
    def states(self) -> dict[str, RunState]:
        """Each host's last state; what a deliberate way back brought back is `taken back`."""
        found: dict[str, RunState] = {}
        for phase, states in self.phases.items():
            back = phase in (BACKWARD, BY_HAND)
            found |= {host: taken_back(state) if back else state for host, state in states.items()}
        return found

    @property
    def judgement(self) -> Judgement:
        """Return what the failures of its release mean together; those on the way back say nothing of it."""
        return judged(
            one for phase, failures in self.failures.items() if phase not in (BACKWARD, BY_HAND) for one in failures
        )

    @property
    def is_refused(self) -> bool:
        """True when it is over and began nothing: a lease was held, a hook or the operator said no, nothing was kept.

        A plain run was stopped at its prompt, or without an end its terminal was closed there; `rackwright`'s own
        commands ask before they begin a record.
        """
        if self.begin.get("plain"):
            return self.lives is False and self.has_begun_nothing
        stopped = self.end is not None and self.end["status"] in (ExitCode.ERROR, ExitCode.MIXED)
        return stopped and self.has_begun_nothing

    @property
    def has_begun_nothing(self) -> bool:
        """True as long as it has changed no host, and could not."""
        if self.touched:
            return False
        unfinished = [state for state in self.states.values() if state not in ENDED_WELL]
        silent = not self.states and self.begin.get("purpose") not in SILENT and not (self.end or {}).get("executed")
        return all(state in NOTHING_BEGUN for state in unfinished) and (bool(unfinished) or silent)

    @property
    def lives(self) -> bool | None:
        """Return whether it still runs; None when it runs on another machine, where this one cannot see it."""
        if self.end is not None:
            return False
        verdicts = [lives(process) for process in self.processes]
        return True if True in verdicts else None if None in verdicts else False

    @property
    def outcome(self) -> str:
        """Return how it ended, in a line."""
        if self.end is not None:
            return f"exit {self.end['status']}: {self.end['text']}"
        if self.resumed_by:
            return f"was cut; continued as {self.resumed_by}"
        return {
            True: "still under way",
            None: f"no end yet: ask {self.begin.get('process', {}).get('machine', 'its machine')}",
            False: f"was cut; next: rackwright resume {self.id}",
        }[self.lives]

    @property
    def began(self) -> str:
        """Return when it began, UTC, as people read it."""
        return str(self.begin.get("time", "?"))[:19].replace("T", " ")

    def counts(self) -> str:
        """Return the hosts by state, the most frequent first; of a bench, its cells: it changes no host's state."""
        if self.cells:
            return f"{sum(self.cells)} of {counted(len(self.cells), 'cell')} measured"
        by_state = Counter(self.states.values())
        silent = Counter(
            "begun" if host in self.touched else "not begun" for host in self.hosts if host not in self.states
        )
        parts = [f"{number} {state}" for state, number in (*by_state.most_common(), *sorted(silent.items()))]
        return ", ".join(parts) or "no host"


def taken_back(state: RunState) -> RunState:
    """Return the state of a host in a phase that brings hosts back."""
    return RunState.TAKEN_BACK if state is RunState.SWITCHED else state


def record_of(run_id: str, events: Iterable[Event]) -> Record:
    """Fold the events of a run."""
    fold = _Fold()
    for event in events:
        fold.add(event)
    return Record(
        run_id,
        fold.begin,
        fold.end,
        fold.phases,
        fold.before,
        fold.targets,
        {phase: tuple(failures_in(events)) for phase, events in fold.failures.items()},
        {**fold.begin.get("boots", {}), **fold.boots},
        frozenset(fold.touched),
        fold.texts,
        fold.errors,
        fold.refused,
        tuple(fold.processes),
        fold.resumed_by,
        frozenset(fold.mistaken),
        tuple(fold.fixes),
        tuple(fold.cells),
    )


class _Fold:
    """A record read up to one of its events."""

    def __init__(self) -> None:
        self.begin: Mapping[str, Any] = {}
        self.end: Mapping[str, Any] | None = None
        self.phase = ""
        self.phases: dict[str, dict[str, RunState]] = {}
        self.before: dict[str, Mapping[str, str]] = {}
        self.targets: dict[str, Mapping[str, str]] = {}
        self.failures: dict[str, list[Event]] = {}
        self.boots: dict[str, str] = {}
        self.touched: set[str] = set()
        self.texts: dict[str, str] = {}
        self.errors: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self.processes: list[Mapping[str, Any]] = []
        self.resumed_by: str | None = None
        self.mistaken: set[str] = set()
        self.fixes: dict[str, None] = {}
        self.cells: list[bool] = []

    def add(self, event: Event) -> None:
        match event["kind"]:
            case "begin":
                self.begin = event
            case "process":
                self.processes.append(event["process"])
            case "phase":
                self.phase = event["name"]
                self.phases.setdefault(self.phase, {})
            case "host":
                self._host(event)
            case "target":
                self.targets[event["host"]] = event["to"]
            case "failure":
                self.failures.setdefault(self.phase, []).append(event)
            case "stage" if event.get("changes"):
                self.touched.add(event["host"])
            case "error":
                self.errors.setdefault(event["host"], event["text"])
            case "row" if event.get("mark") == REFUSED:
                self.refused[event["host"]] = f"{event['row']}: {event.get('seen', '')}"
            case "job":
                self.touched.add(event["host"])
            case "settings":
                self.mistaken.add(event["host"])
                self.fixes |= dict.fromkeys([event["fix"]] if event.get("fix") else [])
            case "cell":
                self.cells.append("measured" in event)
            case "end":
                self.end = event
            case "resumed":
                self.resumed_by = event["by"]
        if event["kind"] == "begin" and "process" in event:
            self.processes.append(event["process"])

    def _host(self, event: Event) -> None:
        host, state = event["host"], state_named(event["state"])
        if state is None:
            return
        self.phases.setdefault(self.phase, {})[host] = state
        if state is RunState.SWITCHING:
            self.touched.add(host)
        if event.get("boot"):
            self.boots[host] = event["boot"]
        if event.get("before"):
            self.before.setdefault(host, event["before"])
        if event.get("text"):
            self.texts[host] = event["text"]


# -- hosts by how they ended


def failed_hosts(record: Record) -> list[str]:
    """Return the hosts on which something went wrong, those that were taken back afterwards included."""
    blamed = {failure.host for failures in record.failures.values() for failure in failures}
    good = ENDED_WELL | UNTOUCHED | {RunState.TAKEN_BACK}
    bad = {host for host, state in record.states.items() if state not in good}
    return [host for host in _named(record) if host in blamed | bad]


def left_hosts(record: Record) -> list[str]:
    """Return the hosts that have not ended well, those that never began included: what `rackwright resume` takes on."""
    well = ENDED_WELL if record.begin.get("purpose") != BY_HAND else ENDED_WELL | {RunState.TAKEN_BACK}
    return [host for host in record.hosts if record.states.get(host) not in well]


def _named(record: Record) -> Sequence[str]:
    return [*record.hosts, *(host for host in record.states if host not in record.hosts)]


CATEGORIES = ("failed", "left", "switched", "unchanged", "skipped", "quarantined", "not-switched", "taken-back")
"""Values of `--only`."""


def hosts_in(record: Record, category: str) -> list[str]:
    """Return the hosts of a category of CATEGORIES."""
    if category == "failed":
        return failed_hosts(record)
    if category == "left":
        return left_hosts(record)
    state = category.replace("-", " ")
    return [host for host in _named(record) if record.states.get(host) == state]
