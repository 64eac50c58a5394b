"""Records of runs: two of a lab, and made-up ones of any size."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rackwright.record.journal import Event, read_record

RECORDED = Path(__file__).parents[1] / "fixtures" / "runs"
BEGIN = datetime(2026, 1, 1, 8, 0, tzinfo=UTC)
REFUSED = (
    "the endpoint did not prove itself: a tool call: no tool call came back, but 'Sunny'\nthe previous release serves"
)
DRAINING = "draining: requests open: 2, connections: 3"


def recorded(name: str) -> list[Event]:
    """Return a record that a rollout on lab hosts has left."""
    return read_record(RECORDED / f"{name}.jsonl")


def event(after: float, kind: str, /, **fields: object) -> Event:
    """Make an event some seconds after the begin."""
    return {"time": (BEGIN + timedelta(seconds=after)).isoformat(timespec="milliseconds"), "kind": kind, **fields}


def made_up(count: int, wave: int = 20, bad: int = 0, seed: int = 1) -> list[Event]:
    """Make a whole rollout over `count` hosts; `bad` of them fail by a fault of their own."""
    return sorted(_events(count, wave, bad, random.Random(seed)), key=lambda one: str(one["time"]))


def _events(count: int, size: int, bad: int, chance: random.Random) -> Iterator[Event]:
    names = [f"gpu{number:03}" for number in range(1, count + 1)]
    waves = [names[:1], *(names[at : at + size] for at in range(1, count, size))]
    yield event(0, "begin", who="ops@deploy1", what="rollout inventory/b200.py", hosts=names)
    yield event(0, "phase", name="rollout")
    staged = 38.0
    for name in names:
        yield from _staging(name, chance, staged)
    yield event(staged, "waves", waves=waves, down={"b200": {"limit": max(1, count // 10), "hosts": names}}, bake=20)
    now, faulty = staged, set(names[-bad:] if bad else ())
    for number, wave in enumerate(waves):
        for at, name in enumerate(wave):
            yield from _switch(name, now + 40 * (at // max(1, count // 10)), name in faulty, number)
        now += 40 * (1 + (len(wave) - 1) // max(1, count // 10)) + 1
        yield event(now, "bake", wave=number, seconds=20, hosts=wave)
        now += 20
    yield event(now + 1, "end", status=3 if bad else 0, text=f"done: {count - bad} switched, 0 unchanged")


def _staging(name: str, chance: random.Random, staged: float) -> Iterator[Event]:
    first = 2 + chance.random() * 2
    job = {"host": name, "job": "pull-x", "title": "pull nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0"}
    yield event(
        first, "stage", host=name, concern="image", changes=["pull nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0"]
    )
    yield event(first, "job", **job, state="began")
    for part in (0.1, 0.4, 0.8):
        at = first + part * (staged - 6)
        yield event(at, "progress", host=name, job="pull-x", phase="downloading", part=part, text=f"{part:.0%}")
    yield event(first + 0.9 * (staged - 6), "job", **job, state="done")
    change = f"write release {chance.randrange(16**12):012x} of endpoint llm (it is not on the host)"
    yield event(
        staged - 1,
        "stage",
        host=name,
        concern="release",
        changes=[change],
        diff="-stream_interval: 1\n+stream_interval: 2",
    )


def _switch(name: str, now: float, fails: bool, wave: int) -> Iterator[Event]:
    job = {"host": name, "job": "switch-llm", "title": "switch endpoint llm"}
    yield event(
        now, "host", host=name, state="switching", before={"llm": "aaaaaaaaaaaa"}, changes=["switch endpoint llm"]
    )
    yield event(now + 1, "job", **job, state="began")
    yield event(
        now + 1,
        "progress",
        host=name,
        job="switch-llm",
        phase="draining",
        text=DRAINING,
    )
    yield event(now + 6, "progress", host=name, job="switch-llm", phase="loading", text="switching to release b")
    yield event(now + 25, "job", **job, state="done")
    speed = 0.0081 + now / 1e6
    speed_fields = {
        "seen": f"{speed * 1000:.1f} ms a token",
        "figure": speed,
        "before": "7.9 ms a token",
        "figure_before": 0.0079,
    }
    yield event(now + 26, "row", host=name, row="a chat answer", mark="proved", seen="17 + 25 is answered with '42'")
    yield event(now + 28, "row", host=name, row="speed", mark="proved", **speed_fields)
    if fails:
        yield event(now + 29, "row", host=name, row="a tool call", mark="refused", seen="no tool call came back")
        yield event(
            now + 30, "progress", host=name, job="switch-llm", phase="rolling back", text="rolling back to release a"
        )
        yield event(now + 37, "host", host=name, state="rolled back", cause="check", check="a tool call", text=REFUSED)
        yield event(now + 37, "failure", host=name, cause="check", check="a tool call", wave=wave, fault="unknown")
    else:
        yield event(now + 29, "row", host=name, row="a tool call", mark="proved", seen='get_weather({"city": "Paris"})')
        yield event(now + 30, "host", host=name, state="switched")
