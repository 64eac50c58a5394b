"""The four parts of every concern, and the lookup of a host's reading by concern."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from rackwright.messages import ReadingError
from rackwright.plan.answers import Answers, parse_answers
from rackwright.plan.change import Change
from rackwright.plan.hand_on import HandsOn
from rackwright.plan.reading import Section
from rackwright.settings.host_settings import HostSettings

Wanted = TypeVar("Wanted")
Seen = TypeVar("Seen")
Parsed = TypeVar("Parsed")
SHARED = ("units", "engine")
"""Sections that all concerns share."""


@dataclass(frozen=True)
class Concern(Generic[Wanted, Seen]):
    """One subject that Rackwright manages on a host: docker, firewall, registry, ...

    name: used in sections, error messages and `rackwright plan`.
    read: shell lines that print the needed state of a host (they never change it, and contain no secret).
    parse: pure parser of their output.
    wanted: the state that the settings want, given the whole reading (a GPU's UUID, an image's digest).
    changes: pure list of differences; empty on a converged host.
    report: text to show at every run, if any (preflight's line, a warning that needs no change).
    details: the complete report, for `-v`.
    files: whole files by path as they would be written to a bare host, for `rackwright render`; secrets as masks.
    alone: no other concern depends on this one's changes, so a reading stays valid for them, which is cheaper.
    looks: its changes only look at the host, and what they find may refuse it: afterwards it is decided again.
    takes: the sections of the settings that it receives; reading another one is an error. None for all of them.
    units: systemd's units whose state it needs, in addition to the endpoints' units.
    joined: its lines with those that follow from the shared sections, in the format that `parse` reads.
    """

    name: str
    read: Callable[[HostSettings], str]
    parse: Callable[[str], Seen]
    wanted: Callable[[HostSettings, HostReading], Wanted]
    changes: Callable[[Wanted, Seen], Sequence[Change]]
    report: Callable[[Wanted, Seen], str] | None = None
    details: Callable[[Wanted, Seen], str] | None = None
    files: Callable[[HostSettings], Mapping[str, str]] | None = None
    alone: bool = False
    looks: bool = False
    takes: frozenset[str] | None = None
    units: tuple[str, ...] = ()
    joined: Callable[[str, Answers], str] | None = None

    def __post_init__(self) -> None:
        """Make the concern's functions receive only its own sections."""
        if self.takes is None:
            return
        takes, read, wanted, files = self.takes, self.read, self.wanted, self.files
        object.__setattr__(self, "read", lambda settings: read(settings.only(takes)))
        object.__setattr__(self, "wanted", lambda settings, reading: wanted(settings.only(takes), reading))
        if files is not None:
            object.__setattr__(self, "files", lambda settings: files(settings.only(takes)))

    def pending(self, settings: HostSettings, reading: HostReading) -> list[Change]:
        """Return the changes that make the host match its settings in this concern."""
        return list(self.changes(self.wanted(settings, reading), reading[self]))


@dataclass(frozen=True)
class ResolvedNames:
    """Answers of registry or hub in this run about tags or branches that settings, lock and host do not resolve."""

    resolved: Mapping[str, str] = field(default_factory=dict)
    """Digest or commit by name."""
    unresolved: Mapping[str, str] = field(default_factory=dict)
    """By name, why this machine got no answer."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Those that their server does not have or does not show, with its message."""


@dataclass(frozen=True)
class HostReading:
    """A run's data about one host: its reading, by concern, and the data that the control machine got elsewhere."""

    by_concern: Mapping[str, Any]
    managed: frozenset[str] | None = None
    """None where no deploy.py decides: a rollback, a teardown, a lock."""
    others: Mapping[str, HostReading] = field(default_factory=dict)
    """Readings of the other hosts that serve its endpoint with it, as far as this run has them."""
    names: Mapping[str, ResolvedNames] = field(default_factory=dict)
    """By concern, answers of registry and hub to this machine; none of it comes from the host."""
    hands_on: HandsOn | None = None
    """Its part in what the hosts of this run hand on to each other; None where they are not to."""

    def manages(self, concern: Concern[Any, Any]) -> bool:
        """Return True if a deploy changes anything in this concern."""
        return self.managed is None or concern.name in self.managed

    def names_of(self, concern: Concern[Any, Any]) -> ResolvedNames:
        """Return the names that a concern uses, as resolved in this run."""
        return self.names.get(concern.name, ResolvedNames())

    def __getitem__(self, concern: Concern[Any, Seen]) -> Seen:
        return cast(Seen, self.by_concern[concern.name])


def parse_all(
    concerns: Sequence[Concern[Any, Any]], sections: Mapping[str, Section], managed: frozenset[str] | None = None
) -> HostReading:
    """Parse every section. Raises ReadingError with the concern whose lines failed or were invalid."""
    shared = [_output(name, sections[name]) if name in sections else "" for name in SHARED]
    answers = _made_of("units and containers", lambda: parse_answers(*shared))
    by_concern = {concern.name: _parse(concern, sections[concern.name], answers) for concern in concerns}
    return HostReading(by_concern, managed)


def _parse(concern: Concern[Any, Seen], section: Section, answers: Answers) -> Seen:
    output = _output(concern.name, section)
    joined = concern.joined
    return _made_of(concern.name, lambda: concern.parse(joined(output, answers) if joined else output))


def _output(name: str, section: Section) -> str:
    if section.status == 0:
        return section.output
    raise ReadingError(
        f"{name} could not be read (exit {section.status}): {section.error.strip() or 'no text'}", code="RW0501"
    )


def _made_of(name: str, parse: Callable[[], Parsed]) -> Parsed:
    try:
        return parse()
    except ReadingError:
        raise
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ReadingError(f"{name}: the host printed something unexpected: {error!r}", code="RW0502") from error
