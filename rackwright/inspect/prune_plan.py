"""Removals of a prune from hosts, by the output of `rackwright cache ls --json`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rackwright.concerns.caches.spare import PARTIAL
from rackwright.inspect.caches import total
from rackwright.inspect.host_names import hosts_text


@dataclass(frozen=True)
class SpareOnHost:
    """One thing on one host that can go."""

    host: str
    name: str
    size: int | None
    what: str

    @property
    def agreed(self) -> str:
        """Its name in the run's handover; an unfinished download is one host's alone."""
        return f"{self.host}:{self.name}" if self.name.endswith(PARTIAL) else self.name


@dataclass(frozen=True)
class PrunePlan:
    """The removals from all hosts."""

    spare: tuple[SpareOnHost, ...]
    held: tuple[str, ...]
    """Reasons to keep other things for now, and hosts that could not be read, each behind its host's name."""
    unread: bool

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts from which something goes, in the inventory's order."""
        return tuple(dict.fromkeys(one.host for one in self.spare))

    @property
    def size(self) -> str:
        """The bytes of all, for people."""
        return total(one.size for one in self.spare)

    @property
    def agreed(self) -> list[str]:
        """Return the removals that an operator agrees to, as the run's handover has them."""
        return list(dict.fromkeys(one.agreed for one in self.spare))

    def lines(self) -> Iterator[str]:
        """Yield what goes, a line for hosts on which the same goes, and what is held back."""
        alike: dict[str, list[SpareOnHost]] = {}
        for one in self.spare:
            alike.setdefault(one.what, []).append(one)
        for what, some in alike.items():
            size = total(one.size for one in some)
            sizes = f"{size} in all" if len(some) > 1 else size
            yield f"{hosts_text([one.host for one in some])}: {what}; {sizes}"
        yield from self.held


def plan_of(values: Mapping[str, Any]) -> PrunePlan:
    """Return the plan of what a listing says."""
    hosts = values["hosts"]
    return PrunePlan(
        tuple(
            SpareOnHost(host["host"], one["name"], one["size"], one["what"]) for host in hosts for one in host["spare"]
        ),
        tuple(f"{host['host']}: {text}" for host in hosts for text in [*host["held"], host["error"]] if text),
        any(host["error"] for host in hosts),
    )
