"""Rollouts while clients ask all the time: a good change goes through unseen, each bad one stops at the canary."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.lab.conftest import Run
from tests.lab.fleet.conftest import DOWN, HOSTS, LIMIT, Fleet
from tests.lab.fleet.watching import Watched, assert_nobody_noticed, switches_of

pytestmark = [pytest.mark.lab, LIMIT]


def rollout(fleet: Fleet, *options: str, **engine: Any) -> Run:
    words = ["--max-unavailable", str(DOWN), "--wave", "25%", "--bake", "2", "--data", f"engine={json.dumps(engine)}"]
    return fleet.site.rackwright("rollout", "inventory/lab.py", "-y", *words, *options, timeout=200 + 60 * HOSTS)


def test_a_good_change_rolls_through_and_no_client_notices(fleet: Fleet, load: Watched) -> None:
    before = fleet.releases()
    run = rollout(fleet, stream_interval=2)
    assert run.status == 0, run.output
    assert f"done: {HOSTS} switched" in run.output
    assert_nobody_noticed(load, run, DOWN)
    after = fleet.releases()
    assert not set(before) & set(after)
    fleet.assert_serving(after)


@dataclass(frozen=True)
class Bad:
    """A change that must not go through: the engine's fault, the command line, and the message."""

    message: str
    faults: Sequence[dict[str, Any]] = ()
    options: Sequence[str] = ()
    engine: dict[str, Any] = field(default_factory=dict)
    switches: bool = True
    """False when it is refused before anything is switched."""


BAD = {
    "image missing": Bad(
        "nvcr.io/nvidia/tensorrt-llm/gone:1.1.0rc0",
        options=("--data", "image=nvcr.io/nvidia/tensorrt-llm/gone:1.1.0rc0"),
        switches=False,
    ),
    "unknown YAML key": Bad("extra_llm_nonsense", engine={"extra_llm_nonsense": 1}, switches=False),
    "never ready": Bad("not ready", [{"fault": "never_ready"}], ("--data", "load_timeout=20")),
    "dies after 20 s": Bad("still serving", [{"fault": "die_after_seconds", "value": 20}], ("--bake", "30")),
    "tool calls dropped": Bad("refused: a tool call", [{"fault": "drop_tool_calls"}]),
    "repeats itself": Bad("refused: ", [{"fault": "repeat_bang"}]),
    "slower by 3x": Bad("refused: speed", [{"fault": "slow_factor", "value": 3}]),
    "wrong model": Bad("refused: ", [{"fault": "model_id", "value": "another-model"}]),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_change_stops_at_the_canary_and_rolls_back(fleet: Fleet, load: Watched, name: str) -> None:
    bad, number = BAD[name], 20 + list(BAD).index(name)
    before = fleet.releases()
    for host in fleet.hosts:
        host.set_engine_faults(*({**fault, "when": {"option.stream_interval": number}} for fault in bad.faults))
    run = rollout(fleet, *bad.options, **{"stream_interval": number, **bad.engine})
    assert bad.message in run.output, run.output
    assert run.status == (3 if bad.switches else 1), run.output
    assert {span.host for span in switches_of(run)} == ({fleet.hosts[0].name} if bad.switches else set())
    assert_nobody_noticed(load, run, DOWN)
    fleet.assert_serving(before)
