"""The four parts that every concern has, and how a host's reading is looked up by concern."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from rackwright.messages import ReadingError
from rackwright.plan.answers import Answers, parse_answers
from rackwright.plan.change import Change
from rackwright.plan.reading import Section
from rackwright.settings.model import HostSettings

Wanted = TypeVar("Wanted")
Seen = TypeVar("Seen")
Parsed = TypeVar("Parsed")
SHARED = ("units", "engine")
"""Sections that no concern has for itself."""


@dataclass(frozen=True)
class Concern(Generic[Wanted, Seen]):
    """One subject that Rackwright takes care of on a host: docker, firewall, registry, ...

    name: word for sections, error messages and `rackwright plan`.
    read: shell lines that print what is needed to know of a host (they never change it, and hold no secret).
    parse: pure parser of what they printed.
    wanted: what the settings ask for, given the whole reading (a GPU's UUID, an image's digest).
    changes: pure list of what differs; empty on a converged host.
    report: text to show at every run, if any (preflight's line, a warning that asks for no change).
    details: the same with all that there is, for `-v`.
    files: whole files by path as they would land on a bare host, for `rackwright render`; secrets as masks.
    alone: no other concern decides by what this one changes, so a reading stays good for them; it is cheaper so.
    takes: the sections of the settings that it is handed; reading another one is an error. None for all of them.
    units: systemd's units whose state it needs to know, besides the endpoints' own.
    joined: its own lines with those that follow from what all concerns share, in the words that `parse` reads.
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
    takes: frozenset[str] | None = None
    units: tuple[str, ...] = ()
    joined: Callable[[str, Answers], str] | None = None

    def __post_init__(self) -> None:
        """See to it that the concern's functions are handed its own sections alone."""
        if self.takes is None:
            return
        takes, read, wanted, files = self.takes, self.read, self.wanted, self.files
        object.__setattr__(self, "read", lambda settings: read(settings.only(takes)))
        object.__setattr__(self, "wanted", lambda settings, reading: wanted(settings.only(takes), reading))
        if files is not None:
            object.__setattr__(self, "files", lambda settings: files(settings.only(takes)))

    def pending(self, settings: HostSettings, reading: HostReading) -> list[Change]:
        """The changes that make the host match its settings in this concern."""
        return list(self.changes(self.wanted(settings, reading), reading[self]))


@dataclass(frozen=True)
class ResolvedNames:
    """What registry or hub said in this run of the tags or branches that settings, lock and host do not resolve."""

    resolved: Mapping[str, str] = field(default_factory=dict)
    """Digest or commit by name."""
    unresolved: Mapping[str, str] = field(default_factory=dict)
    """By name, why this machine got no answer."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Of these, what its server says that it does not have, or does not show."""


@dataclass(frozen=True)
class HostReading:
    """What a run knows of one host: its own words, by concern, and beside them what this machine learned elsewhere."""

    seen: Mapping[str, Any]
    managed: frozenset[str] | None = None
    """None where no deploy.py decides: a rollback, a teardown, a lock."""
    others: Mapping[str, HostReading] = field(default_factory=dict)
    """Readings of the other hosts that serve its endpoint with it, as far as this run has them."""
    names: Mapping[str, ResolvedNames] = field(default_factory=dict)
    """By concern, what this machine asked of registry and hub; no word of the host's."""

    def manages(self, concern: Concern[Any, Any]) -> bool:
        """Whether a deploy changes anything in this concern."""
        return self.managed is None or concern.name in self.managed

    def names_of(self, concern: Concern[Any, Any]) -> ResolvedNames:
        """Return the names that a concern goes by, as resolved in this run."""
        return self.names.get(concern.name, ResolvedNames())

    def __getitem__(self, concern: Concern[Any, Seen]) -> Seen:
        return cast(Seen, self.seen[concern.name])


def parse_all(
    concerns: Sequence[Concern[Any, Any]], sections: Mapping[str, Section], managed: frozenset[str] | None = None
) -> HostReading:
    """Parse every section. Raises ReadingError naming the concern whose lines failed or made no sense."""
    shared = [_output(name, sections[name]) if name in sections else "" for name in SHARED]
    answers = _made_of("units and containers", lambda: parse_answers(*shared))
    seen = {concern.name: _parse(concern, sections[concern.name], answers) for concern in concerns}
    return HostReading(seen, managed)


def _parse(concern: Concern[Any, Seen], section: Section, answers: Answers) -> Seen:
    own = _output(concern.name, section)
    joined = concern.joined
    return _made_of(concern.name, lambda: concern.parse(joined(own, answers) if joined else own))


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
