"""Edits by hand beside the files of a release: drop-ins, shadowed units, commands, limits, daemon.json."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.concerns.catalog import ALL
from rackwright.concerns.composite import composite
from rackwright.concerns.docker import SeenDocker, not_taken
from rackwright.concerns.docker.apt import OperatingSystem
from rackwright.concerns.docker.daemon import DAEMON_JSON
from rackwright.concerns.endpoint.container import Resolved, endpoint_spec
from rackwright.concerns.endpoint.edits import (
    SeenEdits,
    command_edits,
    drop_in,
    edit_changes,
    exec_words,
    foreign_drop_ins,
    hand_edits,
    is_meant,
    limit_edits,
)
from rackwright.concerns.endpoint.release.files import build_release
from rackwright.concerns.endpoint.seen import joined
from rackwright.concerns.endpoint.seen import parse as parse_endpoints
from rackwright.concerns.firewall.kept import door_file
from rackwright.hostside import host_script
from rackwright.paths import OWN_DROP_INS, OWN_UNITS, UNITS, held_file
from rackwright.plan.answers import Answers
from rackwright.plan.change import Change, Owned, Refuse
from rackwright.plan.render import Expanded, systemd_command
from rackwright.settings.host_settings import NOWHERE, HostSettings

UNIT = "rackwright-llm.service"
FOLDER = f"/etc/systemd/system/{UNIT}.d"
PATH = f"{FOLDER}/override.conf"
RUN = "/usr/bin/docker run --rm --name x --env A=1 --env NVIDIA_VISIBLE_DEVICES=${GPUS} img@sha256:1 serve --port 8000"


def seen_edits(*found: tuple[str, str], elsewhere: dict[str, str] | None = None) -> SeenEdits:
    return SeenEdits({path: drop_in(path, "a" * 64, text) for path, text in found}, elsewhere or {})


def pending(edits: SeenEdits, *names: str, record: frozenset[Owned] = frozenset()) -> list[Change]:
    return edit_changes(edits, names, record, ["llm"])


def refused(changes: list[Change]) -> list[str]:
    return [step.message for change in changes for step in change.steps if isinstance(step, Refuse)]


# -- drop-ins and unit files


@pytest.mark.parametrize(
    "text",
    [
        "[Service]\nExecStart=\nExecStart=/bin/x\n",
        "[Service]\n  ExecStartPre = /bin/x",
        "[Service]\nEnvironmentFile=-/etc/x\n",
        "[Service]\nUser=bob\n",
        "[Service]\nRestart=no\n",
        "[Service]\nTimeoutStopSec=1\n",
    ],
)
def test_a_drop_in_that_changes_a_start_stops_a_deploy_until_it_is_named(text: str) -> None:
    edits = seen_edits((PATH, text))
    [message] = refused(pending(edits))
    assert PATH in message
    assert "drop_ins: [override.conf]" in message
    for name in ("override.conf", PATH):
        assert refused(pending(edits, name)) == []


@pytest.mark.parametrize("text", ["[Service]\nNice=5\n", "[Service]\nMemoryMax=1G\n", "[Unit]\n# ExecStart=/x\n", ""])
def test_a_drop_in_that_changes_no_start_is_drift_alone(text: str) -> None:
    edits = seen_edits((PATH, text))
    assert pending(edits) == []
    [sentence] = hand_edits(edits, (), frozenset())
    assert f"{PATH} is not Rackwright's" in sentence


def test_a_named_drop_in_is_recorded_and_a_later_edit_is_drift_text() -> None:
    edits = seen_edits((PATH, "[Service]\nNice=5\n"))
    [change] = pending(edits, "override.conf")
    assert change.owns == (Owned("drop_in", f"{PATH} {'a' * 64}"),)
    accepted = frozenset(change.owns)
    assert pending(edits, "override.conf", record=accepted) == []
    assert list(hand_edits(edits, ["override.conf"], accepted)) == []
    edited = SeenEdits({PATH: replace(edits.drop_ins[PATH], sha256="b" * 64)})
    assert "was changed since the deploy that accepted it" in "".join(hand_edits(edited, ["override.conf"], accepted))
    again = pending(edited, "override.conf", record=accepted)
    assert {entry for change in again for entry in change.disowns} == accepted
    assert "is gone" in "".join(hand_edits(SeenEdits(), ["override.conf"], accepted))
    assert [change.disowns for change in pending(SeenEdits(), record=accepted)] == [tuple(accepted)]


def test_a_drop_in_for_all_units_of_a_prefix_counts() -> None:
    edits = seen_edits(("/etc/systemd/system/rackwright-.service.d/all.conf", "[Service]\nExecStart=/x\n"))
    assert refused(pending(edits))
    assert is_meant(edits, ["all.conf"], UNIT)
    assert not is_meant(edits, ["all.conf"], "rackwright.target")


FOR_ALL = "/etc/systemd/system/service.d/10-site.conf"


def test_a_drop_in_for_all_services_counts_where_it_changes_what_runs() -> None:
    edits = seen_edits((FOR_ALL, "[Service]\nExecStartPre=/bin/x\n"))
    assert refused(pending(edits))
    assert list(hand_edits(edits, (), frozenset()))
    assert refused(pending(edits, "10-site.conf")) == []
    harmless = seen_edits((FOR_ALL, "[Service]\nTimeoutStopFailureMode=abort\nLimitNOFILE=9\nEnvironment=A=b\n"))
    assert pending(harmless) == []
    assert list(hand_edits(harmless, (), frozenset())) == []


def test_a_drop_in_of_another_unit_of_ours_is_drift_and_stops_no_endpoint() -> None:
    edits = seen_edits(("/etc/systemd/system/rackwright-watch.service.d/x.conf", "[Service]\nExecStart=/x\n"))
    assert pending(edits) == []
    assert list(hand_edits(edits, (), frozenset()))


@pytest.mark.parametrize(
    ("path", "way"), [("/dev/null", "systemctl unmask"), (f"/run/systemd/system.control/{UNIT}", "rm /run/systemd")]
)
def test_a_unit_that_systemd_reads_elsewhere_is_refused(path: str, way: str) -> None:
    edits = seen_edits(elsewhere={UNIT: path})
    [message] = refused(pending(edits))
    assert way in message
    assert way in "".join(hand_edits(edits, (), frozenset()))


def test_drop_ins_of_rackwright_and_of_all_services_are_not_foreign() -> None:
    shown = f"{FOLDER}/rackwright-firewall.conf {PATH} /usr/lib/systemd/system/service.d/10-abort.conf"
    assert list(foreign_drop_ins(shown)) == [PATH]
    assert list(foreign_drop_ins("")) == []


# -- the command that runs


def started(text: str) -> list[str]:
    return text.replace("${GPUS}", "GPU-1,GPU-2").split(" ")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("--rm", "--rm --env DEBUG=hunter2"), "with DEBUG"),
        (("--rm", "--rm --memory 64g"), "with --memory"),
        (("--env A=1 ", ""), "without A"),
        (("A=1", "A=hunter2"), "with A, without A"),
        (("serve", "serve --api-key=hunter2"), "with --api-key"),
        (("sha256:1", "sha256:2"), "with other values, without other values"),
        (("--port 8000", "8000 --port"), "with its options in another order"),
    ],
)
def test_a_command_that_was_edited_is_told_by_names_and_never_by_values(edit: tuple[str, str], message: str) -> None:
    assert command_edits(RUN.split(" "), started(RUN.replace(*edit))) == message


@pytest.mark.parametrize("headless", ["", " --headless", " --a b"])
def test_a_word_that_systemd_splits_is_any_number_of_words(headless: str) -> None:
    unit = f"ExecStart={RUN} --rank ${{RANK}} $HEADLESS --port 1 $$HOME\n"
    run = started(f"{RUN} --rank 1{headless} --port 1 $HOME")
    assert command_edits(exec_words(unit), run) == ""
    assert command_edits(exec_words(unit), [*run, "--more"]) != ""


def test_a_command_that_runs_as_released_or_cannot_be_judged_is_no_edit() -> None:
    assert command_edits(RUN.split(" "), started(RUN)) == ""
    assert command_edits(["/usr/bin/numactl", *RUN.split(" ")], started(RUN)) == ""
    assert command_edits(RUN.split(" "), ["/bin/bash", "/x/run_member"]) == ""
    assert command_edits([], started(RUN)) == ""
    assert command_edits(RUN.split(" "), [""]) == ""


WORDS = st.text().filter(lambda value: "\x00" not in value and "\r" not in value)


@given(st.lists(st.lists(WORDS, min_size=1), min_size=1))
def test_words_are_read_back_from_a_unit_as_they_were_written(groups: list[list[str]]) -> None:
    unit = f"[Service]\nExecStart={systemd_command(groups)}\nRestart=always\n"
    assert exec_words(unit) == [argument for group in groups for argument in group]


SHIPPED: list[dict[str, Any]] = [
    {"engine": {"max_batch_size": 10}},
    {"network": "host", "environment": {"A": 'b "c" $d %e', "EMPTY": ""}, "arguments": ["--x", "a b"]},
    {"container": {"shm_size": "16g", "user": "1000:1000", "read_only": True}},
]


@pytest.mark.parametrize("changed", SHIPPED)
def test_a_release_is_started_as_its_own_unit_says(changed: dict[str, Any]) -> None:
    model = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
    endpoint = HostSettings.model_validate({"model": model, **changed}).all_endpoints["llm"]
    spec = endpoint_spec("llm", endpoint, "/srv/encodings", Resolved("sha256:" + "a" * 64, "c" * 40, "/m", None, None))
    release = build_release(spec, endpoint, NOWHERE)
    words = [argument for group in spec.docker_run(release.hash) for argument in group]
    as_run = [argument.replace("${GPUS}", "GPU-1").replace("${BINDING}", "b" * 12) for argument in words]
    assert command_edits(exec_words(release.unit), as_run) == ""
    assert command_edits(exec_words(release.unit), [*as_run[:3], "--privileged", *as_run[3:]]) == "with --privileged"
    assert any(isinstance(argument, Expanded) for argument in words)


# -- limits, daemon.json

DEFAULT = {"Memory": 0, "MemorySwap": 0, "NanoCpus": 0, "CpuShares": 0, "CpusetCpus": "", "PidsLimit": 32768}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({}, ""),
        ({"PidsLimit": 100}, "PidsLimit"),
        ({"Memory": 1 << 36, "MemorySwap": 1 << 36}, "Memory, MemorySwap"),
        ({"CpusetCpus": "0-3"}, "CpusetCpus"),
        ({"NanoCpus": 2}, "NanoCpus"),
    ],
)
def test_limits_that_docker_update_changed_are_named(changed: dict[str, Any], message: str) -> None:
    words = ["docker", "run", "--pids-limit", "32768", "img"]
    assert limit_edits(words, {**DEFAULT, **changed}) == message


def test_limits_that_are_not_known_are_no_edit() -> None:
    assert limit_edits(["docker", "run", "img"], {}) == ""
    assert limit_edits(["docker", "run", "img"], {"PidsLimit": None, "Memory": 0}) == ""


def docker(daemon: dict[str, Any], info: dict[str, Any], serving: Sequence[str] = ()) -> SeenDocker:
    system = OperatingSystem("debian", (), "bookworm", "12", "amd64")
    return SeenDocker(system, "up", info=info, files={DAEMON_JSON: json.dumps(daemon)}, serving=tuple(serving))


@pytest.mark.parametrize(
    ("daemon", "info", "key"),
    [
        ({"live-restore": True}, {"LiveRestoreEnabled": False}, "live-restore"),
        ({"exec-opts": ["native.cgroupdriver=cgroupfs"]}, {"CgroupDriver": "systemd"}, "exec-opts"),
        ({"registry-mirrors": ["https://a"]}, {"RegistryConfig": {"Mirrors": ["https://b/"]}}, "registry-mirrors"),
        ({"runtimes": {"other": {}}}, {"Runtimes": {"runc": {}}}, "runtimes"),
    ],
)
def test_a_daemon_json_that_dockerd_has_not_taken_is_drift(daemon: Any, info: Any, key: str) -> None:
    [sentence] = not_taken(docker(daemon, info))
    assert f"({key})" in sentence


@pytest.mark.parametrize(
    ("daemon", "info"),
    [
        ({"live-restore": True}, {"LiveRestoreEnabled": True}),
        (
            {"data-root": "/srv/docker"},
            {"DockerRootDir": "/var/lib/docker"},
        ),  # a link: the host says whether it leads there
        ({"exec-opts": ["native.cgroupdriver=systemd"]}, {"CgroupDriver": "systemd"}),
        ({"exec-opts": "native.cgroupdriver=systemd"}, {"CgroupDriver": "cgroupfs"}),
        ({"registry-mirrors": ["https://a"]}, {"RegistryConfig": {"Mirrors": ["https://a/"]}}),
        ({"runtimes": {"nvidia": {}}}, {"Runtimes": {"runc": {}}}),
        ({"debug": True}, {}),
        ({"log-opts": {"max-size": "1m"}}, {"LoggingDriver": "json-file"}),
    ],
)
def test_what_dockerd_has_taken_or_does_not_tell_is_no_drift(daemon: Any, info: Any) -> None:
    assert list(not_taken(docker(daemon, info))) == []


def test_a_restart_is_not_advised_under_an_endpoint_that_serves() -> None:
    odd = ({"exec-opts": ["native.cgroupdriver=cgroupfs"]}, {"CgroupDriver": "systemd"})
    assert "drain its host first" in "".join(not_taken(docker(*odd, serving=["llm"])))
    assert "drain" not in "".join(not_taken(docker(*odd)))


def test_another_store_at_the_next_start_is_drift() -> None:
    [sentence] = not_taken(replace(docker({}, {}, serving=["llm"]), other_store=("userns-remap",)))
    assert "(userns-remap)" in sentence
    assert f"systemctl stop {UNIT}, systemctl restart docker" in sentence


# -- which drop-ins are read


SHOWN = """\
#!/bin/sh
for unit; do case $unit in
--property=* | show) continue ;;
rackwright-llm.service) paths="{units}/$unit.d/rackwright-firewall.conf {units}/$unit.d/rackwright-mine.conf" ;;
rackwright-*@*) paths={units}/${{unit%@*}}@.service.d/override.conf ;;
rackwright*) paths={units}/$unit.d/override.conf ;;
*) paths= ;;
esac; printf 'ActiveState=active\\nDropInPaths=%s\\n\\n' "$paths"; done
"""


def test_a_drop_in_by_hand_is_read_whatever_its_name_and_unit(tmp_path: Path) -> None:
    systemctl = tmp_path / "systemctl"
    systemctl.write_text(SHOWN.format(units=UNITS))
    systemctl.chmod(0o755)
    settings = HostSettings.model_validate({"model": {"repository": "a/b", "mount": "/config/models/b"}})
    [row] = [row for row in composite(ALL, settings).splitlines() if row.startswith("reading_asked=")]
    units = row.partition("=")[2].strip("'")
    script = host_script("shared_read", reading_asked=units, reading_home=str(tmp_path))
    command = ["sh", "-c", f'{script}\nprintf %s "$reading_dropins"']
    search = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    found = subprocess.run(command, env=search, capture_output=True, text=True, check=True).stdout.split()
    assert f"{FOLDER}/rackwright-mine.conf" in found
    assert not [path for path in found if path.endswith(OWN_DROP_INS)]
    assert {f"{unit}.d" for unit in (*OWN_UNITS, UNIT)} <= {PurePosixPath(path).parent.name for path in found}
    assert list(foreign_drop_ins(" ".join(found))) == found


def test_the_names_of_rackwrights_drop_ins_are_those_that_it_writes() -> None:
    written = {PurePosixPath(path).name for path in (door_file("llm"), held_file("llm"))}
    assert written == set(OWN_DROP_INS)


@pytest.mark.parametrize(
    ("unit", "path", "elsewhere"),
    [
        ("rackwright-act@0.service", f"{UNITS}/rackwright-act@.service", False),
        ("rackwright-act@0.service", "/run/systemd/system/rackwright-act@.service", True),
        ("rackwright-llm.service", f"{UNITS}/rackwright-llm.service", False),
        ("rackwright-llm.service", "/run/systemd/system/rackwright-llm.service", True),
    ],
)
def test_an_instance_is_read_from_its_template(unit: str, path: str, elsewhere: bool) -> None:
    answers = Answers({unit: {"FragmentPath": path, "LoadState": "loaded"}})
    assert parse_endpoints(joined("", answers)).edits.elsewhere == ({unit: path} if elsewhere else {})
