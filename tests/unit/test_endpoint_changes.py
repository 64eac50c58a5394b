"""Changes of an endpoint: every state of unit, container and pointers, and each drift alone."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.concern import changes, takes_capacity, waits
from rackwright.concerns.endpoint.container import EndpointSpec, Resolved, endpoint_spec
from rackwright.concerns.endpoint.container_diff import reasons
from rackwright.concerns.endpoint.proof.proof_row import RULES
from rackwright.concerns.endpoint.questions import questions
from rackwright.concerns.endpoint.release.concern import Unresolved, payload
from rackwright.concerns.endpoint.release.files import SUMS, Release, build_release
from rackwright.concerns.endpoint.seen import BOOT_UNITS, Running, SeenEndpoint, SeenEndpoints, joined, parse
from rackwright.concerns.endpoint.switch.events import LastSwitch
from rackwright.concerns.endpoint.switch.steps import Proved
from rackwright.concerns.endpoint.wanted import WantedEndpoint, WantedEndpoints
from rackwright.concerns.endpoint.why_switch import Aim, why_switch
from rackwright.hostside import durable_script, host_script, host_text
from rackwright.paths import BOOT_UNIT, unit_name
from rackwright.plan import reading
from rackwright.plan.answers import Answers, ListedContainer
from rackwright.plan.change import Change, Job, Owned, Refuse, Shell, WriteFile
from rackwright.plan.render import render_own
from rackwright.settings.host_settings import NOWHERE, EndpointSettings, HostSettings
from tests import texts

RESOLVED = Resolved("sha256:" + "a" * 64, "c" * 40, "/srv/models/base", None, None)
BOUND = Binding(("GPU-1", "GPU-2"))
OLD = "0123456789ab"


def settings(**changed: Any) -> EndpointSettings:
    values: dict[str, Any] = {
        "model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"},
        "engine": {"max_batch_size": 10},
    }
    return HostSettings.model_validate(values | changed).all_endpoints["llm"]


def release(name: str = "llm", **changed: Any) -> Release:
    host_settings = settings(**changed)
    return build_release(endpoint_spec(name, host_settings, "/srv/encodings", RESOLVED), host_settings, NOWHERE)


def running(release: Release, binding: Binding = BOUND) -> Running:
    """Return the labels of a container that was started at this release."""
    return Running(release.hash, release.spec.serving_hash, binding.hash)


WANTED = release()
EDITED = release(stop_timeout=61)
"""It serves the same, and its unit differs."""
BOOT = {name: render_own(f"{name}.j2") for name in BOOT_UNITS}
AT_REST = SeenEndpoint(
    unit=WANTED.unit,
    unit_same=True,
    active="active",
    sub="running",
    enabled=True,
    running=running(WANTED),
    health=200,
    current=WANTED.hash,
    proven=WANTED.hash,
    spec=WANTED.facts,
    proven_spec=WANTED.facts,
    proven_binding=BOUND,
    files_whole=True,
    binding=BOUND,
)
OURS = frozenset({Owned("unit", "rackwright-llm.service"), Owned("unit", "rackwright-old.service")})
RUNS_OLD = Running(OLD, "another part", BOUND.hash)
SERVES_OLD = replace(
    AT_REST,
    unit="old",
    running=RUNS_OLD,
    current=OLD,
    proven=OLD,
    spec={**WANTED.facts, "hash": OLD, "serving": RUNS_OLD.serving},
)


def wanting(release: Release | Unresolved = WANTED, **changed: Any) -> WantedEndpoint:
    """Return a wanted endpoint, on a host with two GPUs."""
    values: dict[str, Any] = {
        "settings": settings(),
        "keep_releases": 2,
        "binding": BOUND,
        "gpus": set(BOUND.gpus),
    }
    return WantedEndpoint(**{"release": release, **values, **changed})


def pending(reading: SeenEndpoint | None, release: Release | Unresolved = WANTED, docker: bool = True) -> list[Change]:
    wanted = WantedEndpoints({"llm": wanting(release)}, BOOT, OURS)
    on_host = {"llm": reading} if reading else {}
    return changes(wanted, SeenEndpoints(docker, on_host, dict(BOOT), True))


def proved(change: Change) -> Proved:
    (step,) = change.steps
    assert isinstance(step, Proved)
    return step


def assigned(step: Proved, key: str) -> str:
    """Return a parameter of the host's job."""
    command = f'printf %s "${key}"'
    head = step.job.script.split("# Switch an endpoint, prove it", 1)[0]
    return subprocess.run(["sh"], input=head + command, capture_output=True, text=True, check=True).stdout


def test_a_converged_endpoint_has_nothing_pending() -> None:
    assert pending(AT_REST) == []


def test_caches_that_others_can_reach_are_closed_without_a_restart() -> None:
    assert pending(replace(AT_REST, caches="700:root")) == []
    [change] = pending(replace(AT_REST, caches="755:root"))
    assert isinstance(change.steps[0], Shell)
    assert (change.restarts, len(change.steps)) == ("", 1)
    reading = parse(printed(block(caches="755:root"))).endpoints["llm"]
    assert reading == replace(AT_REST, caches="755:root")


def test_what_others_may_write_to_is_closed_without_a_restart() -> None:
    rows = [f"open {text}" for text in ("777:root /var/lib/rackwright", "644:ops /etc/a b", "775:root /etc/rackwright")]
    found = parse("\n".join([*rows, printed(block())])).open
    assert list(found) == ["/etc/rackwright", "/var/lib/rackwright"], "those above first"
    wanted = WantedEndpoints({"llm": wanting(WANTED)}, BOOT, OURS)
    [change] = changes(wanted, SeenEndpoints(True, {"llm": AT_REST}, dict(BOOT), True, open=found))
    assert isinstance(change.steps[0], Shell)
    assert (change.restarts, len(change.steps), change.by_itself) == ("", 1, True)


def test_what_the_container_s_user_owns_is_not_open(tmp_path: Path) -> None:
    """The engine's file with its key is that user's; only another mode would be wrong."""
    keyed = tmp_path / "endpoints/llm/keyed"
    keyed.mkdir(parents=True)
    files = {keyed / "key.yaml": (0o600, 4242), keyed / "shared": (0o622, 0), tmp_path / "ours": (0o644, 4242)}
    for path, (mode, owner) in files.items():
        path.touch()
        path.chmod(mode)
        os.chown(path, owner, 0)
    text = host_text("read_endpoints.sh")
    script = f"own_folders={tmp_path}\n{text[text.index('find $own_folders') : text.index('carried()')]}"
    found = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert sorted(row.rpartition("/")[2] for row in found.splitlines()) == ["ours", "shared"]


@pytest.mark.parametrize(
    ("drift", "reason", "restart"),
    [
        ({"running": None, "active": "inactive", "sub": "dead"}, "it should run, but is inactive (dead)", True),
        ({"running": None, "active": "failed", "result": "start-limit-hit"}, "it gave up (start-limit-hit)", True),
        ({"running": None, "active": "failed", "result": "exit-code"}, "it gave up (exit-code)", True),
        (
            {"running": None, "active": "activating", "sub": "auto-restart"},
            "it should run, but is activating (auto-restart)",
            True,
        ),
        ({"running": None, "active": "inactive", "current": None}, "it has never run here", True),
        ({"active": "deactivating", "sub": "stop-sigterm"}, "it should run, but is deactivating (stop-sigterm)", True),
        ({"health": 500}, "it runs, but /health answers 500", True),
        ({"health": 0}, "it runs, but /health answers nothing", True),
        ({"health": None}, "it runs, but /health answers nothing", True),
        ({"running": RUNS_OLD}, f"it runs release {OLD}", True),
        ({"running": running(WANTED, Binding(("GPU-9",)))}, "its GPUs changed", True),
        ({"proven": None}, "it runs, but was never proven", False),
        ({"proven": OLD}, "it runs, but was never proven", False),
        ({"proven_binding": Binding(("GPU-9",))}, "it runs, but was never proven with these GPUs", False),
        ({"active": "activating", "sub": "start-post", "proven": None}, "it is loading and was never proven", False),
        (
            {"active": "activating", "sub": "start-post", "running": RUNS_OLD, "needs_reload": True},
            f"it runs release {OLD}",
            True,
        ),
        (
            {"active": "activating", "sub": "start-post", "unit_same": False, "running": None},
            "it should run, but is activating (start-post)",
            True,
        ),
    ],
)
def test_what_must_be_switched_or_proven_and_why(drift: Mapping[str, Any], reason: str, restart: bool) -> None:
    reading = replace(AT_REST, **drift)
    due = why_switch(Aim(WANTED, BOUND), reading)
    assert due is not None
    assert (due.reason, due.restart) == (reason, restart)
    (change,) = pending(reading)
    step = proved(change)
    assert change.what.startswith("switch endpoint llm" if restart else "prove endpoint llm")
    assert ("systemctl stop" in assigned(step, "forward")) == restart
    assert step.restarts == restart


def test_one_that_loads_and_was_proven_is_waited_for() -> None:
    reading = replace(AT_REST, active="activating", sub="start-post", health=None)
    host = HostSettings.model_validate({"model": {"repository": "a/b", "mount": "/m/b"}})
    assert pending(reading) == []
    (job,) = waits(host, SeenEndpoints(True, {"llm": reading}, BOOT, True))
    assert "ready after" in job.script
    assert waits(host, SeenEndpoints(True, {"llm": AT_REST}, BOOT, True)) == []


@pytest.mark.parametrize(
    ("drift", "why"),
    [
        ({"unit": "other", "unit_same": False}, "its text differs"),
        ({"unit": None, "unit_same": False}, "its text differs"),
        ({"needs_reload": True}, "systemd has not read it again"),
        ({"enabled": False}, "it is not enabled at boot"),
        ({"current": None}, "`current` points to nothing"),
        ({"current": OLD}, f"`current` points to {OLD}"),
        ({"binding": None}, "its binding was changed by hand"),
    ],
)
def test_what_is_put_back_without_a_restart_text(drift: Mapping[str, Any], why: str) -> None:
    (change,) = pending(replace(AT_REST, **drift))
    assert change.what == "put the unit rackwright-llm.service back in place without a restart"
    assert change.why == why
    assert not any("systemctl stop" in step.script for step in change.steps if isinstance(step, Shell))
    assert any("nvidia-smi -L" in step.script for step in change.steps if isinstance(step, Shell)), "GPUs are asked for"


@example(replace(AT_REST, active="activating", running=None, current=OLD, proven=OLD))
@given(
    st.builds(
        SeenEndpoint,
        unit_same=st.booleans(),
        active=st.sampled_from(["active", "activating", "inactive", "failed", "deactivating", "reloading"]),
        sub=st.sampled_from(["running", "dead", "auto-restart", "start-post", "start-pre", "exited"]),
        result=st.sampled_from(["success", "timeout", "exit-code", "start-limit-hit"]),
        enabled=st.booleans(),
        needs_reload=st.booleans(),
        running=st.sampled_from(
            [None, RUNS_OLD, running(WANTED), running(WANTED, Binding(("GPU-9",))), running(EDITED)]
        ),
        health=st.sampled_from([None, 0, 200, 500, 503]),
        current=st.sampled_from([None, OLD, WANTED.hash, EDITED.hash]),
        proven=st.sampled_from([None, OLD, WANTED.hash, EDITED.hash]),
        spec=st.sampled_from([{}, WANTED.facts, EDITED.facts]),
        proven_spec=st.sampled_from([{}, WANTED.facts]),
        proven_binding=st.sampled_from([None, BOUND]),
        files_whole=st.booleans(),
        binding=st.sampled_from([None, BOUND]),
    )
)
def test_any_state_has_at_most_one_change_and_only_a_good_one_has_none(reading: SeenEndpoint) -> None:
    found = pending(reading)
    assert len(found) <= 1
    if not found:
        loads_the_same = reading.running is None and reading.spec.get("serving") == WANTED.spec.serving_hash
        assert reading.current == reading.proven
        assert reading.current in (WANTED.hash, EDITED.hash) or loads_the_same
        assert reading.unit_same
        assert reading.active in ("active", "activating")
        assert reading.running_hash in (None, reading.current)
        assert reading.binding == reading.proven_binding == BOUND
        assert reading.current == WANTED.hash or reading.files_whole


def test_what_serves_takes_capacity_when_switched() -> None:
    assert proved(pending(SERVES_OLD)[0]).serving
    assert not proved(pending(replace(SERVES_OLD, health=500))[0]).serving
    assert not proved(pending(None)[0]).serving


def test_removing_what_serves_takes_capacity_too() -> None:
    wanted = WantedEndpoints({}, BOOT, OURS)
    for endpoint in (AT_REST, replace(AT_REST, health=None)):
        host = SeenEndpoints(True, {"old": endpoint}, dict(BOOT), True)
        found = changes(wanted, host)
        assert [change.what for change in found] == ["stop and remove endpoint old"]
        assert takes_capacity(found, host) == endpoint.serving


def test_a_bad_release_rolls_back_to_the_proven_one_and_that_is_asked() -> None:
    step = proved(pending(replace(SERVES_OLD, proven_spec={**WANTED.facts, "hash": OLD}))[0])
    assert assigned(step, "previous") == f"release {OLD}"
    assert f"releases/{OLD}" in assigned(step, "back")
    questions = assigned(step, "prove_back")
    assert {rule for rule in RULES if f'{{"rule": "{rule}"' in questions} == set(BASIC)
    assert OLD in questions


BASIC = ["model_name", "release_runs", "gpus_inside", "chat"]


def test_with_nothing_proven_it_is_stopped_and_forgotten() -> None:
    step = proved(pending(None)[0])
    assert assigned(step, "previous") == ""
    assert "forget=yes" in assigned(step, "halt")


def test_a_proven_release_that_fails_is_stopped_but_stays_the_current_one() -> None:
    step = proved(pending(replace(AT_REST, active="failed", running=None))[0])
    assert assigned(step, "previous") == ""
    assert "forget=no" in assigned(step, "halt")
    assert assigned(step, "known") == "yes"


def test_an_unproven_release_that_runs_rolls_back_when_it_fails() -> None:
    step = proved(pending(replace(AT_REST, proven=OLD))[0])
    assert assigned(step, "previous") == f"release {OLD}"
    assert f"releases/{OLD}" in assigned(step, "back")


def test_what_runs_already_is_proven_without_a_switch() -> None:
    step = proved(pending(replace(AT_REST, proven=OLD))[0])
    assert not step.restarts
    assert "systemctl start" not in assigned(step, "forward")
    assert '"$JOB/pointed"' not in assigned(step, "forward")
    assert "the endpoint points at" in assigned(step, "prepare")


def test_the_log_of_an_unhealthy_endpoint_is_kept_before_it_restarts() -> None:
    step = proved(pending(replace(AT_REST, health=500))[0])
    assert "journalctl" in assigned(step, "prepare")
    assert "systemctl stop" in assigned(step, "forward")


@pytest.mark.parametrize("changed", [{}, {"running": None, "active": "inactive", "sub": "dead", "health": None}])
def test_what_the_watch_has_given_up_is_switched_and_proven_again(changed: dict[str, Any]) -> None:
    reading = replace(AT_REST, sick=True, **changed)
    [change] = pending(reading)
    assert proved(change).restarts
    assert "sick" in change.why
    assert pending(replace(AT_REST, askable=False)) == []


def test_the_connections_of_what_runs_are_drained() -> None:
    reading = replace(SERVES_OLD, spec={**WANTED.facts, "hash": OLD, "port": 9000})
    assert "port=9000" in assigned(proved(pending(reading)[0]), "prepare")


def test_runs_with_the_same_aim_join_each_other() -> None:
    """What the host looks like changes while it switches, and so does the script."""
    first, second = proved(pending(SERVES_OLD)[0]), proved(pending(replace(AT_REST, proven=OLD))[0])
    assert first.job.script != second.job.script
    assert (first.job.name, first.job.aim) == (second.job.name, second.job.aim)
    other = proved(pending(SERVES_OLD, release(engine={}))[0])
    assert other.job.aim != first.job.aim


def test_hooks_run_on_the_host_and_clients_are_let_in_again() -> None:
    hooks: dict[str, Any] = {"drain_hook": ["lb", "drain it's"], "ready_hook": ["lb", "ready"]}
    host_settings = settings(**hooks)
    wanted = WantedEndpoints({"llm": wanting(release(**hooks), settings=host_settings)}, BOOT, OURS)
    (change,) = changes(wanted, SeenEndpoints(True, {"llm": SERVES_OLD}, dict(BOOT), True))
    step = proved(change)
    assert step.release == WANTED.hash, "hooks restart nothing"
    assert "hook=drain_hook" in assigned(step, "prepare")
    assert "hook=ready_hook" in assigned(step, "ready")
    assert f"release={OLD}" in assigned(step, "ready_back")
    mark = "/var/lib/rackwright/endpoints/llm/not-admitted"
    assert f": >{mark}" in assigned(step, "prepare")
    assert all(f"rm -f {mark}" in assigned(step, part) for part in ("ready", "ready_back"))
    drained = SeenEndpoints(True, {"llm": replace(AT_REST, admitted=False)}, dict(BOOT), True)
    (change,) = changes(wanted, drained)
    assert change.why == texts.LET_IN_LATE
    assert not proved(change).restarts
    assert pending(replace(AT_REST, admitted=False)) == [], "without a hook no run would let them in"


def test_the_full_gate_asks_its_own_rows_from_here_and_compares_them() -> None:
    full = wanting(settings=settings(gate={"level": "full"}))
    wanted = WantedEndpoints({"llm": full}, BOOT, OURS)
    step = proved(changes(wanted, SeenEndpoints(True, {"llm": SERVES_OLD}, dict(BOOT), True))[0])
    assert assigned(step, "gate") == "full"
    assert assigned(step, "deadline") == "300"
    assert {row.name for row in step.questions_before} <= {row.name for row in step.questions}
    assert "a chat answer" not in {row.name for row in step.questions}
    assert proved(pending(SERVES_OLD)[0]).questions == ()


def test_another_try_of_a_release_says_how_the_last_one_ended_text() -> None:
    last = LastSwitch(WANTED.hash, "rolled-back", "2026-01-01 10:00:00", "chat repeats one token")
    (change,) = pending(replace(SERVES_OLD, last=last))
    assert change.why.endswith("; it was tried here at 2026-01-01 10:00:00: chat repeats one token")
    (change,) = pending(replace(SERVES_OLD, last=replace(last, release="other")))
    assert "tried" not in change.why


def test_boot_units_are_one_change() -> None:
    wanted = WantedEndpoints({"llm": wanting()}, BOOT, OURS)
    (change,) = changes(wanted, SeenEndpoints(True, {"llm": AT_REST}, dict.fromkeys(BOOT), False))
    assert change.what == "start the endpoints at boot"
    assert sum(isinstance(step, WriteFile) for step in change.steps) == 3
    (change,) = changes(wanted, SeenEndpoints(True, {"llm": AT_REST}, dict(BOOT), False))
    assert change.why == "it is not enabled"


def test_without_docker_nothing_is_known_and_nothing_removed() -> None:
    wanted = WantedEndpoints({"llm": wanting()}, BOOT, OURS)
    (change,) = changes(wanted, SeenEndpoints(False, {"llm": AT_REST, "old": AT_REST}, {}, False))
    (step,) = change.steps
    assert isinstance(step, Refuse)
    assert not step.final, "an earlier step of the same run starts Docker"


def test_a_release_that_is_not_known_yet_is_told_and_not_tried() -> None:
    (change,) = pending(None, Unresolved(("the digest of x",)))
    (step,) = change.steps
    assert isinstance(step, Refuse)
    assert "the digest of x" in step.text


# -- the reading


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def block(**values: str) -> str:
    rows = {"ActiveState": "active", "SubState": "running", "Result": "success", "NeedDaemonReload": "no"}
    labels = f"{WANTED.hash} {WANTED.spec.serving_hash} {BOUND.hash}"
    rows |= {"UnitFileState": "enabled", "running": labels, "current": WANTED.hash, "proven": WANTED.hash}
    rows |= {"health": "200", "files": "whole", **values}
    return "\n".join(f"value {key}={value}" for key, value in rows.items())


def printed(body: str) -> str:
    boot = "\n".join(f"file /etc/systemd/system/{name} {encoded(text)}" for name, text in BOOT.items())
    spec, bound = encoded(WANTED.files["spec.json"]), encoded(BOUND.text)
    unit = f"unit {encoded(WANTED.unit)}\ncurrent_unit {encoded(WANTED.unit)}"
    files = f"{unit}\nspec {spec}\nbinding {bound}\nproven_binding {bound}"
    return f"docker=up\n{boot}\nboot=enabled\nendpoint llm\n{body}\n{files}\n"


def test_the_reading_of_a_converged_host_has_nothing_pending() -> None:
    reading = parse(printed(block()))
    assert reading.endpoints["llm"] == AT_REST
    wanted = WantedEndpoints({"llm": wanting()}, BOOT, OURS)
    assert changes(wanted, reading) == []


def test_how_the_last_switch_ended_is_read() -> None:
    lines = {
        "last_release": OLD,
        "last_outcome": "rolled-back",
        "last_time": "2026-01-01 10:00:00",
        "last_reason": "a=b",
    }
    reading = parse(printed(block(admitted="no", **lines))).endpoints["llm"]
    assert reading.last == LastSwitch(OLD, "rolled-back", "2026-01-01 10:00:00", "a=b")
    assert not reading.admitted


def test_the_proven_release_is_read_when_it_is_another_one() -> None:
    old = {**WANTED.facts, "hash": OLD}
    reading = parse(printed(block(proven=OLD)) + f"proven_spec {encoded(json.dumps(old))}\n")
    assert reading.endpoints["llm"].proven_spec == old


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"hash": "x"}', "null"])
def test_a_spoilt_spec_counts_as_none(text: str) -> None:
    output = printed(block()).replace(encoded(WANTED.files["spec.json"]), encoded(text))
    assert parse(output).endpoints["llm"].spec == {}


def test_the_reading_runs_on_a_machine_without_docker(tmp_path: Path) -> None:
    lines = host_script("read_endpoints", units=str(tmp_path), home=str(tmp_path), urls="llm http://127.0.0.1:1")
    shared = host_script("shared_read", reading_asked="docker.service", reading_home=str(tmp_path))
    script = reading.script({"endpoint": lines}, shared)
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    section = reading.parse(done.stdout.splitlines(), ["endpoint"])["endpoint"]
    assert section.status == 0
    parsed = parse(joined(section.output, Answers()))
    assert not parsed.docker
    assert parsed.endpoints["llm"].running_hash is None


def test_what_systemd_and_docker_say_stands_with_the_endpoint_that_it_is_of() -> None:
    states = {"ActiveState": "active", "SubState": "running", "NeedDaemonReload": "yes"}
    labels = {"rackwright.endpoint": "b", **{f"rackwright.{part}": part for part in ("release", "serving", "binding")}}
    ours, other = (
        ListedContainer("1", "rackwright-b", "i", True, labels),
        ListedContainer("2", "rackwright-a", "i", True),
    )
    answers = Answers({"rackwright-b.service": states}, {}, (ours, other), ())
    reading = parse(joined("endpoint a\nvalue current=x\nendpoint b\nvalue current=y", answers))
    assert (reading.docker, reading.endpoints["a"].foreign_container, reading.endpoints["a"].active) == (
        True,
        True,
        "inactive",
    )
    found = reading.endpoints["b"]
    assert (found.active, found.needs_reload, found.current) == ("active", True, "y")
    assert (found.foreign_container, found.running) == (False, Running("release", "serving", "binding"))
    stopped = replace(answers, containers=(replace(ours, running=False),))
    assert parse(joined("endpoint b", stopped)).endpoints["b"].running is None


# -- questions, differences, files


def test_every_engine_is_asked_and_sglang_has_no_version() -> None:
    names = [question.name for question in questions(WANTED, BOUND, settings())]
    assert names[-3:] == ["a chat answer", "threads in the container", "GPU errors since the switch"], (
        "errors and peaks are looked for after the work"
    )
    assert "the engine's version" in names
    assert "the engine's version" not in [q.name for q in questions(WANTED, BOUND, settings(engine_kind="sglang"))]


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"engine": {"max_batch_size": 10, "kv_cache_config": {"dtype": "fp8"}}}, "kv_cache_config changed"),
        ({"engine": {}}, "max_batch_size changed"),
        ({"environment": {"A": "1"}}, "environment changed"),
        ({"image": "nvcr.io/nvidia/tensorrt-llm/other:1.1.0rc0"}, "image changed"),
        ({"port": 8001}, "argv changed, port changed"),
        ({"bind": "10.0.0.1"}, "address changed"),
        ({"network": "host"}, "argv changed, address changed, network changed"),
    ],
)
def test_differences_are_told_by_name(changed: dict[str, Any], text: str) -> None:
    assert reasons(WANTED.facts, release(**changed).facts) == text


def test_no_difference_and_no_knowledge_say_nothing() -> None:
    assert reasons(WANTED.facts, WANTED.facts) == ""
    assert reasons({}, WANTED.facts) == ""


def write(target: Release, path: Path) -> subprocess.CompletedProcess[str]:
    script = durable_script("write_release", path=str(path), sums=SUMS)
    return subprocess.run(["sh", "-c", script], input=payload(target), capture_output=True, text=True, check=False)


def test_a_release_is_written_whole_and_its_spoilt_files_are_put_back_inside_it(tmp_path: Path) -> None:
    target = tmp_path / "releases" / WANTED.hash
    assert write(WANTED, target).returncode == 0
    mounted, unit = target.stat().st_ino, target / unit_name("llm")
    inode = unit.stat().st_ino
    (target / "spec.json").write_text("spoilt")
    (target / SUMS).unlink()
    (target / "needs").unlink()
    (target / "needs").mkdir()
    (target / "wait-ready").unlink()
    (target / "wait-ready").symlink_to("/etc/passwd")
    assert write(WANTED, target).returncode == 0
    assert {file.name: file.read_text() for file in target.iterdir()} == {**WANTED.files, SUMS: WANTED.sums}
    assert not (target / "wait-ready").is_symlink()
    assert target.stat().st_ino == mounted, "a container may have this very folder mounted"
    assert unit.stat().st_ino == inode, "what was not spoilt is left alone"
    assert [folder.name for folder in target.parent.iterdir()] == [WANTED.hash]


def test_what_a_killed_run_left_half_written_is_taken_away(tmp_path: Path) -> None:
    leftover = tmp_path / f"{WANTED.hash}.new"
    leftover.mkdir()
    (leftover / "spec.json").write_text("half")
    assert write(WANTED, tmp_path / WANTED.hash).returncode == 0
    assert [folder.name for folder in tmp_path.iterdir()] == [WANTED.hash]


def test_a_release_that_was_spoilt_on_its_way_leaves_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / WANTED.hash
    assert write(WANTED, target).returncode == 0
    spoilt = Release(WANTED.spec, WANTED.hash, {**WANTED.files, "spec.json": "other"})
    broken = payload(spoilt).replace(encoded(spoilt.sums), encoded(WANTED.sums))
    script = durable_script("write_release", path=str(target), sums=SUMS)
    done = subprocess.run(["sh", "-c", script], input=broken, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert (target / "spec.json").read_text() == WANTED.files["spec.json"]
    assert [folder.name for folder in tmp_path.iterdir()] == [WANTED.hash]


def test_a_release_that_is_there_whole_is_not_replaced_under_its_container(tmp_path: Path) -> None:
    folder = tmp_path / WANTED.hash
    assert write(WANTED, folder).returncode == 0
    before = folder.stat().st_ino
    assert write(WANTED, folder).returncode == 0
    assert folder.stat().st_ino == before


def test_runs_that_write_the_same_release_at_once_do_not_collide(tmp_path: Path) -> None:
    target = tmp_path / WANTED.hash
    with ThreadPoolExecutor(8) as pool:
        written = list(pool.map(lambda _: write(WANTED, target), range(24)))
    assert [done.stderr for done in written if done.returncode != 0] == []
    assert [folder.name for folder in tmp_path.iterdir()] == [WANTED.hash]


def test_a_commit_keeps_the_last_proven_releases(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "failed"):
        (tmp_path / "releases" / name).mkdir(parents=True)
    for name in ("a", "b", "a", "c"):
        script = durable_script("commit", home=str(tmp_path), release_hash=name, binding=BOUND.text, keep=2)
        subprocess.run(["sh", "-c", script], check=True)
        assert (tmp_path / "proven-binding").read_text() == BOUND.text
        assert (tmp_path / "proven").readlink() == Path("releases", name)
        if name != "c":
            for other in ("a", "b", "c"):
                (tmp_path / "releases" / other).mkdir(exist_ok=True)
    assert sorted(folder.name for folder in (tmp_path / "releases").iterdir()) == ["a", "c"]


def test_a_commit_keeps_what_a_run_that_waits_for_its_job_has_written(tmp_path: Path) -> None:
    for age, name in ((20, "failed"), (10, "job/digest"), (0, "later")):
        path = tmp_path / ("releases" if "/" not in name else "") / name
        path.parent.mkdir(exist_ok=True)
        path.touch() if "/" in name else path.mkdir()
        os.utime(path, (time.time() - age,) * 2)
    (tmp_path / "releases" / "tried").mkdir()
    os.utime(tmp_path / "releases" / "tried", (time.time() - 20,) * 2)
    script = durable_script("commit", home=str(tmp_path), release_hash="tried", binding=BOUND.text, keep=2)
    subprocess.run(["sh", "-c", script], check=True, env={**os.environ, "JOB": str(tmp_path / "job")})
    assert sorted(folder.name for folder in (tmp_path / "releases").iterdir()) == ["later", "tried"]


def test_the_hash_does_not_hang_on_the_order_of_the_environment() -> None:
    def spec(environment: dict[str, str]) -> EndpointSpec:
        return endpoint_spec("llm", settings(environment=environment), "/srv/encodings", RESOLVED)

    assert spec({"A": "1", "B": "2"}).serving_hash == spec({"B": "2", "A": "1"}).serving_hash


# -- what an operator made by hand under our names

BY_HAND = SeenEndpoint(unit="[Service]\nExecStart=/usr/bin/mine\n", active="active", sub="running", health=200)


def with_foreign(
    reading: SeenEndpoint, set_aside: bool = False, owned: frozenset[Owned] = frozenset(), boot_text: str = ""
) -> list[Change]:
    wanted = WantedEndpoints({"llm": wanting()}, BOOT, owned, set_aside)
    return changes(
        wanted, SeenEndpoints(True, {"llm": reading}, {**BOOT, **({BOOT_UNIT: boot_text} if boot_text else {})}, True)
    )


def test_a_unit_made_by_hand_is_refused_with_its_file_and_the_next_step() -> None:
    [change] = with_foreign(BY_HAND)
    [step] = change.steps
    assert isinstance(step, Refuse)
    assert step.final
    assert step.text.startswith("/etc/systemd/system/rackwright-llm.service ")
    assert "{foreign_units: aside} in group_vars" in step.text
    assert "systemctl disable --now rackwright-llm.service" in step.text


def test_a_container_of_our_name_without_our_label_is_refused() -> None:
    [change] = with_foreign(SeenEndpoint(foreign_container=True))
    [step] = change.steps
    assert isinstance(step, Refuse)
    assert "container rackwright-llm " in step.text


def test_asked_to_it_is_drained_kept_aside_and_recorded_before_the_switch() -> None:
    moved, switch = with_foreign(BY_HAND, set_aside=True)
    assert moved.owns == (Owned("aside", "rackwright-llm.service"),)
    [step] = moved.steps
    assert isinstance(step, Job), "a drain may take minutes, and has something to say"
    assert step.script.index("requests open") < step.script.index("folder=/var/lib/rackwright/aside")
    assert proved(switch).serving
    found = [moved, switch]
    assert takes_capacity(found, SeenEndpoints(True, {"llm": BY_HAND}, dict(BOOT), True))


def test_units_of_earlier_versions_count_as_ours_by_their_mark_or_by_the_record() -> None:
    today = replace(AT_REST, unit="# Written by Rackwright for release 0123456789ab. Edit group_vars instead.\n")
    assert all(not isinstance(step, Refuse) for change in with_foreign(today) for step in change.steps)
    own_template = replace(AT_REST, unit="[Service]\n", unit_same=False)
    assert isinstance(with_foreign(own_template)[0].steps[0], Refuse)
    assert not isinstance(with_foreign(own_template, owned=OURS)[0].steps[0], Refuse)


def test_the_record_says_nothing_of_a_unit_that_no_switch_has_written() -> None:
    assert isinstance(with_foreign(BY_HAND, owned=OURS)[0].steps[0], Refuse)


def test_a_boot_unit_made_by_hand_is_refused_or_kept_aside_too() -> None:
    [change] = with_foreign(AT_REST, boot_text="[Service]\n")
    assert isinstance(change.steps[0], Refuse)
    moved, boot = with_foreign(AT_REST, set_aside=True, boot_text="[Service]\n")
    assert moved.owns == (Owned("aside", "rackwright-boot.service"),)
    assert boot.what == "start the endpoints at boot"
