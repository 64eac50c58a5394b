"""What a rollout says of its waves and waits, and a rollback of its releases, before anybody types yes."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from typing import Any

from rackwright.adapter.run.poll import Reply
from rackwright.exit_codes import ExitCode
from rackwright.record.ending import Result, end_of_rollback
from rackwright.record.states import RunState
from rackwright.rollout.waits import waits_of
from rackwright.rollout.ways_back import way_texts

OLD, NEW = "a" * 12, "b" * 12


def host(bake: int = 5, load: int = 120) -> Any:
    rollout = SimpleNamespace(wave="25%", max_unavailable="1", bake=bake)
    endpoint = SimpleNamespace(drain_timeout=30, load_timeout=load)
    return SimpleNamespace(rollout=rollout, all_endpoints={"llm": endpoint})


def test_a_rollout_says_its_waves_and_its_longest_waits_text() -> None:
    waves, waits = waits_of([host(), host(bake=9, load=600)], {})
    assert "waves of 25% (" in waves
    assert "serve, 1 may be down" in waves
    assert "up to 30 s for open requests" in waits
    assert "up to 600 s for an engine" in waits
    assert "and 5 or 9 s after each wave but the last" in waits


def test_the_command_line_wins_text() -> None:
    waves, waits = waits_of([host()], {"rollout.wave": "2", "rollout.bake": 0})
    assert "waves of 2 (" in waves
    assert "and 0 s after each wave" in waits


def test_a_gateway_alone_waits_for_no_engine() -> None:
    gateway: Any = SimpleNamespace(rollout=host().rollout, all_endpoints={})
    (waves,) = waits_of([gateway], {})
    assert waves.startswith("canaries")


def retained(*releases: str) -> Reply:
    spec = base64.b64encode(json.dumps({}).encode()).decode()
    return Reply((f"history llm {' '.join(releases)}", *(f"release llm {one} {spec} ok" for one in releases)))


def test_a_rollback_names_the_releases_of_hosts_that_are_alike_text() -> None:
    replies = {"h1": retained(OLD, NEW), "h2": retained(OLD, NEW), "h3": retained(NEW), "h4": Reply(trouble="down")}
    assert list(way_texts(replies, "last")) == [
        f"endpoint llm from release {NEW} to {OLD} on 2 hosts (h1, h2)",
        f"endpoint llm has no such release, and stays at {NEW} on h3",
        "not known of h4: 1 host could not be read",
    ]


def test_a_rollback_to_a_release_that_serves_already_says_so_text() -> None:
    assert list(way_texts({"h1": retained(OLD, NEW)}, NEW)) == [f"endpoint llm stays at release {NEW} on h1"]
    assert list(way_texts({"h1": Reply(("nonsense",))}, NEW)) == ["not known of h1: 1 host could not be read"]


def test_the_end_of_a_rollback_names_the_release() -> None:
    found = Result({"h1": RunState.SWITCHED, "h2": RunState.UNCHANGED})
    status, text = end_of_rollback(["h1", "h2"], 0, found, {"h1": {"llm": OLD}, "h2": {"llm": NEW}})
    assert status == ExitCode.DONE
    assert f"1 rolled back to release {OLD}, 1 ran it already" in text
    assert NEW not in text
