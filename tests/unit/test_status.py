"""Status and drift: made-up states of an endpoint, and what is said of them."""

from __future__ import annotations

import base64
import json
from dataclasses import astuple, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.cli.drift import exit_code, lines, summed_up
from rackwright.concerns.docker import DOCKER
from rackwright.concerns.docker.chains import REJECTED
from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.release.concern import RELEASE, SeenReleases
from rackwright.concerns.endpoint.seen import Running, SeenEndpoint
from rackwright.concerns.firewall import FIREWALL
from rackwright.concerns.firewall.changes import OWNS as FIREWALL_OWNS
from rackwright.concerns.gpus import GPUS
from rackwright.concerns.image import IMAGE
from rackwright.concerns.lease import SeenLease
from rackwright.concerns.models import MODELS
from rackwright.inspect.drift import Drift, HostDrift, Verdict, _verdict, drift_of
from rackwright.inspect.left_hosts import left_hosts
from rackwright.inspect.status.last_runs import last_runs
from rackwright.inspect.status.output import ignored_of
from rackwright.inspect.status.reading import Asked, HostStatus, own_gpus, parse
from rackwright.inspect.status.rows import StatusRow, rows_of, unknown_row, values_of
from rackwright.inspect.status.table import duration, render
from rackwright.messages import ReadingError
from rackwright.plan.change import Change, Owned, Shell
from rackwright.plan.concern import HostReading
from rackwright.plan.ownership import RECORD
from rackwright.record.journal import append
from rackwright.settings.host_settings import HostSettings
from tests import texts
from tests.unit.machines import EVERYTHING
from tests.unit.test_plan import recorded, serving, settings

OURS = frozenset({Owned("unit", "rackwright-llm.service")})


def at_rest(host_settings: HostSettings | None = None) -> HostReading:
    """Return a recorded host that serves the release of these settings, deployed by Rackwright."""
    found = serving(recorded("converged"), host_settings or settings())
    record: frozenset[Owned] = found[RECORD]
    return HostReading({**found.by_concern, RECORD.name: OURS | record})


def with_endpoint(reading: HostReading, **changed: Any) -> HostReading:
    found = reading[ENDPOINT]
    endpoints = replace(found, endpoints={"llm": replace(found.endpoints["llm"], **changed)})
    return HostReading({**reading.by_concern, ENDPOINT.name: endpoints})


def release_drift(reading: HostReading, host_settings: HostSettings | None = None) -> list[Drift]:
    """Return the findings about the endpoint and its release."""
    found = drift_of("h", host_settings or settings(), reading, EVERYTHING).findings
    return [one for one in found if one.concern in ("endpoint", "release", "gpus")]


# -- drift


def test_an_endpoint_as_it_was_left_has_not_moved() -> None:
    assert release_drift(at_rest()) == []


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"enabled": False}, "no longer starts at boot"),
        ({"unit": None}, "its unit is gone"),
        ({"needs_reload": True}, "systemd has not read it again"),
        ({"unit_same": False}, "its unit is not its release's"),
        ({"running": None, "active": "failed", "result": "exit-code"}, "it does not run: its unit is failed"),
        ({"running": Running("0123456789ab", "c", "d")}, "release 0123456789ab runs"),
        ({"binding": None}, "its binding is gone, or was changed by hand"),
        ({"format": 3}, "a newer Rackwright wrote its release: spec.json has format 3"),
        ({"health": 503}, "/health answers 503"),
        ({"health": None}, "/health answers nothing"),
        ({"proven": "0123456789ab"}, "release 0123456789ab is the proven one"),
    ],
)
def test_every_way_to_move_has_its_sentence(changed: dict[str, Any], text: str) -> None:
    found = release_drift(with_endpoint(at_rest(), **changed))
    assert [one.verdict for one in found if text in one.text] == ["moved"], found


def test_spoilt_files_of_the_release_have_moved() -> None:
    reading = at_rest()
    current = reading[ENDPOINT].endpoints["llm"].current
    assert current
    spoilt = HostReading({**reading.by_concern, RELEASE.name: SeenReleases({"llm": {current: None}})})
    gone = HostReading({**reading.by_concern, RELEASE.name: SeenReleases({})})
    assert f"files of release {current} were changed" in release_drift(spoilt)[0].text
    assert f"files of release {current} were removed" in release_drift(gone)[0].text


def test_another_option_in_the_settings_is_not_drift() -> None:
    [found] = release_drift(at_rest(), settings(engine={"max_batch_size": 77}))
    assert found.verdict == "asked"
    assert "max_batch_size changed" in found.text


def test_a_gpu_that_is_gone_is_drift_although_another_release_is_due() -> None:
    reading = with_endpoint(at_rest(), binding=Binding(("GPU-gone",)))
    for host_settings in (settings(), settings(engine={"max_batch_size": 77})):
        found = release_drift(reading, host_settings)
        assert ("gpus", "moved") in {(one.concern, one.verdict) for one in found}
        assert any("gone from the host: GPU-gone" in one.text for one in found)


def test_no_gpu_is_gone_where_nvidia_smi_does_not_answer() -> None:
    silent = replace(at_rest()[GPUS], gpus=(), error="nvidia-smi did not answer within 30 s")
    reading = HostReading({**at_rest().by_concern, GPUS.name: silent})
    assert release_drift(reading) == []
    found = drift_of("h", settings(), reading, EVERYTHING).findings
    assert any("nvidia-smi did not answer" in one.text and one.verdict == "moved" for one in found)


def test_other_gpus_that_the_settings_ask_for_are_not_drift_text() -> None:
    reading = at_rest()
    first = reading[GPUS].gpus[0].uuid
    [found] = release_drift(with_endpoint(reading, binding=Binding((first,))))
    assert (found.verdict, found.text) == ("asked", "endpoint llm: the settings ask for other GPUs")


def test_a_loading_endpoint_has_not_moved() -> None:
    assert (
        release_drift(with_endpoint(at_rest(), active="activating", sub="start-post", running=None, health=None)) == []
    )


def test_docker_that_does_not_answer_is_said_and_nothing_else_is_guessed() -> None:
    reading = at_rest()
    down = HostReading({**reading.by_concern, ENDPOINT.name: replace(reading[ENDPOINT], docker=False)})
    assert [one.text for one in release_drift(down) if "Docker does not answer" in one.text]


@pytest.mark.parametrize(("owned", "verdict"), [(True, "moved"), (False, "asked")])
def test_rules_that_no_deploy_has_set_are_asked_for_and_have_not_moved(owned: bool, verdict: str) -> None:
    found = at_rest()
    firewall = replace(found[FIREWALL], files=dict.fromkeys(found[FIREWALL].files))
    record = found[RECORD] | set(FIREWALL_OWNS) if owned else found[RECORD] - set(FIREWALL_OWNS)
    reading = HostReading({**found.by_concern, FIREWALL.name: firewall, RECORD.name: record})
    verdicts = {
        one.verdict for one in drift_of("h", settings(), reading, EVERYTHING).findings if one.concern == "firewall"
    }
    assert verdicts == {verdict}


def test_a_bare_host_has_nothing_to_compare_with() -> None:
    drift = drift_of("h", settings(), recorded("bare"), EVERYTHING)
    assert drift.state == "new"
    assert not drift.changed_by_itself
    assert not drift.unclear


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
        HostDrift(f"h{n}", "read", tuple(Drift("docker", one, "text") for one in concerns))
        for n, concerns in enumerate(hosts)
    ]
    found = {one for concerns in hosts for one in concerns}
    assert exit_code(drifts) == (2 if "moved" in found else 1 if "unclear" in found else 0)
    assert exit_code([*drifts, HostDrift("far", "unreachable", error="no connection")]) == 1
    assert len(list(lines(drifts))) == sum(map(len, hosts)) + 1


def test_a_host_that_could_not_be_read_is_none_that_stayed_text() -> None:
    assert summed_up([HostDrift("a", "read"), HostDrift("far", "unreachable", error="no connection")]) == (
        "nothing moved on 1 host; 1 could not be read"
    )
    assert summed_up([HostDrift("a", "read")]) == "nothing moved on 1 host"


def test_after_an_edit_of_the_settings_nothing_has_moved() -> None:
    """The engine, the ports, who gets in, another model: what a plan has is not drift, and is not counted."""
    edits: list[dict[str, Any]] = [
        {"engine": {"max_batch_size": 77}},
        {"port": 9001},
        {"allow_from": ["10.0.0.0/8"]},
        {"model": {"repository": "openai/gpt-oss-20b", "mount": "/config/models/gpt-oss-20b"}, "draft": None},
    ]
    before = {one.text for one in drift_of("h", settings(), at_rest(), EVERYTHING).findings if one.verdict == "moved"}
    for edit in edits:
        found = drift_of("h", settings(**edit), at_rest(), EVERYTHING)
        assert {one.text for one in found.findings if one.verdict == "moved"} <= before, edit
        assert "asked" in {one.verdict for one in found.findings}, edit


def test_another_tag_in_the_settings_is_no_drift_and_a_lost_record_may_be() -> None:
    reading = at_rest()
    served = str(reading[ENDPOINT].endpoints["llm"].spec["image"]).partition("@")[2]
    without = replace(reading[IMAGE], images=(), pins={})
    newer = settings(image=f"{settings().all_endpoints['llm'].image}-next")
    for pins, verdict in (({"as it was deployed": served}, "asked"), ({}, "unclear")):
        host_reading = HostReading({**reading.by_concern, IMAGE.name: replace(without, pins=pins)})
        found = [one for one in drift_of("h", newer, host_reading, EVERYTHING).findings if one.concern == "release"]
        assert [one.verdict for one in found] == [verdict], found


def test_a_commit_that_the_host_no_longer_knows_has_moved() -> None:
    reading = at_rest()
    lost = replace(reading[MODELS], models=())
    found = release_drift(HostReading({**reading.by_concern, MODELS.name: lost}))
    assert [one.verdict for one in found if "no longer known on the host" in one.text] == ["moved"]


def test_what_may_be_the_settings_doing_is_not_counted_as_moved_text() -> None:
    unclear = HostDrift("a", "read", (Drift("docker", "unclear", "text"),))
    moved = HostDrift("b", "read", (Drift("docker", "moved", "text"),))
    assert summed_up([unclear, moved]) == ("1 of 2 hosts moved; on 1 host what differs moved, or the settings changed")


def test_boot_units_that_were_disabled_are_drift_text() -> None:
    reading = at_rest()
    boot = {Owned("unit", "rackwright-boot.service")}
    owned: frozenset[Owned] = reading[RECORD] | boot
    disabled = replace(reading[ENDPOINT], boot_enabled=False)
    found = release_drift(HostReading({**reading.by_concern, RECORD.name: owned, ENDPOINT.name: disabled}))
    assert [(one.verdict, one.text) for one in found] == [
        ("moved", "the endpoints no longer start at boot: rackwright-boot.service is not enabled")
    ]
    assert (
        release_drift(HostReading({**reading.by_concern, RECORD.name: reading[RECORD] - boot, ENDPOINT.name: disabled}))
        == []
    )


def test_what_others_may_write_to_is_drift() -> None:
    reading = at_rest()
    opened = replace(reading[ENDPOINT], open={"/var/lib/rackwright": "777:root"})
    [found] = release_drift(HostReading({**reading.by_concern, ENDPOINT.name: opened}))
    assert (found.verdict, "/var/lib/rackwright are 777:root" in found.text) == ("moved", True)


def test_a_program_that_containers_start_by_and_that_is_gone_is_drift() -> None:
    reading = at_rest()
    lost = replace(reading[DOCKER], lost=("/usr/bin/docker-proxy",))
    findings = drift_of("h", settings(), HostReading({**reading.by_concern, DOCKER.name: lost}), EVERYTHING).findings
    assert [one.verdict for one in findings if "/usr/bin/docker-proxy" in one.text] == ["moved"]


# -- status

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def printed(**changed: str) -> list[str]:
    """Return the output of a host that serves the release of these settings; `changed` replaces rows by their key."""
    reading = at_rest()
    endpoint = reading[ENDPOINT].endpoints["llm"]
    assert endpoint.running
    assert endpoint.binding
    bound = base64.b64encode(endpoint.binding.text.encode()).decode()
    lines = {
        "uptime": "7300",
        "lease": "",
        "endpoint": "llm",
        "ActiveState": "active",
        "SubState": "running",
        "UnitFileState": "enabled",
        "NeedDaemonReload": "no",
        "ActiveEnterTimestampMonotonic": "100000000",
        "proven": str(endpoint.proven),
        "current": str(endpoint.current),
        "unit": "same",
        "files": "whole",
        "spec": base64.b64encode(json.dumps(dict(endpoint.spec)).encode()).decode(),
        "health": "200",
        "binding": bound,
        "bound": bound,
        "running": " ".join(astuple(endpoint.running)),
        "connections": "3",
    }
    lines.update(changed)
    head = [
        f"{key} {lines.pop(key)}"
        for key in ("uptime", "lease", "closed", "repairs", "lacks", "waits", "rejects", "boot")
        if lines.get(key) or lines.pop(key, "")
    ]
    pins = [f"pin {reference} {digest}" for reference, digest in reading[IMAGE].pins.items()]
    gpus = [row for gpu in reading[GPUS].gpus for row in (f"model {gpu.name}", f"uuid {gpu.uuid}")]
    own_lines = [f"{key}{'=' if key[0].isupper() else ' '}{value}" for key, value in lines.items() if value]
    return [*head, *pins, *gpus, *own_lines, "end"]


def row(host_settings: HostSettings | None = None, /, **changed: str) -> StatusRow:
    [found] = rows_of("h", Asked(host_settings or settings()), parse(printed(**changed)), NOW)
    return found


def test_a_serving_endpoint_as_a_row() -> None:
    found = row()
    assert (found.health, found.up_seconds, found.connections) == ("serving", 7200, 3)
    assert (found.moved, found.drift, found.proven, found.wanted) == ((), False, True, True)
    assert (found.release, found.gpus) == (at_rest()[ENDPOINT].endpoints["llm"].current, 8)
    text = render([found])
    for fragment in ("2 h 0 min", "8 NVIDIA", "1 endpoint: 1 serving"):
        assert fragment in text
    assert "lease" not in text.split()


def test_what_becomes_active_while_it_is_read_is_up_for_no_time_text() -> None:
    found = row(ActiveEnterTimestampMonotonic="7301900000")
    assert (found.up_seconds, " 0 s " in render([found])) == (0, True)


def test_what_has_just_booted_says_so_where_it_does_not_serve_yet_text() -> None:
    down = {"ActiveState": "inactive", "SubState": "dead", "health": ""}
    booting = row(uptime="3", **down)
    assert "it booted 3 s ago" in render([booting])
    for later in (row(uptime="300", **down), row(uptime="110")):
        assert "booted" not in render([later])


def test_a_switch_that_was_cut_is_said_with_what_became_of_it_text() -> None:
    cut = {"last_release": "0123456789ab", "last_outcome": "cut", "last_time": "2026-11-21 11:00:00"}
    values = {**cut, "last_reason": "the host went down before it was proven"}
    back = row(**values)
    assert back.note.startswith("the switch to release 0123456789ab was cut at 2026-11-21 11:00:00: the host went down")
    assert back.note.endswith(f"release {back.release} was put back")
    assert back.note in render([back])
    stopped = row(current="", proven="", running="", ActiveState="inactive", **values)
    assert (stopped.health, stopped.note.endswith("nothing was ever proven here, so it stays stopped")) == (
        "stopped",
        True,
    )
    assert row(**{**values, "last_outcome": "committed"}).note == ""
    held = row(held="yes", ActiveState="inactive")
    assert (held.health, "could not be put back at boot" in held.note) == ("held back", True)


@pytest.mark.parametrize(
    ("changed", "health"),
    [
        ({"health": "500"}, "sick"),
        ({"ActiveState": "activating", "SubState": "start-post", "running": ""}, "loading"),
        ({"ActiveState": "failed"}, "failed"),
        ({"ActiveState": "inactive"}, "stopped"),
        ({"current": ""}, "absent"),
    ],
)
def test_health_in_one_word(changed: dict[str, str], health: str) -> None:
    found = row(**changed)
    assert found.health == health
    assert (found.up_seconds is not None) == (changed.get("ActiveState") is None)


HUNG = {"watch_state": "hung", "watch_since": "7000", "watch_looked": "7290", "watch_signs": "no step"}


def test_what_the_hosts_own_look_has_found_is_said_with_its_signs() -> None:
    hung = row(**HUNG, watch_would="restart")
    assert (hung.health, hung.serving) == ("hung", False)
    assert "no step" in hung.watch
    assert "watch.act" in hung.watch
    assert hung.watch in render([hung])
    assert "watch.act" not in row(**HUNG).watch


@pytest.mark.parametrize(
    "changed",
    [{"watch_looked": "6000"}, {"watch_state": "stalled"}, {"ActiveEnterTimestampMonotonic": "7295000000"}],
    ids=["old", "not yet", "before the unit started"],
)
def test_an_old_look_and_a_first_sign_change_no_health(changed: dict[str, str]) -> None:
    found = row(**{**HUNG, **changed})
    assert (found.health, found.watch) == ("serving", "")


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"files": ""}, "were changed"),
        ({"unit": "other"}, "its unit is not its release's"),
        ({"unit": ""}, "its unit is gone"),
        ({"UnitFileState": "disabled"}, "no longer starts at boot"),
        ({"running": "0123456789ab c d"}, "release 0123456789ab runs"),
        ({"proven": "0123456789ab"}, "release 0123456789ab is the proven one"),
        ({"health": "503"}, "/health answers 503"),
    ],
)
def test_what_moved_is_said(changed: dict[str, str], text: str) -> None:
    found = row(**changed)
    assert found.drift
    assert any(text in one for one in found.moved or ()), found.moved
    assert text in render([found])


@pytest.mark.parametrize(("address", "moved"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_an_endpoint_without_its_drops_has_moved(address: str, moved: bool) -> None:
    assert row(closed="yes").moved == ()
    spec = json.loads(
        base64.b64decode(next(output_line for output_line in printed() if output_line.startswith("spec "))[5:])
    )
    text = base64.b64encode(json.dumps({**spec, "address": address}).encode()).decode()
    names_it = any("rackwright firewall show" in one for one in row(closed="no", spec=text).moved or ())
    assert names_it is moved


@pytest.mark.parametrize(("network", "moved"), [("bridge", True), ("host", False)])
def test_one_that_cannot_start_again_has_moved_though_it_serves(network: str, moved: bool) -> None:
    spec = json.loads(
        base64.b64decode(next(output_line for output_line in printed() if output_line.startswith("spec "))[5:])
    )
    text = base64.b64encode(json.dumps({**spec, "network": network}).encode()).decode()
    assert [text for text in row(boot="no").moved or () if "rackwright-boot.service" in text]
    found = row(lacks="nat DOCKER", spec=text)
    message = (
        f"it cannot start again: {texts.CHAINS_GONE.format(chains='nat DOCKER')}; next: pyinfra INVENTORY deploy.py"
    )
    assert (found.health, message in (found.moved or ()), message in render([found])) == ("serving", moved, moved)
    found = row(lacks="nat DOCKER", rejects="yes", spec=text)
    assert (found.health, any(REJECTED in one for one in found.moved or ())) == ("serving", moved)
    silent = "firewalld does not answer; next, on it: look"
    found = row(waits=silent, spec=text)
    assert (found.health, f"it cannot start again: {silent}" in (found.moved or ())) == ("serving", moved)


def test_a_pipe_among_systemds_files_is_named_and_nothing_else_was_asked() -> None:
    with pytest.raises(ReadingError, match=r"rm /etc/systemd/system/a\.d/x\.conf"):
        parse(["pipe /etc/systemd/system/a.d/x.conf", "end"])


def test_the_text_of_what_the_host_had_to_put_back() -> None:
    assert row(repairs="2 the drops were gone").note == (
        "the host has put its firewall rules back 2 times within the last hour, "
        "the last time because the drops were gone"
    )


def test_a_gpu_that_is_gone_has_moved_unless_the_driver_does_not_know_it_yet() -> None:
    lines = printed()
    gone = [row for row in lines if not row.endswith(at_rest()[GPUS].gpus[0].uuid)]
    [found] = rows_of("h", Asked(settings()), parse(gone), NOW)
    assert any("gone from the host" in text for text in found.moved or ())
    unused = [f"uuid {'GPU-????????'}" if row.startswith("uuid ") else row for row in lines]
    [found] = rows_of("h", Asked(settings()), parse(unused), NOW)
    assert (found.moved, found.wanted) == ((), True)


def test_the_text_of_a_failed_endpoint_says_what_its_engine_died_of() -> None:
    failed = {"ActiveState": "failed", "SubState": "failed", "running": "", "health": ""}
    found = row(**failed, died="(EngineCore pid=48) ValueError: no\x1b[31m memory")
    assert found.health == "failed"
    assert found.note.startswith("its engine died: (EngineCore pid=48) ValueError: no")
    assert "\x1b" not in found.note
    assert found.note in render([found])
    assert row(**failed).note == ""


def host_of(*gpus: str, unused: bool = False) -> HostStatus:
    """Return a host with these GPUs, as the driver lists them: a letter each, and its model's number."""
    uuids = tuple("GPU-????" if unused else f"GPU-{one[0]}" for one in gpus)
    return HostStatus(9, SeenLease(0, 9, None), tuple(f"NVIDIA {one[1:]}" for one in gpus), uuids, {})


def has(*uuids: str) -> SeenEndpoint:
    return SeenEndpoint(binding=Binding(uuids) if uuids else None)


EIGHT = tuple(f"{letter}B200" for letter in "abcdefgh")


@pytest.mark.parametrize(
    ("reading", "wanted", "host", "uuids"),
    [
        (has("GPU-a"), [0], host_of("aH200", "bH200"), ["NVIDIA H200"]),
        (has("GPU-b"), None, host_of("aH200", "bH200"), ["NVIDIA H200"]),
        (has("GPU-b"), [0], host_of("aH200", "bB200"), ["NVIDIA B200"]),
        (has("GPU-a", "GPU-b"), "all", host_of(*EIGHT), ["NVIDIA B200"] * 2),
        (has("GPU-a", "GPU-x"), [0, 1], host_of(*EIGHT), ["NVIDIA B200"]),
        (has("GPU-a"), [0], host_of(*EIGHT, unused=True), ["?"]),
        (has("MIG-1", "MIG-2"), [0], host_of(*EIGHT), ["?", "?"]),
        (has(), "all", host_of(*EIGHT), ["NVIDIA B200"] * 8),
        (has(), [0, 1, 2], host_of(*EIGHT), ["NVIDIA B200"] * 3),
        (has(), [7, 8], host_of(*EIGHT), ["NVIDIA B200"]),
        (has(), None, host_of(*EIGHT), ["NVIDIA B200"] * 8),
    ],
)
def test_an_endpoint_s_own_gpus_are_counted(
    reading: SeenEndpoint, wanted: object, host: HostStatus, uuids: list[str]
) -> None:
    endpoint = None if wanted is None else settings().all_endpoints["llm"].model_copy(update={"gpus": wanted})
    assert own_gpus(reading, endpoint, host) == uuids


def test_an_endpoint_of_one_gpu_of_eight_has_one_in_its_row() -> None:
    mine = at_rest()[GPUS].gpus[3]
    bound = base64.b64encode(Binding((mine.uuid,)).text.encode()).decode()
    found = row(binding=bound)
    assert (found.gpus, found.gpu_model) == (1, mine.name)
    assert f"1 {mine.name}" in render([found])


def test_another_option_in_the_settings_is_behind_and_has_not_moved() -> None:
    found = row(settings(engine={"max_batch_size": 77}))
    assert (found.wanted, found.drift) == (False, False)
    assert "behind" in render([found])


def test_whether_a_release_is_wanted_is_not_guessed_without_the_digest_of_its_image() -> None:
    lines = [row for row in printed() if not row.startswith("pin ")]
    host_settings = settings(image="nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0", image_digest=None)
    [found] = rows_of("h", Asked(host_settings), parse(lines), NOW)
    assert found.wanted is None


def test_a_live_lease_is_shown_and_one_that_has_ended_is_not() -> None:
    lease = ["id=7.run", "user=ana", "machine=desk", "purpose=rollout", "taken=7200", "expires=7320"]
    lines = [*(f"lease {row}" for row in lease), *printed()]
    [held] = rows_of("h", Asked(settings()), parse(lines), NOW)
    assert "ana@desk (rollout)" in held.lock
    assert "ana@desk" in render([held])
    ended = [row.replace("expires=7320", "expires=7250") for row in lines]
    assert rows_of("h", Asked(settings()), parse(ended), NOW)[0].lock == ""


def test_what_is_not_known_is_shown_as_such() -> None:
    [absent] = rows_of("h", Asked(settings()), parse(["uptime 5", "end"]), NOW)
    assert (absent.health, absent.up_seconds, absent.connections, absent.drift) == ("absent", None, None, None)
    rows = [absent, unknown_row("far", Asked(HostSettings.model_validate({})), "cannot be reached")]
    assert "cannot be reached" in render(rows)
    assert "1 not known" in render(rows)
    assert json.loads(json.dumps(values_of(rows)))["endpoints"][1]["host"] == "far"


@pytest.mark.parametrize(
    "lines", [[], ["uptime 5"], ["end"], ["uptime x", "end"], ["uptime 5", "endpoint a", "health y", "end"]]
)
def test_a_reading_that_broke_off_or_makes_no_sense_is_refused(lines: list[str]) -> None:
    with pytest.raises(ReadingError):
        parse(lines)


@pytest.mark.parametrize(
    ("second", "sums"),
    [("serving", "2 endpoints: 2 serving"), ("stopped", "2 endpoints: 1 stopped, 1 serving")],
)
def test_hosts_that_serve_one_endpoint_together_count_once(second: str, sums: str) -> None:
    pair = [replace(row(), host=host, head="h1", health=health) for host, health in (("h1", "serving"), ("h2", second))]
    assert render([*pair, replace(row(), host="h3")]).splitlines()[-1] == sums


def test_a_quarantined_host_is_marked_with_its_reason_text() -> None:
    text = render([replace(row(), quarantine="Xid 79 on GPU 3")])
    assert "serving (quarantined)" in text
    release = "rackwright quarantine INVENTORY --release --limit h"
    assert f"h: in quarantine: Xid 79 on GPU 3; next, when its fault is fixed: {release}" in text
    drained = render([replace(row(), quarantine="Xid 79 on GPU 3", drained="drained by ops")])
    assert f"next: rackwright diagnose INVENTORY --limit h; when its fault is fixed: {release}" in drained


def test_a_host_whose_watch_is_paused_is_marked_with_who_and_why() -> None:
    pause = "watch paused for another 55 min by ops@deploy1: new driver"
    text = render([replace(row(), paused=pause)])
    assert "serving (watch paused)" in text
    assert f"h: {pause}" in text


def test_the_newest_record_of_a_host_counts(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    for name, what, state in (
        ("20261121-100000-deploy", "deploy", "switched"),
        ("20261121-115930-x", "rollout", "failed"),
    ):
        for host in ("a", "b") if what == "deploy" else ("a",):
            append(folder / f"{name}.jsonl", "begin", what=what)
            append(folder / f"{name}.jsonl", "host", host=host, state=state)
    found = last_runs(tmp_path, {"a", "b", "c"}, NOW)
    assert found == {"a": "rollout 30 s ago: failed", "b": "deploy 2 h 0 min ago: switched"}
    assert "rollout 30 s ago" in render([replace(row(), last_run=found["a"])])


def test_a_run_that_let_a_host_be_is_not_its_last(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for name, state in (("20261121-100000-deploy", "switched"), ("20261121-115930-rollout", "quarantined")):
        append(tmp_path / "runs" / f"{name}.jsonl", "begin", what="run", purpose=name[16:])
        append(tmp_path / "runs" / f"{name}.jsonl", "host", host="a", state=state)
    assert last_runs(tmp_path, {"a"}, NOW) == {"a": "deploy 2 h 0 min ago: switched"}


@pytest.mark.parametrize(
    ("purpose", "ended"), [("diagnose", "failed"), ("drain", "failed"), ("rollout", "failed before its switch")]
)
def test_a_run_that_switches_nothing_has_not_failed_before_a_switch(tmp_path: Path, purpose: str, ended: str) -> None:
    record = tmp_path / "runs" / f"20261121-100000-{purpose}.jsonl"
    record.parent.mkdir()
    append(record, "begin", what="run", purpose=purpose)
    append(record, "host", host="a", state="failed before its switch")
    assert last_runs(tmp_path, {"a"}, NOW) == {"a": f"{purpose} 2 h 0 min ago: {ended}"}


@pytest.mark.parametrize(
    ("options", "state"), [({}, "failed before its switch"), ({"steps": {"b": ["docker"]}}, "done")]
)
def test_a_teardown_that_failed_or_was_only_of_steps_leaves_a_host_that_may_serve(
    tmp_path: Path, options: dict[str, object], state: str
) -> None:
    record = tmp_path / "runs" / "20261121-113000-teardown.jsonl"
    record.parent.mkdir()
    append(record, "begin", what="run", purpose="teardown", inventory=str(tmp_path / "i.py"), **options)
    append(record, "host", host="b", state=state)
    (message,) = left_hosts(tmp_path, tmp_path / "i.py", {"a": "a:22"}, NOW)
    fields = ("b is no longer ", str(tmp_path / "i.py"), "not torn down", "teardown 30 min")
    assert [one for one in fields if one not in message] == []


def test_a_host_that_left_its_inventory_is_named_until_it_is_torn_down_text(tmp_path: Path) -> None:
    current, other = tmp_path / "i.py", tmp_path / "other.py"
    (tmp_path / "runs").mkdir()

    def ran(name: str, inventory: Path, hosts: str, state: str = "switched") -> None:
        record = tmp_path / "runs" / f"{name}.jsonl"
        append(record, "begin", what="run", purpose=name[16:], inventory=str(inventory))
        for host in hosts:
            append(record, "host", host=host, state=state)

    ran("20261121-100000-deploy", current, "abcd")
    ran("20261121-110000-deploy", other, "c")
    ran("20261121-113000-teardown", current, "d", "done")
    ran("20261121-115000-rollout", current, "b", "skipped")
    assert left_hosts(tmp_path, current, {"a": "a:22"}, NOW) == [
        f"b is no longer in {current} and was not torn down: deploy 2 h 0 min ago: switched; it may serve still; next: "
        f"put it back, then rackwright teardown {current} --limit b"
    ]
    assert left_hosts(tmp_path, current, {"a": "a:22", "b": "b:22"}, NOW) == []


def test_a_host_whose_address_has_another_name_now_has_not_left(tmp_path: Path) -> None:
    record = tmp_path / "runs" / "20261121-113000-rollout.jsonl"
    record.parent.mkdir()
    addresses = {"old": "10.0.0.4:22", "gone": "10.0.0.5:22"}
    append(record, "begin", what="run", purpose="rollout", inventory=str(tmp_path / "i.py"), addresses=addresses)
    for host in addresses:
        append(record, "host", host=host, state="switched")
    (message,) = left_hosts(tmp_path, tmp_path / "i.py", {"new": "10.0.0.4:22"}, NOW)
    assert message.startswith("gone is no longer in")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (5, "5 s"), (300, "5 min"), (12000, "3 h 20 min"), (1051200, "12 d 4 h")],
)
def test_duration(seconds: int | None, text: str) -> None:
    assert duration(seconds) == text


def test_ports_travel_as_the_kernel_writes_them() -> None:
    assert "llm 1F40 http://127.0.0.1:8000/health" in Asked(settings()).script


def test_parameters_that_are_ignored_are_told_once() -> None:
    engine = {"speculative_config": {"decoding_type": "Eagle", "max_draft_len": 3}}
    model = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
    drafting = HostSettings.model_validate({"model": model, "engine": engine})
    plain = HostSettings.model_validate({"model": model, "endpoint_name": "plain"})
    prefix = "endpoint llm: it ignores temperature, top_p, top_k, seed of requests: "
    assert [message[: len(prefix)] for message in ignored_of([drafting, drafting, plain])] == [prefix]
