"""Faults behind a run's failures: one fold over all of them, in whatever order they came (DECISIONS 31, 52). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rackwright.record.cause import Cause, Reason

FIRST_WAVE = 1
"""Canaries are wave 0. What fails no later than here fails where nothing else has changed."""


class Fault(StrEnum):
    """The party at fault, and so what happens to the other hosts."""

    RELEASE = "the release's"
    HOST = "the host's"
    UNKNOWN = "unknown"


@dataclass(frozen=True, order=True)
class Failure:
    """One thing that went wrong with a host's switch, or in the bake after it."""

    host: str
    cause: Cause
    check: str
    wave: int


@dataclass(frozen=True)
class Judgement:
    """The meaning of all failures of a run together."""

    fault: Fault | None = None
    """The run's; None when nothing has failed."""
    blamed: Mapping[str, Reason] = field(default_factory=dict)
    """Hosts with a fault of their own, and which; the release's fault beside it takes none of them away."""
    refused: frozenset[str] = frozenset()
    """Hosts on which a check refused the release."""
    goes_on: bool = True
    """True where further hosts may switch."""

    @property
    def is_the_releases(self) -> bool:
        """True when the hosts that have the release must leave it again."""
        return self.fault is Fault.RELEASE

    def whose(self, host: str) -> Fault:
        """Return whose fault the failure of one of these hosts is."""
        if host in self.blamed:
            return Fault.HOST
        return Fault.RELEASE if self.is_the_releases and host in self.refused else Fault.UNKNOWN


def judged(failures: Iterable[Failure], budget: int = 0) -> Judgement:
    """Judge all failures of a run up to now; their order means nothing.

    budget: hosts with a fault of their own that may be skipped while the run continues.
    """
    found = sorted(set(failures))
    if not found:
        return Judgement()
    blamed = {one.host: Reason(one.cause, one.check) for one in reversed(found) if one.cause.is_hosts}
    checks = [one for one in found if one.cause is Cause.CHECK]
    fault = _fault(found, checks)
    goes_on = fault is Fault.HOST and len(blamed) <= budget
    return Judgement(fault, blamed, frozenset(one.host for one in checks), goes_on)


def _fault(found: Collection[Failure], checks: Collection[Failure]) -> Fault:
    if any(one.wave <= FIRST_WAVE for one in checks) or _is_repeated(checks):
        return Fault.RELEASE
    return Fault.HOST if all(one.cause.is_hosts for one in found) else Fault.UNKNOWN


def _is_repeated(checks: Collection[Failure]) -> bool:
    """Return whether one check has failed on two hosts."""
    places = {(one.check, one.host) for one in checks}
    return len({check for check, _ in places}) < len(places)


def failures_in(events: Iterable[Mapping[str, Any]]) -> list[Failure]:
    """Return the failures of a record's events. A broken event is left out; a cause unknown here blames no host."""
    return [_failure(event) for event in events if event["kind"] == "failure" and isinstance(event.get("wave"), int)]


def _failure(event: Mapping[str, Any]) -> Failure:
    is_listed = event.get("cause") in set(Cause)
    cause = Cause(event["cause"]) if is_listed else Cause.OTHER
    return Failure(str(event["host"]), cause, str(event.get("check", "")), event["wave"])
