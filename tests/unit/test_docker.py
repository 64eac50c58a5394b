"""Docker's concern: daemon.json is merged, dockerd is restarted only where it must be, and never under a server."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.concerns.docker import AUTHORITY, DROPIN, Package, SeenDocker, WantedDocker, apt, changes, parse, wanted
from rackwright.concerns.docker.daemon import (
    DAEMON_JSON,
    RUNTIME_KEY,
    BrokenDaemonJsonError,
    leaves,
    merged,
    parse_daemon_json,
    render_daemon_json,
    with_runtime,
)
from rackwright.messages import SettingsError
from rackwright.plan.change import Change, Guarded, Job, Owned, Refuse, Shell, WriteFile
from rackwright.plan.concern import HostReading
from rackwright.settings.sections import Proxy
from tests.unit.machines import BOOKWORM, docker, settings

NVIDIA = {"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}}
KEYS = st.sampled_from(["log-driver", "log-opts", "runtimes", "debug", "data-root", "features", "bip"])
VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text(max_size=5), st.lists(st.text(max_size=3), max_size=2)),
    lambda inner: st.dictionaries(st.sampled_from(["a", "b", "nvidia", "path"]), inner, max_size=3),
    max_leaves=6,
)
TREES = st.dictionaries(KEYS, VALUES, max_size=5)


def wanted_docker(*owned: Owned, authority: str | None = None, **values: Any) -> WantedDocker:
    return WantedDocker(settings(**values), authority, frozenset(owned))


def pending(wanted: WantedDocker, reading: SeenDocker) -> list[Change]:
    return changes(wanted, reading)


def with_daemon_json(text: str | None, **values: Any) -> SeenDocker:
    return docker(files={DAEMON_JSON: text}, **values)


BARE = docker(
    daemon="absent",
    version=(),
    has=frozenset({"apt"}),
    packages={},
    enabled=False,
    info={},
    files={},
    load_state="not-found",
)

# -- daemon.json


@given(TREES, TREES)
def test_merging_twice_is_merging_once(current: dict[str, Any], wanted: dict[str, Any]) -> None:
    once = merged(current, wanted, ())
    assert merged(once, wanted, leaves(with_runtime(wanted, current))) == once


@given(TREES, TREES)
def test_foreign_keys_stay_in_their_order(current: dict[str, Any], wanted: dict[str, Any]) -> None:
    after = merged(current, wanted, ())
    assert [key for key in after if key in current] == list(current)
    for key, value in current.items():
        if key not in wanted and key != "runtimes":
            assert after[key] == value


@given(TREES)
def test_what_is_asked_for_is_there(wanted: dict[str, Any]) -> None:
    after = merged({}, wanted, ())
    for key, value in wanted.items():
        if not isinstance(value, dict):
            assert after[key] == value


@given(TREES, st.dictionaries(st.sampled_from(["mtu", "ip"]), st.integers(), min_size=1))
def test_keys_of_ours_no_longer_wanted_go_again(current: dict[str, Any], extra: dict[str, Any]) -> None:
    owned = leaves(extra)
    assert merged(merged(current, extra, ()), {}, owned) == merged(current, {}, ())


@given(TREES)
def test_the_text_reads_back(tree: dict[str, Any]) -> None:
    assert parse_daemon_json(render_daemon_json(tree, None)) == tree


def test_a_runtime_that_nvidia_ctk_wrote_stays_as_it_is() -> None:
    theirs = {"runtimes": {"nvidia": {"args": [], "path": "/usr/bin/nvidia-container-runtime"}}}
    assert merged(theirs, {}, ()) == theirs
    assert with_runtime({}, theirs) == {}


def test_indentation_stays_as_it_was() -> None:
    assert render_daemon_json({"a": {"b": 1}}, '{\n\t"a": {}\n}') == '{\n\t"a": {\n\t\t"b": 1\n\t}\n}\n'


@pytest.mark.parametrize(
    ("text", "where"),
    [('{"a": 1,}', "line 1, column [89]"), ('{\n "a": tru\n}', "line 2, column 7"), ("[]", "list")],
)
def test_broken_json_says_where(text: str, where: str) -> None:
    with pytest.raises(BrokenDaemonJsonError, match=where):
        parse_daemon_json(text)


@pytest.mark.parametrize("text", [None, "", "  \n"])
def test_no_file_is_an_empty_one(text: str | None) -> None:
    assert parse_daemon_json(text) == {}


# -- changes


def test_a_converged_host_has_none() -> None:
    assert pending(wanted_docker(), docker()) == []


def test_a_broken_file_refuses_and_writes_nothing() -> None:
    (change,) = pending(wanted_docker(docker={"daemon": {"debug": True}}), with_daemon_json('{"a" 1}'))
    (step,) = change.steps
    assert isinstance(step, Refuse)
    assert "line 1, column 6" in step.text


def test_the_runtime_takes_a_reload_even_under_a_serving_endpoint() -> None:
    (change,) = pending(wanted_docker(), with_daemon_json('{"bip": "10.0.0.1/24"}', serving=("llm",)))
    (step,) = change.steps
    assert isinstance(step, Guarded)
    assert "action=reload" in step.script
    assert change.owns == (Owned("daemon_key", RUNTIME_KEY),)
    assert '"bip"' in change.diff


def test_a_dockerd_that_was_never_told_is_reloaded() -> None:
    reading = docker(info={**docker().info, "Runtimes": {"runc": {}}})
    (change,) = pending(wanted_docker(), reading)
    assert "does not know the runtime" in change.why


def test_other_keys_take_a_restart_which_is_left_to_its_turn_under_a_serving_endpoint() -> None:
    wanted = wanted_docker(docker={"daemon": {"log-opts": {"max-size": "10m"}}})
    (change,) = pending(wanted, docker())
    assert isinstance(change.steps[0], Guarded)
    assert "action=restart" in change.steps[0].script
    assert change.steps[0].seconds > wanted.settings.firewall.confirm_timeout
    assert pending(wanted, docker(serving=("llm",))) == []


@pytest.mark.parametrize(
    "keys",
    [
        {"data-root": "/srv/docker"},
        {"storage-driver": "vfs"},
        {"userns-remap": "default"},
        {"features": {"containerd-snapshotter": True}},
        {"ip6tables": True},
    ],
    ids=lambda keys: next(iter(keys)),
)
def test_what_cannot_wait_for_the_hosts_turn_is_refused_under_a_serving_endpoint(keys: dict[str, Any]) -> None:
    wanted = wanted_docker(docker={"daemon": {**keys, "log-level": "warn"}})
    (refused,) = pending(wanted, docker(serving=("llm",)))
    assert isinstance(refused.steps[0], Refuse)
    assert next(iter(keys)) in refused.steps[0].text
    assert "log-level" not in refused.steps[0].text
    assert "systemctl stop rackwright-llm.service" in refused.steps[0].text
    (change,) = pending(wanted, docker())
    assert isinstance(change.steps[0], Guarded)
    assert "action=restart" in change.steps[0].script


def test_other_features_take_a_reload() -> None:
    (change,) = pending(wanted_docker(docker={"daemon": {"features": {"cdi": True}}}), docker(serving=("llm",)))
    assert isinstance(change.steps[0], Guarded)
    assert "action=reload" in change.steps[0].script


def test_nothing_is_done_to_a_dockerd_whose_restart_is_under_way() -> None:
    wanted = wanted_docker(docker={"daemon": {"log-level": "warn"}})
    assert pending(wanted, docker(restarting=True)) == []
    (wait,) = pending(wanted, docker(restarting=True, daemon="down", info={}))
    assert "wait for dockerd" in wait.what


def test_reloadable_keys_never_restart() -> None:
    (change,) = pending(wanted_docker(docker={"daemon": {"max-concurrent-downloads": 10}}), docker(serving=("llm",)))
    assert isinstance(change.steps[0], Guarded)
    assert "action=reload" in change.steps[0].script


def test_a_restart_says_what_else_runs() -> None:
    reading = docker(info={**docker().info, "ContainersRunning": 3})
    (change,) = pending(wanted_docker(docker={"daemon": {"bip": "10.0.0.1/24"}}), reading)
    assert "3 other containers" in change.why


def test_the_undo_holds_the_old_text() -> None:
    (change,) = pending(wanted_docker(docker={"daemon": {"debug": True}}), docker())
    (step,) = change.steps
    assert isinstance(step, Guarded)
    old = docker().files[DAEMON_JSON] or ""
    assert base64.b64encode(old.encode()).decode() in step.undo


def test_a_bare_host_is_installed_then_configured() -> None:
    found = pending(wanted_docker(), BARE)
    assert [type(change.steps[0]) for change in found] == [Job, Guarded]
    job = found[0].steps[0]
    assert isinstance(job, Job)
    assert "engine=docker.io" in job.script
    assert Owned("package", "docker.io") in found[0].owns
    assert Owned("hold", "docker.io") in found[0].owns
    assert Owned("hold", "curl") not in found[0].owns, (
        "a package that serves nothing keeps getting its security updates"
    )


def test_nothing_is_held_when_nothing_is_to_be() -> None:
    found = pending(wanted_docker(docker={"hold_packages": False}), BARE)
    assert not [entry for entry in found[0].owns if entry.kind == "hold"]


def test_dockers_own_repository() -> None:
    found = pending(wanted_docker(docker={"source": "docker"}), BARE)
    job = found[0].steps[0]
    assert isinstance(job, Job)
    assert "engine='docker-ce docker-ce-cli containerd.io'" in job.script
    assert "https://download.docker.com/linux/debian bookworm stable" in job.script
    assert Owned("apt_source", "/etc/apt/keyrings/rackwright-docker.asc") in found[0].owns


def test_debian_13_splits_the_client() -> None:
    assert apt.engine_packages("distribution", replace(BOOKWORM, version="13")) == ("docker.io", "docker-cli")
    assert apt.engine_packages("distribution", replace(BOOKWORM, id="ubuntu", version="24.04")) == ("docker.io",)


def test_apparmor_is_installed_where_the_kernel_wants_it() -> None:
    (change,) = pending(wanted_docker(), docker(apparmor_missing=True))
    assert "apparmor" in change.what


def test_nftables_is_installed_where_it_is_missing_and_recorded() -> None:
    lacking = docker(has=docker().has - {"nft"})
    (change,) = pending(wanted_docker(), lacking)
    assert (change.what, change.owns) == ("install nftables", (Owned("package", "nftables"),))
    assert Owned("package", "nftables") in pending(wanted_docker(), BARE)[0].owns
    (refused,) = pending(wanted_docker(), replace(lacking, system=replace(BOOKWORM, id="fedora")))
    assert isinstance(refused.steps[0], Refuse)
    assert "nftables" in refused.steps[0].text


@pytest.mark.parametrize(("steps", "is_wanted"), [({"docker"}, False), ({"docker", "firewall"}, True), (None, True)])
def test_nftables_is_wanted_only_where_a_firewall_is(steps: set[str] | None, is_wanted: bool) -> None:
    reading = HostReading({"ownership": frozenset()}, None if steps is None else frozenset(steps))
    lacking = docker(has=docker().has - {"nft"})
    found = pending(wanted(settings(), reading), lacking)
    assert [change.what for change in found] == (["install nftables"] if is_wanted else [])
    fedora = replace(lacking, system=replace(BOOKWORM, id="fedora"))
    assert bool(pending(wanted(settings(), reading), fedora)) == is_wanted, "a closed network without the package"


def test_another_family_is_refused_by_name() -> None:
    (change,) = pending(wanted_docker(), replace(BARE, system=replace(BOOKWORM, id="fedora")))
    assert isinstance(change.steps[0], Refuse)
    assert "fedora" in change.steps[0].text


def test_another_toolkit_version_waits_for_a_stop() -> None:
    installed = {**docker().packages, apt.TOOLKIT: Package(True, True, "1.17.8-1")}
    wanted = wanted_docker(docker={"toolkit_version": "1.18.1-1"})
    pin, change = pending(wanted, docker(packages=installed))
    assert isinstance(pin.steps[0], WriteFile)
    assert "Pin: version 1.18.1-1" in str(pin.steps[0].content)
    assert isinstance(change.steps[0], Job)
    assert "toolkit_pin=1.18.1-1" in change.steps[0].script
    (refused,) = pending(wanted, docker(packages=installed, serving=("llm",)))
    assert isinstance(refused.steps[0], Refuse)


def test_dockerd_down_is_started_and_never_installed() -> None:
    reading = docker(daemon="down", info={}, version=())
    (change,) = pending(wanted_docker(), reading)
    assert change.what == "start dockerd"


def test_dockerd_down_and_not_configured_is_both_in_one() -> None:
    (change,) = pending(wanted_docker(), with_daemon_json(None, daemon="down", info={}))
    (step,) = change.steps
    assert isinstance(step, Guarded)
    assert "action=start" in step.script


SILENT = ("firewalld does not answer; next, on it: look",)


def test_a_dockerd_that_would_not_come_up_again_is_not_stopped() -> None:
    wanted = wanted_docker(docker={"daemon": {"bip": "10.0.0.1/24"}})
    for reading in (docker(waits=SILENT), docker(waits=SILENT, daemon="down", info={}, version=())):
        (change,) = [one for one in pending(wanted, reading) if "dockerd" in one.what]
        (step,) = change.steps
        assert isinstance(step, Refuse)
        assert (step.code, step.text.endswith(SILENT[0])) == ("RW2112", True)
    (change,) = pending(wanted_docker(), docker(waits=SILENT, daemon="down", info={}, version=()))
    assert isinstance(change.steps[0], Refuse)
    (change,) = pending(wanted_docker(docker={"daemon": {"max-concurrent-downloads": 10}}), docker(waits=SILENT))
    assert isinstance(change.steps[0], Guarded), "a reload stops nothing"


def test_the_host_asks_itself_before_it_stops_dockerd() -> None:
    (change,) = pending(wanted_docker(docker={"daemon": {"bip": "10.0.0.1/24"}}), docker())
    (step,) = change.steps
    assert isinstance(step, Guarded)
    assert "docker_start_waits 10" in step.before
    (change,) = pending(wanted_docker(docker={"daemon": {"max-concurrent-downloads": 10}}), docker())
    assert isinstance(change.steps[0], Guarded)
    assert change.steps[0].before == ""


def test_a_unit_that_is_not_enabled() -> None:
    (change,) = pending(wanted_docker(), docker(enabled=False))
    assert change.what == "start dockerd at boot"


def test_users_join_and_leave_text() -> None:
    reading = docker(users={"ops": frozenset({"ops", "sudo"}), "ann": frozenset({"ann", "docker"})})
    owned = (Owned("group_member", "docker:bob"),)
    join, leave = pending(wanted_docker(*owned, docker={"users": ["ops", "ann"]}), reading)
    assert (join.what, leave.what) == ("add ops to the group docker", "take bob out of the group docker")
    assert join.owns == (Owned("group_member", "docker:ops"),)
    assert leave.disowns == owned


def test_a_member_that_was_there_before_is_not_ours() -> None:
    reading = docker(users={"ann": frozenset({"docker"})})
    assert pending(wanted_docker(docker={"users": ["ann"]}), reading) == []
    assert pending(wanted_docker(), reading) == []


def test_a_user_who_does_not_exist_is_named() -> None:
    (change,) = pending(wanted_docker(docker={"users": ["ghost"]}), docker())
    assert isinstance(change.steps[0], Refuse)
    assert "ghost" in change.steps[0].text


def test_a_hold_of_ours_that_was_released_comes_back() -> None:
    loose = docker(packages={**docker().packages, "docker.io": Package(False, True, "20.10")})
    (change,) = pending(wanted_docker(Owned("hold", "docker.io"), Owned("package", "docker.io")), loose)
    assert change.what == "hold docker.io"
    assert pending(wanted_docker(), loose) == [], "a package that another operator installed is theirs to hold"


DRIVER_PACKAGE = "nvidia-driver-580-server-open"
FOUND = docker(
    packages={
        **docker().packages,
        "docker.io": Package(False, True, "20.10"),
        DRIVER_PACKAGE: Package(False, True, "580.95"),
    }
)


def test_what_was_there_before_is_held_by_setting_and_released_again() -> None:
    assert pending(wanted_docker(), FOUND) == []
    (change,) = pending(wanted_docker(docker={"hold_existing": True}), FOUND)
    assert change.what == f"hold docker.io, {DRIVER_PACKAGE}"
    assert change.owns == (Owned("hold", "docker.io"), Owned("hold", DRIVER_PACKAGE))
    held = replace(FOUND, packages={name: replace(one, held=True) for name, one in FOUND.packages.items()})
    assert pending(wanted_docker(*change.owns, docker={"hold_existing": True}), held) == []
    (release,) = pending(wanted_docker(*change.owns), held)
    assert release.what == f"release docker.io, {DRIVER_PACKAGE}"
    assert release.disowns == change.owns


def test_our_own_packages_are_no_business_of_that_setting() -> None:
    ours = (Owned("hold", "docker.io"), Owned("package", "docker.io"))
    held = {**docker().packages, "docker.io": Package(True, True, "20.10")}
    assert pending(wanted_docker(*ours), docker(packages=held)) == []


def test_holds_go_when_they_are_no_longer_wanted() -> None:
    held = docker(packages={**docker().packages, "docker.io": Package(True, True, "20.10")})
    (change,) = pending(wanted_docker(Owned("hold", "docker.io"), docker={"hold_packages": False}), held)
    assert change.disowns == (Owned("hold", "docker.io"),)


def test_the_sites_authority_reaches_system_and_docker() -> None:
    found = pending(wanted_docker(authority="PEM\n"), docker())
    paths = [step.path for change in found for step in change.steps if isinstance(step, WriteFile)]
    assert paths == [AUTHORITY, "/etc/docker/certs.d/nvcr.io/ca.crt"]
    assert isinstance(found[0].steps[1], Shell)
    assert "update-ca-certificates" in found[0].steps[1].script


def test_the_images_own_registry_is_trusted_too_and_docker_hub_by_the_system_alone() -> None:
    private_registry = pending(wanted_docker(authority="PEM\n", image="registry.corp:5000/trtllm:1.1.0rc0"), docker())
    paths = [step.path for change in private_registry for step in change.steps if isinstance(step, WriteFile)]
    folders = ["/etc/docker/certs.d/nvcr.io/ca.crt", "/etc/docker/certs.d/registry.corp:5000/ca.crt"]
    assert paths == [AUTHORITY, *folders]
    hub = pending(wanted_docker(authority="PEM\n", image="vllm/vllm-openai:v0.11.0"), docker())
    assert [step.path for change in hub for step in change.steps if isinstance(step, WriteFile)] == paths[:2]


def test_a_proxy_reaches_apt_and_dockerd() -> None:
    apt_file, daemon = pending(wanted_docker(proxy={"http": "http://proxy:3128"}), docker())
    assert isinstance(apt_file.steps[0], WriteFile)
    assert 'Acquire::https::Proxy "http://proxy:3128";' in str(apt_file.steps[0].content)
    assert "restart" in daemon.what
    assert Owned("file", DROPIN) in daemon.owns


def test_on_a_bare_host_the_proxy_is_there_before_dockerd_starts() -> None:
    found = pending(wanted_docker(proxy={"http": "http://proxy:3128"}), BARE)
    kinds = [type(change.steps[0]) for change in found]
    assert kinds == [WriteFile, WriteFile, Job, Guarded]
    assert isinstance(found[-1].steps[0], Guarded)
    assert "action=reload" in found[-1].steps[0].script


@pytest.mark.parametrize(
    ("proxy", "dropin_text"),
    [
        ({"http": "http://proxy:3128"}, None),
        ({"https": "http://me:pw@proxy:3128", "no_proxy": ["10.0.0.0/8", ".corp"]}, None),
        ({"http": "http://proxy:3128"}, "[Service]\nEnvironment=of an engine that was removed\n"),
    ],
    ids=["http", "https", "left over"],
)
def test_what_configures_a_fresh_dockerd_keeps_the_proxy_that_was_written_before_it(
    proxy: dict[str, Any], dropin_text: str | None
) -> None:
    bare = replace(BARE, files={DROPIN: dropin_text})
    found = pending(wanted_docker(proxy=proxy), bare)
    dropin = next(s for change in found for s in change.steps if isinstance(s, WriteFile) and s.path == DROPIN)
    [guarded] = [step for change in found for step in change.steps if isinstance(step, Guarded)]
    assert f"dropin_text={base64.b64encode(str(dropin.content).encode()).decode()}\n" in guarded.script


@pytest.mark.parametrize("mine", [True, False])
def test_a_fresh_dockerd_without_a_proxy_gets_none_of_ours_back_and_keeps_a_foreign_one(mine: bool) -> None:
    bare = replace(BARE, files={DROPIN: "[Service]\n"})
    owned = [Owned("file", DROPIN)] if mine else []
    [guarded] = [
        step for change in pending(wanted_docker(*owned), bare) for step in change.steps if isinstance(step, Guarded)
    ]
    retained = "" if mine else base64.b64encode(b"[Service]\n").decode()
    assert f"dropin_text={retained or chr(39) * 2}\n" in guarded.script


def test_a_proxy_with_a_password_is_for_root_only() -> None:
    (change, *_) = pending(wanted_docker(proxy={"http": "http://me:pw@proxy:3128"}), docker())
    assert isinstance(change.steps[0], WriteFile)
    assert change.steps[0].mode == "0600"


def test_files_of_ours_go_and_files_of_others_stay() -> None:
    reading = docker(files={**docker().files, apt.PROXY_FILE: "old", AUTHORITY: "theirs"})
    (change,) = pending(wanted_docker(Owned("file", apt.PROXY_FILE)), reading)
    assert change.what == f"remove {apt.PROXY_FILE}"


def test_an_authority_that_is_no_longer_set_leaves_the_trust_store_as_a_teardown_does() -> None:
    on_host = docker(files={**docker().files, AUTHORITY: "ours"})
    (change,) = pending(wanted_docker(Owned("file", AUTHORITY)), on_host)
    (step,) = change.steps
    assert isinstance(step, Shell)
    assert "/etc/ssl/certs" in step.script


def test_networks_are_no_hosts_for_apt() -> None:
    text = apt.proxy_text(Proxy(http="http://p:1", no_proxy=("localhost", ".corp", "10.0.0.0/8", "*.x"))) or ""
    direct = [row for row in text.splitlines() if "DIRECT" in row]
    assert [row.split("::")[3].split(" ")[0] for row in direct] == ["localhost", "localhost", "corp", "corp"]


# -- reading


def test_the_reading_is_parsed() -> None:
    info = base64.b64encode(json.dumps({"ServerVersion": "20.10.24+dfsg1", "Runtimes": NVIDIA["runtimes"]}).encode())
    output = (
        "os=debian\nlike=\ncodename=bookworm\nos_version=12\narch=amd64\napt=yes\nengine=yes\ncurl=yes\n"
        "package docker.io hold installed 20.10.24\npackage docker-ce unknown not-installed \n"
        "broken docker.io half-configured\nunit.UnitFileState=enabled\nunit.LoadState=loaded\n"
        f"info {info.decode()}\nnone {DAEMON_JSON}\nuser ops ops sudo docker\nserving llm\n"
    )
    reading = parse(output)
    assert (reading.daemon, reading.version, reading.enabled) == ("up", (20, 10, 24), True)
    assert reading.packages["docker.io"] == Package(True, True, "20.10.24")
    assert not reading.packages["docker-ce"].installed
    assert reading.broken == ("docker.io half-configured",)
    assert reading.users == {"ops": frozenset({"ops", "sudo", "docker"})}
    assert (reading.serving, reading.runtimes) == (("llm",), frozenset({"nvidia"}))


def test_a_dockerd_that_does_not_answer_is_down_and_not_absent() -> None:
    assert parse("engine=yes\n").daemon == "down"
    assert parse("engine=yes\ninfo \n").daemon == "down"
    assert parse("os=debian\n").daemon == "absent"


def test_an_authority_that_cannot_be_read_is_an_error_of_the_settings(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pem")
    for path in (tmp_path / "none.pem", tmp_path, tmp_path / "pipe.pem"):
        with pytest.raises(SettingsError, match="private_ca"):
            wanted(settings(paths={"private_ca": str(path)}), HostReading({"ownership": frozenset()}))


def test_an_authority_that_the_system_does_not_trust_yet_text() -> None:
    files = {**docker().files, AUTHORITY: "PEM\n", "/etc/docker/certs.d/nvcr.io/ca.crt": "PEM\n"}
    (change,) = pending(wanted_docker(authority="PEM\n"), docker(files=files))
    assert change.what == "trust the site's certificate authority"
    assert pending(wanted_docker(authority="PEM\n"), docker(files=files, authority_trusted=True)) == []


def test_an_installation_of_ours_that_was_cut_is_finished() -> None:
    cut = docker(daemon="down", info={}, broken=("docker.io unpacked", "containerd unpacked"))
    found = pending(wanted_docker(Owned("package", "docker.io")), cut)
    job = found[0].steps[0]
    assert isinstance(job, Job)
    assert "finish=yes" in job.script
    strange = pending(wanted_docker(), cut)[0].steps[0]
    assert isinstance(strange, Job)
    assert "finish=''" in strange.script


@pytest.mark.parametrize("given", ["http", "https"])
def test_one_proxy_serves_both_for_the_installation_and_for_dockerd(given: str) -> None:
    steps = [
        step for change in pending(wanted_docker(proxy={given: "http://proxy:3128"}), BARE) for step in change.steps
    ]
    dropin = next(step for step in steps if isinstance(step, WriteFile) and step.path == DROPIN)
    install = next(step for step in steps if isinstance(step, Job))
    for name in ("http", "https"):
        assert f"{name}_proxy=http://proxy:3128" in install.script
        assert f'"{name.upper()}_PROXY=http://proxy:3128"' in str(dropin.content)


@pytest.mark.parametrize(
    ("reading", "family", "source_line"),
    [
        (
            "os=ubuntu\nlike=debian\ncodename=jammy\nos_version=22.04\narch=amd64\n",
            "ubuntu",
            "arch=amd64 {} https://download.docker.com/linux/ubuntu jammy stable",
        ),
        (
            "os=ubuntu\nlike=debian\ncodename=noble\nos_version=24.04\narch=arm64\n",
            "ubuntu",
            "arch=arm64 {} https://download.docker.com/linux/ubuntu noble stable",
        ),
        (
            "os=linuxmint\nlike=ubuntu debian\ncodename=noble\nos_version=22\narch=amd64\n",
            "ubuntu",
            "arch=amd64 {} https://download.docker.com/linux/ubuntu noble stable",
        ),
        (
            "os=debian\nlike=\ncodename=bookworm\nos_version=12\narch=amd64\n",
            "debian",
            "arch=amd64 {} https://download.docker.com/linux/debian bookworm stable",
        ),
    ],
)
def test_each_distribution_gets_its_own_packages(reading: str, family: str, source_line: str) -> None:
    parsed = parse(f"{reading}apt=yes\n")
    assert parsed.system.family == family
    signed = "signed-by=/etc/apt/keyrings/rackwright-docker.asc]"
    (job,) = (
        step
        for change in pending(wanted_docker(docker={"source": "docker"}), parsed)
        for step in change.steps
        if isinstance(step, Job)
    )
    assert source_line.format(signed) in job.script
    assert "docker.io" in pending(wanted_docker(), parsed)[0].what


# -- a removal that was cut before it was struck from the record

STALE = [Owned("daemon_key", "debug"), Owned("file", DROPIN), Owned("file", AUTHORITY)]


@pytest.mark.parametrize("stale", STALE, ids=str)
def test_what_is_recorded_and_gone_is_forgotten_so_that_anothers_is_never_removed(stale: Owned) -> None:
    on_host = with_daemon_json('{"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}}')
    [change] = [one for one in pending(wanted_docker(stale), on_host) if stale in one.disowns]
    assert (change.steps, change.why) == ((), "it is gone from the host")
    assert not [one for one in pending(wanted_docker(), on_host) if one.disowns]


def test_a_key_that_is_there_or_wanted_is_not_forgotten() -> None:
    key = Owned("daemon_key", "debug")
    on_host = with_daemon_json('{"debug": true, "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}')
    assert not [
        one for one in pending(wanted_docker(key, docker={"daemon": {"debug": True}}), on_host) if key in one.disowns
    ]
    [taken] = [one for one in pending(wanted_docker(key), on_host) if key in one.disowns]
    assert taken.steps
