"""The first line of a plan: what stops and restarts, how long that takes, and what there is not to fetch."""

from __future__ import annotations

import argparse
import json
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from rackwright.cli.rollout import agreed, changes_nothing, plan_headline, read_plan
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.models import MODELS
from rackwright.inspect.headline import Waves, headline, with_restart_notes
from rackwright.inspect.plan import HostPlan, PlannedChange, plan_host
from rackwright.inspect.plan_text import plan_text, plan_values
from rackwright.plan.concern import ResolvedNames
from rackwright.record.durations import typical_switch
from rackwright.sources.errors import NotThereError, SourceError
from rackwright.sources.names import Names
from tests.refused import refused
from tests.unit.machines import EVERYTHING
from tests.unit.test_plan import change, recorded, serving, settings


def planned(host: str, **changed: Any) -> HostPlan:
    return plan_host(host, settings(**changed), serving(recorded("converged"), settings()), EVERYTHING)


def test_the_text_of_an_option_that_restarts_every_endpoint() -> None:
    plans = [planned(host, engine={"max_batch_size": 12}) for host in ("a", "b", "c", "d")]
    assert headline(plans) == "restarts 4 endpoints on 4 hosts"
    assert headline(plans, typical=300, at_once=1) == "restarts 4 endpoints on 4 hosts, about 20 min"
    assert headline(plans, typical=30, at_once=2) == "restarts 4 endpoints on 4 hosts, about 60 s"
    waits = ", and up to 20 min until no request is open (drain_timeout)"
    assert headline(plans, at_once=2, drain=600) == f"restarts 4 endpoints on 4 hosts{waits}"
    text = plan_text(plans, headline(plans))
    assert text.startswith("restarts 4 endpoints on 4 hosts\n\n4 hosts (a, b, c, d): ")
    assert plan_values(plans, headline(plans))["headline"] == "restarts 4 endpoints on 4 hosts"


def test_a_rollout_takes_as_long_as_its_switches_and_what_is_watched_between_its_waves_text() -> None:
    four = [planned(host, engine={"max_batch_size": 12}) for host in ("a", "b", "c", "d")]
    waves = Waves(size=1, bake=300)
    between = "15 min between waves (rollout.bake)"
    assert headline(four, typical=30, waves=waves) == (
        f"restarts 4 endpoints on 4 hosts, about 17 min: 2 min of switches and {between}"
    )
    assert "about 7 min: 2 min of switches and 5 min between" in headline(four, typical=30, waves=Waves(3, 300))
    assert headline(four, waves=waves) == f"restarts 4 endpoints on 4 hosts, {between}"
    assert headline(four[:1], typical=30, waves=waves) == "restarts 1 endpoint on 1 host, about 30 s"
    assert headline(four, typical=30, waves=Waves(size=1, bake=0)) == headline(four, typical=30)


def test_another_model_restarts_what_serves_although_its_release_is_not_known_yet() -> None:
    model = {"repository": "openai/gpt-oss-20b", "mount": "/config/models/gpt-oss-20b"}
    plan = planned("a", model=model, draft=None)
    [endpoint] = [one for one in plan.changes if one.concern == "endpoint"]
    assert endpoint.what == "switch endpoint llm and ask it"
    assert (endpoint.restarts, endpoint.down) == ("endpoint llm", ("llm",))
    assert headline([plan]) == "restarts 1 endpoint on 1 host"


PAIR = ("a", "b")


def pair(*changes: str) -> list[HostPlan]:
    """Plans of two hosts that serve llm together, and of one that serves it alone; own: who restarts it."""
    restart = (change(down=("llm",)),)
    kinds = {name: ("pending", restart) if name in changes else ("converged", ()) for name in "abc"}
    plans = [HostPlan(name, *kind) for name, kind in kinds.items()]
    return [replace(plan, together=PAIR) if plan.host in PAIR else plan for plan in plans]


@pytest.mark.parametrize("changes", [("a", "b"), ("a",), ("b",)])
def test_the_text_of_hosts_that_serve_together_has_one_endpoint(changes: tuple[str, ...]) -> None:
    assert headline(pair(*changes)) == "restarts 1 endpoint on 2 hosts"
    assert headline(pair(*changes), typical=300, at_once=1) == "restarts 1 endpoint on 2 hosts, about 5 min"
    assert headline(pair(*changes, "c"), typical=300, at_once=1) == "restarts 2 endpoints on 3 hosts, about 10 min"


def test_a_host_says_that_it_restarts_with_those_that_serve_with_it_text() -> None:
    notes = {plan.host: plan.notes for plan in with_restart_notes(pair("b", "c"))}
    assert notes == {
        "a": ("endpoint llm restarts here too, together with b, where something is changed",),
        "b": (),
        "c": (),
    }
    assert with_restart_notes(pair("a", "b")) == pair("a", "b")


def test_the_text_of_what_stops() -> None:
    plan = planned("a", endpoint_name="other", port=9000)
    assert headline([plan, replace(plan, host="b")]) == "replaces llm by other on 2 hosts (a, b)"


def test_where_nothing_serves_yet_nothing_stops() -> None:
    bare = plan_host("bare", settings(), recorded("bare"), EVERYTHING)
    assert headline([bare]) == "stops nothing that serves"
    assert headline([HostPlan("a", "refused", (change(down=("llm",)),))]) == "stops nothing that serves"


def test_a_plan_without_changes_has_no_headline() -> None:
    assert not plan_text([HostPlan("a", "converged")], "stops nothing that serves").startswith("stops")


def test_a_switch_takes_as_long_as_it_took() -> None:
    def event(host: str, second: int, state: str) -> dict[str, Any]:
        return {"kind": "host", "host": host, "state": state, "time": f"2026-01-01T00:{second:02}:00.000+00:00"}

    run = [event("a", 1, "switching"), event("a", 5, "switched"), event("b", 5, "switching"), event("b", 6, "failed")]
    assert typical_switch([run]) == 240
    assert typical_switch([[]]) is None


def test_a_repository_that_there_is_not_is_found_by_the_plan() -> None:
    reading = recorded("bare")
    message = "RW0910: openai/gpt-oss-120 was not found on the hub (401): check its name"
    names = {MODELS.name: ResolvedNames(absent={"openai/gpt-oss-120": message})}
    plan = plan_host("a", settings(), replace(reading, names=names), EVERYTHING)
    assert plan.state == "refused"
    assert message in plan.refusals
    assert ENDPOINT.name in {one.concern for one in plan.changes}


# -- before rollout asks for yes


def test_the_text_of_a_rollout_s_question_has_the_headline_and_what_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    words: list[str] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        words[:] = command
        return subprocess.CompletedProcess(command, 2, json.dumps(plan).encode())

    plan = {
        "headline": "restarts 4 endpoints",
        "hosts": [{"host": "a", "state": "pending"}, {"host": "b", "state": "converged"}],
        "groups": [
            {"hosts": ["a"], "summary": "2 changes; restarts endpoint llm because max_batch_size changed"},
            {"hosts": ["b"], "summary": "nothing to change"},
        ],
    }

    monkeypatch.setattr(subprocess, "run", run)
    args = argparse.Namespace(inventory="i.py")
    found = read_plan(args, ["a"], {"port": 9000})
    assert plan_headline(found, "i.py").splitlines() == [
        "restarts 4 endpoints",
        "  a: 2 changes; restarts endpoint llm because max_batch_size changed",
    ]
    assert words[-7:] == ["i.py", "--json", "--in-waves", "--limit", "a", "--data", "port=9000"]
    broken = subprocess.CompletedProcess(words, 1, b"")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: broken)
    assert "is not known" in plan_headline(read_plan(args, ["a"], {}), "i.py")


@pytest.mark.parametrize(
    ("states", "expected"),
    [(["converged"], True), (["converged", "pending"], False), (["unreachable"], False), (["refused"], False)],
)
def test_a_rollout_asks_only_where_something_changes_or_is_not_known(states: list[str], expected: bool) -> None:
    assert changes_nothing({"hosts": [{"state": state} for state in states]}) is expected
    assert not changes_nothing("see above")


def test_where_nobody_can_answer_the_option_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed() -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", closed)
    with refused("RW1025", "; next: the same command with -y"):
        agreed("This rolls out.")


class Closed(Names):
    """Names whose hub says no."""

    def __init__(self, error: SourceError) -> None:
        super().__init__()
        self.error = error

    def _attempt(self, *_: object) -> SourceError:
        return self.error


@pytest.mark.parametrize(("error", "is_absent"), [(NotThereError, True), (SourceError, False)])
def test_only_what_a_server_does_not_have_is_absent(error: type[SourceError], is_absent: bool) -> None:
    """One that limits how often it is asked, or fails, may give it to the host later."""
    reading = replace(recorded("bare"), managed=frozenset({"image", "models"}))
    found = Closed(error("so it is", code="RW0910")).complete(settings(), reading)
    assert bool(found.names_of(MODELS).absent) == is_absent
    assert set(found.names_of(MODELS).unresolved.values()) == {"RW0910: so it is"}


def test_the_text_of_a_rename_is_a_replacement() -> None:
    swap = PlannedChange("endpoint", "replace endpoint llm by endpoint chat", "", stops=("llm",), comes=("chat",))
    gone = PlannedChange("endpoint", "remove endpoint old", "", stops=("old",))
    assert headline([HostPlan("a", "pending", (swap,)), HostPlan("b", "pending", (swap,))]) == (
        "replaces llm by chat on 2 hosts (a, b)"
    )
    assert headline([HostPlan("a", "pending", (swap, gone))]) == "replaces llm by chat and stops old on a"
