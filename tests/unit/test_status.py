"""Status and drift: made-up states of an endpoint, and what is said of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.change import Change, Owned, Shell
from rackwright.commands.drift import exit_code, lines
from rackwright.commands.status import in_vain
from rackwright.concern import HostReading
from rackwright.concerns.endpoint import ENDPOINT
from rackwright.concerns.release import RELEASE, SeenReleases
from rackwright.fleet.drifting import Finding, HostDrift, Verdict, _verdict, drift_of
from rackwright.fleet.status import rows_of, sections, unknown_row, values_of
from rackwright.fleet.status_table import duration, render
from rackwright.fleet.survey import Surveyed
from rackwright.ownership import RECORD
from rackwright.reading import Section
from rackwright.settings.model import HostSettings
from tests.unit.test_plan import recorded, serving, settings

OURS = frozenset({Owned("unit", "rackwright-llm.service")})


def at_rest(own: HostSettings | None = None) -> HostReading:
    """A recorded host that serves the release of these settings, deployed by us."""
    found = serving(recorded("converged"), own or settings())
    record: frozenset[Owned] = found[RECORD]
    return HostReading({**found.seen, RECORD.name: OURS | record})


def with_endpoint(reading: HostReading, **changed: Any) -> HostReading:
    seen = reading[ENDPOINT]
    endpoints = replace(seen, endpoints={"llm": replace(seen.endpoints["llm"], **changed)})
    return HostReading({**reading.seen, ENDPOINT.name: endpoints})


def said(reading: HostReading, own: HostSettings | None = None) -> list[Finding]:
    """What is found about the endpoint and its release."""
    found = drift_of("h", own or settings(), reading).findings
    return [one for one in found if one.concern in ("endpoint", "release", "gpus")]


# -- drift


def test_an_endpoint_as_it_was_left_has_not_moved() -> None:
    assert said(at_rest()) == []


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"enabled": False}, "does not start at boot any more"),
        ({"unit": None}, "its unit is gone"),
        ({"needs_reload": True}, "systemd has not read it again"),
        ({"running_hash": None, "active": "failed", "result": "exit-code"}, "it does not run: its unit is failed"),
        ({"running_hash": "0123456789ab"}, "release 0123456789ab runs"),
        ({"health": 503}, "/health answers 503"),
        ({"health": None}, "/health answers nothing"),
        ({"proven": "0123456789ab"}, "release 0123456789ab is the proven one"),
    ],
)
def test_every_way_to_move_has_its_sentence(changed: dict[str, Any], text: str) -> None:
    found = said(with_endpoint(at_rest(), **changed))
    assert [one.verdict for one in found if text in one.text] == ["moved"], found


def test_spoilt_files_of_the_release_have_moved() -> None:
    reading = at_rest()
    current = reading[ENDPOINT].endpoints["llm"].current
    assert current
    spoilt = HostReading({**reading.seen, RELEASE.name: SeenReleases({"llm": {current: None}})})
    gone = HostReading({**reading.seen, RELEASE.name: SeenReleases({})})
    assert f"files of release {current} were changed" in said(spoilt)[0].text
    assert f"files of release {current} were removed" in said(gone)[0].text


def test_another_option_in_the_settings_is_not_drift() -> None:
    [found] = said(at_rest(), settings(engine={"max_batch_size": 77}))
    assert found.verdict == "asked"
    assert "max_batch_size changed" in found.text


def test_a_gpu_that_is_gone_is_drift_although_another_release_is_due() -> None:
    reading = at_rest()
    spec = {**reading[ENDPOINT].endpoints["llm"].spec, "gpus": ["GPU-gone"]}
    found = said(with_endpoint(reading, spec=spec, current="0123456789ab", proven="0123456789ab"))
    assert ("gpus", "moved") in {(one.concern, one.verdict) for one in found}


def test_a_loading_endpoint_has_not_moved() -> None:
    assert said(with_endpoint(at_rest(), active="activating", sub="start-post", running_hash=None, health=None)) == []


def test_docker_that_does_not_answer_is_said_and_nothing_else_is_guessed() -> None:
    reading = at_rest()
    down = HostReading({**reading.seen, ENDPOINT.name: replace(reading[ENDPOINT], docker=False)})
    assert [one.text for one in said(down) if "Docker does not answer" in one.text]


def test_a_bare_host_has_nothing_to_compare_with() -> None:
    drift = drift_of("h", settings(), recorded("bare"))
    assert drift.state == "new"
    assert not drift.drifted


@pytest.mark.parametrize(
    ("owns", "verdict"),
    [
        ((Owned("package", "curl"),), "moved"),
        ((Owned("package", "jq"),), "asked"),
        ((Owned("daemon_key", "debug"),), "unclear"),
        ((), "unclear"),
    ],
)
def test_the_ownership_record_tells_what_was_there(owns: tuple[Owned, ...], verdict: Verdict) -> None:
    record = frozenset({Owned("package", "curl"), Owned("daemon_key", "debug")})
    assert _verdict("docker", Change("do", "", (Shell("true"),), owns=owns), record) == verdict


VERDICTS = st.lists(st.sampled_from(["moved", "unclear", "asked"]), max_size=4)


@given(st.lists(VERDICTS, max_size=5))
def test_the_exit_code_says_whether_something_moved(hosts: list[list[Any]]) -> None:
    drifts = [
        HostDrift(f"h{n}", "read", tuple(Finding("docker", one, "text") for one in own)) for n, own in enumerate(hosts)
    ]
    assert (exit_code(drifts) == 2) == any(one != "asked" for own in hosts for one in own)
    assert exit_code([*drifts, HostDrift("far", "unreachable", error="no connection")]) == 1
    assert len(list(lines(drifts))) == sum(map(len, hosts)) + 1


# -- status


def section(since: int = 100, clients: int = 3) -> Section:
    return Section(0, f"uptime=7300\nsince.llm={since}000000\nconnections.llm={clients}", "")


def test_a_serving_endpoint_as_a_row() -> None:
    own, reading = settings(), at_rest()
    [row] = rows_of("h", own, reading, section(), HostDrift("h", "read"))
    assert (row.health, row.up_seconds, row.connections, row.drift, row.proven) == ("serving", 7200, 3, False, True)
    assert row.release == reading[ENDPOINT].endpoints["llm"].current
    assert row.gpus == 8
    text = render([row])
    assert "2 h 0 min" in text
    assert "B200" in text
    assert "1 endpoints: 1 serving" in text


@pytest.mark.parametrize(
    ("changed", "health"),
    [
        ({"health": 500}, "sick"),
        ({"active": "activating", "sub": "start-post"}, "loading"),
        ({"active": "failed"}, "failed"),
        ({"active": "inactive"}, "stopped"),
        ({"current": None}, "absent"),
    ],
)
def test_health_in_one_word(changed: dict[str, Any], health: str) -> None:
    reading = with_endpoint(at_rest(), **changed)
    [row] = rows_of("h", settings(), reading, section(), HostDrift("h", "read"))
    assert row.health == health
    assert row.up_seconds is None or row.health in ("sick", "absent")


def test_what_is_not_known_is_shown_as_such() -> None:
    [row] = rows_of("h", settings(), recorded("bare"), Section(0, "", ""), HostDrift("h", "new"))
    assert (row.up_seconds, row.connections, row.drift) == (None, None, None)
    rows = [row, unknown_row("far", "cannot be reached")]
    assert "cannot be reached" in render(rows)
    assert "1 not known" in render(rows)
    assert json.loads(json.dumps(values_of(rows)))["endpoints"][1]["host"] == "far"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (5, "5 s"), (300, "5 min"), (12000, "3 h 20 min"), (1051200, "12 d 4 h")],
)
def test_duration(seconds: int | None, text: str) -> None:
    assert duration(seconds) == text


def test_ports_travel_as_the_kernel_writes_them() -> None:
    assert "llm 1F40" in sections(settings())["status"]


def test_what_requests_ask_for_in_vain_is_told_once() -> None:
    engine = {"speculative_config": {"decoding_type": "Eagle", "max_draft_len": 3}}
    model = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
    drafting = HostSettings.model_validate({"model": model, "engine": engine})
    plain = HostSettings.model_validate({"model": model, "endpoint_name": "plain"})
    hosts = [Surveyed(name, settings, None, {}) for name, settings in (("a", drafting), ("b", drafting), ("c", plain))]
    told = "endpoint llm: requests give temperature, top_p, top_k, seed in vain: "
    assert [line[: len(told)] for line in in_vain(hosts)] == [told]
