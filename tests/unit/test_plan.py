"""A plan: made-up readings of hosts, how hosts with the same changes are grouped, and what is masked."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.release.concern import RELEASE, SeenReleases, binding_of, wanted_release
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.endpoint.seen import Running, SeenEndpoint, SeenEndpoints
from rackwright.concerns.endpoint.switch.steps import Proved
from rackwright.concerns.read_host import parse_reading
from rackwright.engines.host import NOT_ASKED
from rackwright.inspect.grouping import download, exit_code, group
from rackwright.inspect.plan import HostPlan, PlannedChange, endpoint_diff, plan_host
from rackwright.inspect.plan_text import as_wide, bytes_text, next_step, plan_text, plan_values, summary
from rackwright.masks import MASK
from rackwright.plan.change import Change
from rackwright.plan.concern import HostReading
from rackwright.record.masked_changes import change_fields, mask, secrets_of
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.peer_host import PeerHost
from rackwright.settings.secret import Secret
from rackwright_engines.quick_yaml import load_yaml
from tests.unit.machines import EVERYTHING

OPERATIONS = Path(__file__).parents[1] / "operations"
BASE: dict[str, Any] = load_yaml((OPERATIONS / "settings.yaml").read_text())


@cache
def recorded(name: str) -> HostReading:
    """Return a reading that was taken of a lab host."""
    return parse_reading((OPERATIONS / "readings" / f"{name}.txt").read_text().splitlines())


def settings(**changed: Any) -> HostSettings:
    values = {key: value for key, value in BASE.items() if key in HostSettings.model_fields}
    return HostSettings.model_validate({**values, **changed})


def change(**values: Any) -> PlannedChange:
    fields = {"concern": "docker", "what": "do it", "why": "it is not done", **values}
    return PlannedChange(**{"alike": (fields["what"], fields["why"], fields.get("diff", "")), **fields})


# -- one host


def test_a_bare_host_is_planned_as_far_as_it_can_be_known() -> None:
    plan = plan_host("bare", settings(), recorded("bare"), EVERYTHING)
    assert plan.state == "pending"
    assert {"docker", "image", "models", "release", "endpoint"} <= {one.concern for one in plan.changes}
    fetched = {one.concern for one in plan.changes if one.download != 0}
    assert fetched == {"image", "encodings", "models"}


def serving(reading: HostReading, settings: HostSettings) -> HostReading:
    """Return the recorded host as if the release of these settings served there."""
    wanted, bound = wanted_release("llm", settings, settings, reading), binding_of(settings, reading, settings)
    assert isinstance(wanted, Release)
    endpoint = reading[ENDPOINT].endpoints.get("llm", SeenEndpoint())
    now = replace(
        endpoint,
        unit=wanted.unit,
        unit_same=True,
        active="active",
        sub="running",
        enabled=True,
        needs_reload=False,
        running=Running(wanted.hash, wanted.spec.serving_hash, bound.hash),
        health=200,
        current=wanted.hash,
        proven=wanted.hash,
        spec=wanted.facts,
        proven_spec=wanted.facts,
        proven_binding=bound,
        files_whole=True,
        format=2,
        binding=bound,
    )
    endpoints: SeenEndpoints = replace(reading[ENDPOINT], docker=True, endpoints={"llm": now})
    releases = SeenReleases({"llm": {wanted.hash: wanted.sums}})
    return HostReading({**reading.by_concern, ENDPOINT.name: endpoints, RELEASE.name: releases})


@pytest.mark.parametrize("level", ["basic", "full"])
def test_a_plan_says_how_long_a_canary_serves_beside_its_peers(level: str) -> None:
    before = settings(gate={"level": level})
    reading = serving(recorded("converged"), before)
    gate = {"level": level, "slower_by": 20, "beside_peers": 600}
    wanted = settings(gate=gate, engine={**before.engine, "stream_interval": 77})
    peers = (PeerHost("gpu01", 8010), PeerHost("gpu02", 8010))
    for settings_of, seconds in ((wanted, False), (wanted.with_peers({"llm": peers}), True)):
        [note] = [one for one in plan_host("gpu01", settings_of, reading, EVERYTHING).notes if "gate.slower_by" in one]
        assert ("10 min" in note) is seconds
    [step] = [step for one in ENDPOINT.pending(wanted, reading) for step in one.steps if isinstance(step, Proved)]
    assert [(one.before, one.slower_by) for one in step.peers] == (
        [(reading[ENDPOINT].endpoints["llm"].proven, 20.0)] if level == "full" else []
    )
    assert step.job.timeout >= (600 if level == "full" else 0)


def test_the_text_of_an_engine_option_is_its_line_and_the_reason_of_the_restart() -> None:
    before = settings(engine={"max_batch_size": 10, "max_num_tokens": 8192})
    after = settings(engine={"max_batch_size": 12, "max_num_tokens": 8192})
    plan = plan_host("gpu01", after, serving(recorded("converged"), before), EVERYTHING)
    [switch] = [one for one in plan.changes if one.concern == "endpoint" and one.restarts]
    assert switch.restarts == "endpoint llm"
    assert switch.why == "max_batch_size changed"
    assert "-max_batch_size: 10\n+max_batch_size: 12" in switch.diff
    assert "max_num_tokens: 8192" in switch.diff, "a size is not a secret"
    assert not [row for row in switch.diff.splitlines() if "RELEASE" in row and row[0] in "+-"]
    assert "engine.yaml, 1 line" in summary(plan)
    assert "restarts endpoint llm because max_batch_size changed" in summary(plan)


def test_a_spark_that_serves_is_told_that_its_image_was_not_asked() -> None:
    before, after = (settings(hardware={"unified_memory": True}, engine={"max_batch_size": size}) for size in (10, 12))
    reading = serving(recorded("converged"), before)
    assert [NOT_ASKED in note for note in plan_host("spark", after, reading, EVERYTHING).notes] == [True]
    assert plan_host("spark", before, reading, EVERYTHING).notes == ()


def test_what_serves_as_wanted_has_no_endpoint_change() -> None:
    plan = plan_host("gpu01", settings(), serving(recorded("converged"), settings()), EVERYTHING)
    assert not [one for one in plan.changes if one.concern in ("release", "endpoint") and one.restarts]


def test_a_unit_edited_by_hand_shows_as_a_diff_without_a_restart() -> None:
    reading = serving(recorded("converged"), settings())
    endpoint = reading[ENDPOINT].endpoints["llm"]
    assert endpoint.unit
    text = endpoint.unit.replace("[Service]", "[Service]\nEnvironment=HF_TOKEN=hf_x1")
    edited = replace(endpoint, unit=text, unit_same=False)
    endpoints = replace(reading[ENDPOINT], endpoints={"llm": edited})
    plan = plan_host("gpu01", settings(), HostReading({**reading.by_concern, ENDPOINT.name: endpoints}), EVERYTHING)
    [unit] = [one for one in plan.changes if one.concern == "endpoint" and "unit" in one.what]
    assert f"-Environment=HF_TOKEN={MASK}" in unit.diff


def test_a_first_unit_is_not_shown() -> None:
    reading, host_settings = recorded("converged"), settings()
    release = wanted_release("llm", host_settings, host_settings, reading)
    assert isinstance(release, Release)
    text = endpoint_diff(release, SeenEndpoint())
    assert "rackwright-llm.service" not in text


def test_a_refused_host_says_why_and_ends_with_1() -> None:
    host_settings = settings(hardware={"machine": "DGX B200", "gpu_models": ["B300"], "gpu_count": 64})
    plan = plan_host("gpu01", host_settings, recorded("converged"), EVERYTHING)
    assert plan.state == "refused"
    assert "cannot run its endpoints" in plan.refusals[0]
    assert exit_code([plan]) == 1
    assert "refused" in plan_text([plan])


# -- groups

PLANS = st.lists(
    st.builds(
        lambda what, size, state: HostPlan("", state, (change(what=what, download=size),)),
        st.sampled_from(["a", "b"]),
        st.sampled_from([0, 5, None]),
        st.sampled_from(["pending", "refused"]),
    ),
    max_size=12,
)


@given(PLANS)
def test_every_host_is_in_exactly_one_group_with_its_own_changes(plans: list[HostPlan]) -> None:
    named = [replace(plan, host=f"h{number}") for number, plan in enumerate(plans)]
    groups = group(named)
    assert sorted(host for one in groups for host in one.hosts) == sorted(plan.host for plan in named)
    by_name = {plan.host: plan for plan in named}
    for one in groups:
        assert all(by_name[host].changes == one.plan.changes for host in one.hosts)
        assert all(by_name[host].state == one.plan.state for host in one.hosts)
    assert len({(one.plan.state, one.plan.changes) for one in groups}) == len(groups)


def test_hosts_that_differ_in_the_names_of_their_releases_alone_are_one_group() -> None:
    plans = [
        HostPlan(host, "pending", (change(what=f"switch to {digest}", alike=("switch to …", "it is not done", "")),))
        for host, digest in (("a", "0123456789ab"), ("b", "ba9876543210"))
    ]
    [one] = group(plans)
    assert one.hosts == ("a", "b")
    assert one.plan.changes[0].what == "switch to …"
    assert group(plans[:1])[0].plan.changes[0].what == "switch to 0123456789ab"


@pytest.mark.parametrize(
    ("states", "code"),
    [([], 0), (["converged"], 0), (["converged", "pending"], 2), (["pending", "unreachable"], 1), (["refused"], 1)],
)
def test_exit_code(states: list[Any], code: int) -> None:
    assert exit_code(HostPlan("h", state) for state in states) == code


def test_a_plan_ends_with_what_stops_and_the_next_command_text() -> None:
    assert next_step([HostPlan("h1", "converged")], "stops nothing") == []
    (last,) = next_step([HostPlan("h1", "pending"), HostPlan("h2", "converged")], "restarts 1 endpoint")
    assert last == "restarts 1 endpoint; next: rackwright rollout INVENTORY, or pyinfra INVENTORY deploy.py"


def test_a_plans_sentences_are_broken_and_its_diffs_are_not_text() -> None:
    sentence, diff = "  docker  " + "word " * 8 + "end", "      +" + "word " * 20
    broken = as_wide(f"{sentence}\n{diff}", 40).split("\n")
    assert max(map(len, broken[:-1])) <= 40
    assert broken[-1] == diff


def test_sizes_are_summed_and_unknown_ones_said() -> None:
    assert download([change(download=3), change(download=None), change(download=4, estimated=True)]) == (7, True, True)
    assert (bytes_text(0), bytes_text(3565158), bytes_text(61 * 2**30)) == ("0 B", "3.4 MiB", "61 GiB")


def test_json_has_every_host_and_survives_a_round_trip() -> None:
    plans = [
        plan_host("bare", settings(), recorded("bare"), EVERYTHING),
        HostPlan("far", "unreachable", error="no connection"),
    ]
    values = json.loads(json.dumps(plan_values(plans)))
    assert [one["host"] for one in values["hosts"]] == ["bare", "far"]
    assert values["hosts"][1] == {
        "host": "far",
        "state": "unreachable",
        "error": "no connection",
        "refusals": [],
        "changes": [],
        "notes": [],
        "not_looked_at": [],
    }
    assert set(values["hosts"][0]["changes"][0]) == {
        "concern",
        "what",
        "why",
        "restarts",
        "stops",
        "download_bytes",
        "download_estimated",
        "diff",
    }


# -- masking


@given(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=8, max_size=40), st.text(max_size=20))
def test_no_secret_of_the_settings_is_ever_shown(secret: str, around: str) -> None:
    host_settings = settings(models={"hub_token": Secret(secret)}, registry={"key": Secret(secret)})
    assert secret in set(secrets_of(host_settings))
    assert secret not in mask(f"{around} {secret} {around}".replace(MASK, ""), secrets_of(host_settings)).replace(
        MASK, ""
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:hush@proxy:3128", f"http://{MASK}@proxy:3128"),
        ("HF_TOKEN=hf_abc", f"HF_TOKEN={MASK}"),
        ('"password": "x y"', f'"password": {MASK}'),
        ("max_num_tokens: 8192", "max_num_tokens: 8192"),
        ("eos_token: 7", "eos_token: 7"),
        ("vllm serve --api-key sk-abc --port 8000", f"vllm serve --api-key {MASK} --port 8000"),
        ("--api-key=abc", f"--api-key={MASK}"),
        ('["--api-key", "x y", "--port"]', f'["--api-key", {MASK}, "--port"]'),
        ("- --hub-token\n- abc\n", f"- --hub-token\n- {MASK}\n"),
        ("--max-num-tokens 8192 --password --x", "--max-num-tokens 8192 --password --x"),
        ("Authorization: Bearer eyJhbGciOi.J9", f"Authorization: Bearer {MASK}"),
        ("sent sk-proj-0123456789 to the server", f"sent {MASK} to the server"),
        ("task-force and hf_home stay", "task-force and hf_home stay"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str, shown: str) -> None:
    assert mask(text) == shown


def test_the_record_keeps_changes_and_diffs_without_secrets() -> None:
    changes = [Change("write a", "it differs", (), diff="-key: sesame\n+token: abc"), Change("do b", "", ())]
    fields = change_fields(
        changes, settings(registry={"host": "nvcr.io", "user": "$oauthtoken", "key": Secret("sesame")})
    )
    assert fields == {"changes": ["write a (it differs)", "do b"], "diff": f"-key: {MASK}\n+token: {MASK}"}
    assert change_fields(changes[1:], settings())["diff"] is None
