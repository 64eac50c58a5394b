"""The slices of many hosts become the events of one run again, in whatever order hosts were read. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rackwright.messages import RackwrightError
from rackwright.record.journal import Event
from rackwright.record.on_hosts.slices import Slice


def merged(slices: Mapping[str, Slice]) -> dict[str, list[Event]]:
    """Return the events of each run that hosts know of, by the run's name, the oldest first.

    slices: by host. A host without one is in no phase: its fate was not reported. Raises RackwrightError when
    hosts disagree on how a run began.
    """
    runs: dict[str, dict[str, Slice]] = {}
    for host, one in slices.items():
        runs.setdefault(one.run, {})[host] = one
    return {run: _events(run, runs[run]) for run in sorted(runs)}


def _events(run: str, slices: Mapping[str, Slice]) -> list[Event]:
    begin = _agreed(run, slices)
    hosts = [*(name for name in begin["hosts"] if name in slices), *sorted(set(slices) - set(begin["hosts"]))]
    parts = {host: _by_phase(slices[host].events) for host in hosts}
    found: list[Event] = [{**begin, "adopted": hosts}]
    for phase in _phases(list(parts.values())):
        if phase:
            found.append({"kind": "phase", "name": phase, "time": begin["time"]})
        found += [event for host in hosts for event in parts[host].get(phase, ())]
    return found


def _agreed(run: str, slices: Mapping[str, Slice]) -> Event:
    """Return how the run began. All hosts have it from one record, so they say the same."""
    names = sorted(slices)
    begin = slices[names[0]].begin
    others = [name for name in names if slices[name].begin != begin]
    if others:
        raise RackwrightError(
            f"{names[0]} and {', '.join(others)} disagree on how run {run} began, so nothing was done; next: look at "
            "/var/lib/rackwright/run there; then rackwright rollout INVENTORY, which leaves alone what has the change",
            code="RW0660",
        )
    return begin


def _by_phase(events: Sequence[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {"": []}
    phase = ""
    for event in events:
        if event["kind"] == "phase":
            phase = event["name"]
            found.setdefault(phase, [])
        else:
            found[phase].append(event)
    return found


def _phases(parts: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Return every phase once, in the run's order: the host that has seen the most knows it."""
    longest_first = sorted((tuple(part) for part in parts), key=lambda names: (-len(names), names))
    yield from dict.fromkeys(name for names in longest_first for name in names)
