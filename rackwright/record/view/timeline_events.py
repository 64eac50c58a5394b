"""Adds the events of a run's record to its timeline. Pure.

Events of a kind that is not known here, and broken ones, change nothing: a view must never be what ends a rollout.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any

from rackwright.paths import endpoint_job
from rackwright.plan.drain_end import DRAINED, DrainEnd
from rackwright.record.fault import failures_in
from rackwright.record.journal import Event
from rackwright.record.progress import DOWNLOADING, DRAINING, LOADING, PROVING, ROLLING_BACK, VERIFYING
from rackwright.record.record import BACKWARD, BY_HAND, taken_back
from rackwright.record.states import RunState
from rackwright.record.view.timeline import (
    PHASES,
    STAGING,
    WAITING,
    AskedRow,
    DownloadSpan,
    HostTimeline,
    Limit,
    Timeline,
    WatchedWave,
    wave_name,
)

_DOWNLOADS = ("pull-", "model-", "fetch-")
_BEFORE_ITS_TURN = frozenset({RunState.UNSEEN, RunState.STAGING, RunState.WAITING})
SMOOTH = 0.5
"""Part of a new rate in the one that is shown: of two neighbours, one may have had a pause."""
ASKED_FIRST = "what serves now is asked first"
"""The phase of a host at the begin of its turn, before its switch says anything."""
_SWITCH = endpoint_job("switch", "")


def timeline_of(events: Iterable[Event]) -> Timeline:
    """Return the timeline of all these events."""
    timeline = Timeline()
    for event in events:
        add_event(timeline, event)
    return timeline


def add_event(timeline: Timeline, event: Event) -> None:
    """Add one event."""
    # A record may be of another version, or half of it lost: what cannot be read is left out.
    with suppress(KeyError, TypeError, ValueError, AttributeError, OverflowError):
        now = datetime.fromisoformat(event["time"]).timestamp()
        handler = _HANDLERS.get(event["kind"])
        if handler is not None:
            handler(timeline, event, now)
            timeline.now = max(now, timeline.now or now)


def _begin(timeline: Timeline, event: Event, now: float) -> None:
    timeline.began, timeline.who, timeline.what = now, str(event.get("who", "")), str(event.get("what", ""))
    for name in event.get("hosts", []):
        timeline.host({"host": name})


def _phase(timeline: Timeline, event: Event, now: float) -> None:
    timeline.phase = str(event["name"])
    if timeline.phases:
        timeline.waves, timeline.limits = [], {}
        timeline.marks.append((timeline.phase, now))
    timeline.phases.append((timeline.phase, now))


def _stage(timeline: Timeline, event: Event, now: float) -> None:
    host = timeline.host(event)
    changes = [str(text) for text in event.get("changes", [])]
    if host.state in _BEFORE_ITS_TURN:
        host.state = RunState.STAGING
        host.enter(STAGING, now, str(event.get("concern", "")))
    host.changes += changes
    host.message = changes[-1] if changes else host.message
    if event.get("diff"):
        host.diffs.append(str(event["diff"]))


def _job(timeline: Timeline, event: Event, now: float) -> None:
    host = timeline.host(event)
    job, title = str(event["job"]), str(event.get("title", ""))
    if job.startswith(_DOWNLOADS) and timeline.phase != BACKWARD:
        _fetch(host, event, title, now)
    elif event["state"] == "began":
        host.message = title
        host.switching = job.removeprefix(_SWITCH) if job.startswith(_SWITCH) else host.switching
        host.enter(ROLLING_BACK if timeline.phase == BACKWARD else phase_of_job(job), now, title)
    elif host.state == RunState.SWITCHING:
        host.enter(ROLLING_BACK if host.phase == ROLLING_BACK else PROVING, now)
    else:
        host.leave(now)


def _fetch(host: HostTimeline, event: Event, title: str, now: float) -> None:
    """Merge downloads that run side by side: the host downloads from the first one's begin to the last one's end."""
    job = str(event["job"])
    if event["state"] == "began":
        host.message = title
        host.fetches[job] = DownloadSpan(title, now, tuple(map(str, event.get("after", ()))))
        host.enter(DOWNLOADING, now, "" if host.phase == DOWNLOADING else title)
        return
    if job in host.fetches:
        _end_fetch(host.fetches[job], event["state"] == "done", now)
    if not host.fetching:
        host.leave(now)


def _end_fetch(fetch: DownloadSpan, done: bool, now: float) -> None:
    fetch.end = max(now, fetch.start)
    if fetch.stalled_since is not None:
        fetch.longest_stall = max(fetch.longest_stall, now - fetch.stalled_since)
        fetch.stalled_since = None
    if done and fetch.total is not None:
        fetch.done = fetch.total
        fetch.points.append((now, fetch.total))


def phase_of_job(job: str) -> str:
    """Return the phase of a host while a job of this name runs."""
    # A switch drains first: its drain hook says nothing, and what was served is served until that has ended.
    if job.startswith(("rest-", "restart-host", _SWITCH, "dockerd")):
        return DRAINING
    if job.startswith("hash-"):
        return VERIFYING
    return LOADING if job.startswith("wait-") else STAGING


def _progress(timeline: Timeline, event: Event, now: float) -> None:
    host = timeline.host(event)
    host.message = str(event.get("text", ""))
    phase, part = str(event["phase"]), event.get("part")
    fraction = min(1.0, max(0.0, float(part))) if part is not None else None
    if fetch := host.fetches.get(str(event.get("job", ""))):
        _note_bytes(fetch, event, now)
    if len(host.fetching) > 1:
        _progress_of_one(host, str(event.get("job", "")), fraction)
        return
    if phase in PHASES and host.phase != ROLLING_BACK:
        host.enter(phase, now, host.spans[-1].text if host.phase in (phase, DRAINING) else "")
    host.part = fraction


def _note_bytes(fetch: DownloadSpan, event: Event, now: float) -> None:
    """Note how many bytes have arrived, how fast of late, and whether any do."""
    done, total, rate, stalled = (_number(event.get(key)) for key in ("bytes", "of", "rate", "stalled"))
    if done is not None and total:
        fetch.done, fetch.total = round(done), round(total)
        fetch.points.append((now, fetch.done))
    if rate is not None:
        fetch.rate = rate if fetch.rate is None else SMOOTH * rate + (1 - SMOOTH) * fetch.rate
    since = None if stalled is None else now - stalled
    if fetch.stalled_since is not None:
        fetch.longest_stall = max(fetch.longest_stall, now - fetch.stalled_since)
        since = fetch.stalled_since if since is not None else None
    fetch.stalled_since = since


def _progress_of_one(host: HostTimeline, job: str, part: float | None) -> None:
    """Note how far one of several downloads is: the host is as far as the slowest that tells."""
    if job in host.fetches:
        host.fetches[job].part = part
    host.part = min((one.part for one in host.fetching if one.part is not None), default=None)


def _waves(timeline: Timeline, event: Event, now: float) -> None:
    waves = [[str(name) for name in names] for names in event["waves"]]
    forward = len(timeline.phases) <= 1
    for number, names in enumerate(waves):
        for name in names:
            host = timeline.host({"host": name})
            host.wave = number if forward else host.wave
            if timeline.is_final(host) or host.state is RunState.SWITCHING:
                continue
            host.state = RunState.WAITING
            host.message = f"for its turn: {wave_name(number)}"
            host.enter(WAITING, now)
    timeline.waves, timeline.bake = waves, float(event.get("bake", 0))
    timeline.limits = {
        domain: Limit(int(limit["limit"]), frozenset(limit["hosts"])) for domain, limit in event.get("down", {}).items()
    }


def _host(timeline: Timeline, event: Event, now: float) -> None:
    host, state = timeline.host(event), RunState(event["state"])
    if state is RunState.SWITCHING:
        _mark_wave(timeline, host, now)
        host.began, host.state, host.message = now, state, ASKED_FIRST
        host.enter(PROVING, now, ASKED_FIRST)
        host.changes += [str(text) for text in event.get("changes", [])]
        if event.get("diff"):
            host.diffs.append(str(event["diff"]))
        return
    if host.state == RunState.SWITCHING and host.began is not None:
        host.took = max(0.0, now - host.began)
    host.state = taken_back(state) if timeline.phase in (BACKWARD, BY_HAND) else state
    host.final_in = len(timeline.phases) + 1
    host.leave(now)
    if event.get("text"):
        host.message = str(event["text"]).splitlines()[0]
        _complain(host, str(event["text"]))


def _mark_wave(timeline: Timeline, host: HostTimeline, now: float) -> None:
    """Note the first switch of each wave; on the way back the waves are of no interest."""
    if host.wave is not None and len(timeline.phases) <= 1 and wave_name(host.wave) not in dict(timeline.marks):
        timeline.marks.append((wave_name(host.wave), now))


def _row(timeline: Timeline, event: Event, now: float) -> None:
    host = timeline.host(event)
    row = AskedRow(
        str(event["row"]),
        str(event["mark"]),
        str(event.get("seen", "")),
        _number(event.get("figure")),
        str(event.get("before") or ""),
        _number(event.get("figure_before")),
        _endpoint(host, event),
    )
    if host.phase != ROLLING_BACK or timeline.phase == BACKWARD:
        # What the earlier release answers must not stand where the answers of the failed one are looked for.
        host.rows[row.endpoint, row.name] = row
    of = f"{row.endpoint}: " if len(host.endpoints) > 1 else ""
    host.message = f"{row.mark}: {of}{row.name}: {row.measured}"
    if host.state == RunState.SWITCHING and host.phase != ROLLING_BACK:
        host.enter(PROVING, now)


def _endpoint(host: HostTimeline, event: Event) -> str:
    """Return the endpoint of a row; records of an earlier version have it only in the switch that is under way."""
    return str(event.get("endpoint") or (host.switching if host.state == RunState.SWITCHING else ""))


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _bake(timeline: Timeline, event: Event, now: float) -> None:
    wave, seconds = int(event["wave"]), float(event["seconds"])
    hosts = frozenset(str(name) for name in event.get("hosts", ()))
    timeline.bakes.append(WatchedWave(wave, now, seconds, hosts))


def _failure(timeline: Timeline, event: Event, now: float) -> None:  # noqa: ARG001 - all handlers are called alike
    timeline.host(event)
    if timeline.phase != BACKWARD:
        timeline.failures += failures_in([event])


def _error(timeline: Timeline, event: Event, now: float) -> None:
    host, text = timeline.host(event), str(event["text"])
    host.message = (text.splitlines() or [""])[0]
    _complain(host, text)
    if host.state in _BEFORE_ITS_TURN:
        host.state, host.final_in = RunState.FAILED, len(timeline.phases) + 1
        host.leave(now)


def _complain(host: HostTimeline, text: str) -> None:
    if text not in host.errors:
        host.errors.append(text)


def _log(timeline: Timeline, event: Event, now: float) -> None:  # noqa: ARG001 - all handlers are called alike
    timeline.host(event).logs.append(str(event["file"]))


def _drained(timeline: Timeline, event: Event, now: float) -> None:  # noqa: ARG001 - all handlers are called alike
    cut = event.get("cut")
    gone = tuple(str(name) for name in event.get("gone", ()))
    drain = DrainEnd(str(event["endpoint"]), None if cut is None else int(cut), int(event["seconds"]), gone)
    timeline.host(event).drains.append(drain)


def _end(timeline: Timeline, event: Event, now: float) -> None:
    timeline.ended, timeline.text = now, str(event.get("text", ""))
    timeline.status = int(event["status"])
    for host in timeline.hosts.values():
        host.leave(now)


_HANDLERS = {
    "begin": _begin,
    "phase": _phase,
    "stage": _stage,
    "job": _job,
    "progress": _progress,
    "waves": _waves,
    "host": _host,
    "row": _row,
    "bake": _bake,
    "failure": _failure,
    "error": _error,
    "log": _log,
    DRAINED: _drained,
    "end": _end,
}
