"""A run on real hardware as plain values: what each host is, what its gate said, and how long it took. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rackwright import __version__
from rackwright.concerns.endpoint.proof.codes import CODES
from rackwright.hardware import allowed
from rackwright.hardware.readings import Json, endpoints_of, host_record, profile_of, without_none
from rackwright.plan.concern import HostReading
from rackwright.record.states import RunState
from rackwright.record.view.report.figures import MARKS
from rackwright.record.view.timeline import PHASES, AskedRow, HostTimeline, Timeline
from rackwright.settings.host_settings import HostSettings

FORMAT = "rackwright-hardware/1"


@dataclass(frozen=True)
class BundledHost:
    """One host of the run: its timeline, its settings, its groups, and its reading; None where it could not be read."""

    timeline: HostTimeline
    settings: HostSettings
    groups: Sequence[str]
    reading: HostReading | None


def bundle(timeline: Timeline, members: Sequence[BundledHost]) -> Json:
    """Return the whole bundle. Hosts have numbers in their inventory's order, and no names."""
    return {
        "format": FORMAT,
        "rackwright": __version__,
        "run": without_none(
            day=day(timeline.began),
            status=allowed.whole(timeline.status, 255),
            seconds=allowed.whole(round(timeline.duration)),
            hosts=len(timeline.hosts),
        ),
        "hosts": [{"host": number, **_host(member)} for number, member in enumerate(members, 1)],
    }


def day(began: float | None) -> str | None:
    """Return the day of the run, UTC."""
    return None if began is None else f"{datetime.fromtimestamp(began, UTC):%Y-%m-%d}"


def _host(member: BundledHost) -> Json:
    timeline = member.timeline
    return {
        "state": allowed.one_of(timeline.state, tuple(RunState)),
        **profile_of(member.groups),
        "endpoints": endpoints_of(member.settings),
        "gate": gate_of(timeline.rows.values(), list(member.settings.all_endpoints)),
        "seconds": seconds_of(timeline),
        **(host_record(member.reading, member.settings) if member.reading else {}),
    }


def gate_of(rows: Iterable[AskedRow], endpoints: Sequence[str]) -> list[Json]:
    """Return the gate's rows: which, how it was judged, and its figure; an engine's answers are left out.

    endpoints: the host's own. Of several, a row says the number of its own, in the record's order.
    """
    numbers = {name: number for number, name in enumerate(endpoints, 1)} if len(endpoints) > 1 else {}
    return [
        {
            "row": row.name,
            **without_none(
                endpoint=numbers.get(row.endpoint),
                mark=allowed.one_of(row.mark, MARKS),
                figure=allowed.number(row.figure),
            ),
        }
        for row in rows
        if row.name in CODES
    ]


def seconds_of(host: HostTimeline) -> Json:
    """Return the seconds by phase, and of the whole switch."""
    found: dict[str, float] = {}
    for span in host.spans:
        if span.phase in PHASES and span.end is not None:
            found[span.phase] = found.get(span.phase, 0.0) + span.end - span.start
    if host.took is not None:
        found["switch"] = host.took
    return without_none(**{phase: allowed.whole(round(seconds)) for phase, seconds in found.items()})
