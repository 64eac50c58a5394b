"""Preflight's rows on hosts as they are found: Docker in other shapes, disks that take no writes, shares that hang."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.composite import folders_of
from rackwright.concerns.docker.apt import OperatingSystem
from rackwright.concerns.gpus import SeenGpus
from rackwright.concerns.gpus import parse as parse_gpus
from rackwright.concerns.image import IMAGE, SeenImages
from rackwright.concerns.models import MODELS
from rackwright.concerns.preflight.concern import PREFLIGHT, WantedHost, parse
from rackwright.concerns.preflight.docker import DAEMON_JSON
from rackwright.concerns.preflight.row import Above, Case, Fetch, Reach
from rackwright.hostside import host_script, host_text
from rackwright.plan.change import Refuse
from rackwright.plan.concern import HostReading
from rackwright.plan.reading import PRELUDE
from tests.unit.machines import DGX_B200, case, docker, gpu_output, gpus, machine, settings
from tests.unit.test_preflight import judged, stops, warns

READ = ("paths", "fetched", "ports", "endpoints", "state", "urls", "proxies")
DEBIAN_DOCKERD = "/usr/sbin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock "


def seen_of(found: Case, row: str) -> str:
    (only,) = judged(found)[row]
    return f"{only.reading}\n{only.fix}"


# -- Docker in other shapes


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("/usr/sbin/dockerd -H tcp://127.0.0.1:2375 ", None),
        ("/usr/sbin/dockerd --host=tcp://127.0.0.1:2375 ", None),
        ("/usr/sbin/dockerd ", {"hosts": ["tcp://127.0.0.1:2375"]}),
    ],
)
def test_a_dockerd_on_tcp_alone_is_named_text(command: str, file: dict[str, Any] | None) -> None:
    reading = docker(daemon="down", info={}, files={DAEMON_JSON: json.dumps(file) if file else None})
    found = case(docker=reading, machine=machine(dockerd=command))
    assert stops(found) == {"Docker's socket"}
    assert "listens on tcp://127.0.0.1:2375 alone" in seen_of(found, "Docker's socket")
    assert "-H unix:///var/run/docker.sock" in seen_of(found, "Docker's socket")


@pytest.mark.parametrize(
    "command", [DEBIAN_DOCKERD, "/usr/bin/dockerd ", "/usr/bin/dockerd -H unix:///run/docker.sock "]
)
def test_a_dockerd_on_the_socket_that_does_not_answer_is_only_down(command: str) -> None:
    found = case(docker=docker(daemon="down", info={}), machine=machine(dockerd=command))
    assert stops(found) == set()


def test_the_snap_is_named_where_it_is_alone_or_answers() -> None:
    alone = case(docker=docker(daemon="absent", info={}), machine=machine(**{"snap.docker": "yes"}))
    answers = case(docker=docker(info={"ServerVersion": "28.0", "DockerRootDir": "/var/snap/docker/common/docker"}))
    for found in (alone, answers):
        assert stops(found) == {"Docker as a snap"}
        assert "snap remove docker" in seen_of(found, "Docker as a snap")
    beside = case(machine=machine(**{"snap.docker": "yes"}))
    assert stops(beside) == set(), "Docker Engine itself answers"


def test_a_rootless_dockerd_is_named_with_its_user() -> None:
    alone = replace(machine(), rootless=("anna",))
    found = case(docker=docker(daemon="absent", info={}), machine=alone)
    assert stops(found) == {"rootless Docker"}
    assert "of user anna" in seen_of(found, "rootless Docker")
    linked = {**docker().info, "SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"]}
    assert stops(case(docker=docker(info=linked))) == {"rootless Docker"}
    assert stops(case(machine=alone)) == set(), "somebody's own dockerd beside the host's"


# -- disks and systems


@pytest.mark.parametrize("folder", ["/", "/etc", "/etc/systemd/system", "/var/lib/rackwright", "/var/lib/docker"])
def test_a_folder_that_takes_no_writes_stops_the_host_before_a_switch_can_begin(folder: str) -> None:
    found = case(machine=replace(machine(), readonly=frozenset({folder})))
    assert stops(found) == {"read-only"}
    assert f"read-only: {folder}" in seen_of(found, "read-only")
    assert f"mount -o remount,rw {folder}" in seen_of(found, "read-only")


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (case(machine=machine(immutable="ostree")), "ostree"),
        (case(docker=docker(system=OperatingSystem("flatcar", (), "", "4081", "amd64"))), "flatcar"),
    ],
)
def test_a_system_that_is_an_image_is_named(found: Case, kind: str) -> None:
    assert "immutable system" in stops(found)
    assert kind in seen_of(found, "immutable system")


def test_a_read_only_usr_stops_only_what_must_be_installed() -> None:
    sealed = replace(machine(), readonly=frozenset({"/usr"}))
    assert stops(case(machine=sealed)) == set()
    assert stops(case(machine=sealed, docker=docker(daemon="absent", info={}))) == {"immutable system"}


def test_what_stops_a_host_that_somebody_writes_to_may_pass() -> None:
    """Beside a switch of another run: its ports and GPUs belong to what is about to go."""
    found = case(machine=replace(machine(), hung=("/srv/models",)))

    def refusal_text(writer: str) -> str:
        ((step,),) = [change.steps for change in PREFLIGHT.changes(WantedHost(found, writer), found.machine)]
        assert isinstance(step, Refuse)
        return step.text

    sentence = "alice@laptop (rollout of lab) holds this host's lease"
    assert sentence in refusal_text("alice@laptop (rollout of lab)")
    assert "lease" not in refusal_text("")


def test_a_share_that_hangs_stops_the_host_and_nothing_is_said_of_its_models() -> None:
    found = case(machine=replace(machine(), hung=("/srv/models",)))
    assert stops(found) == {"hanging file system"}
    assert "findmnt --target /srv/models" in seen_of(found, "hanging file system")
    parsed = MODELS.parse("hangs=yes\n")
    reading = HostReading({IMAGE.name: SeenImages(True, (), {}), MODELS.name: parsed})
    (change,) = MODELS.changes(MODELS.wanted(found.settings, reading), parsed)
    (step,) = change.steps
    assert isinstance(step, Refuse)
    assert step.final
    assert "/srv/models does not answer" in step.text


def test_the_folders_that_may_hang_are_those_of_the_settings() -> None:
    values = {"model": {"repository": "a/b", "path": "/mnt/weights/b", "mount": "/config/models/b"}}
    assert folders_of(settings(**values)) == ["/srv/models", "/srv/encodings", "/mnt/weights/b"]


def test_models_that_others_may_write_warn() -> None:
    found = replace(case(), open_models=("/srv/models/a--b",))
    assert warns(found) == {"model files"}
    assert "chmod -R go-w /srv/models/a--b" in seen_of(found, "model files")


def test_folders_of_models_in_which_others_may_rename_warn(tmp_path: Path) -> None:
    models, encodings = tmp_path / "data" / "models", tmp_path / "encodings"
    for folder in (models, encodings):
        folder.mkdir(parents=True)
    os.chown(models.parent, 12345, 0)
    models.chmod(0o775)
    encodings.chmod(0o1777)
    script = host_script("preflight_read", fetched=f"{models} {encodings} {tmp_path}/none")
    shared = "have() { false; }; hangs() { false; }; show() { :; }; reading_daemon=0\n"
    lines = subprocess.run(["sh", "-c", shared + script], capture_output=True, text=True, check=True).stdout
    folders = parse(lines).above
    assert {one for one in folders if one.path.startswith(str(tmp_path))} == {
        Above(str(models.parent), "UNKNOWN", "755"),
        Above(str(models), "root", "775"),
    }
    found = case(machine=replace(machine(), above=tuple(one for one in folders if one.path == str(models))))
    assert warns(found) == {"folders of models"}
    assert f"chown root:root {models}; chmod go-w {models}" in seen_of(found, "folders of models")


# -- GPUs


def test_persistence_mode_off_warns_and_none_says_nothing() -> None:
    off = case(gpus=gpus("b200", persistence_mode="Disabled"))
    assert warns(off) == {"persistence mode"}
    assert "off on GPU 0" in seen_of(off, "persistence mode")
    assert "nvidia-persistenced" in seen_of(off, "persistence mode")
    no_word = case(gpus=gpus("h200", persistence_mode="N/A"), settings=settings(hardware={"gpu_models": ["H200"]}))
    assert "persistence mode" not in judged(no_word)


@pytest.mark.parametrize("reason", ["hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown"])
def test_a_gpu_that_is_too_hot_or_short_of_power_warns(reason: str) -> None:
    slow = gpus("b200", **{f"clocks_event_reasons__clocks_event_reason_{reason}": "Active"})
    found = case(gpus=slow)
    assert warns(found) == {"throttling"}
    assert f"GPU 0: slowed down by {reason.replace('_', ' ')}" in seen_of(found, "throttling")


@pytest.mark.parametrize("reason", ["gpu_idle", "sw_power_cap", "applications_clocks_setting"])
def test_a_gpu_that_is_idle_or_capped_is_well(reason: str) -> None:
    assert warns(case(gpus=gpus("b200", **{f"clocks_event_reasons__clocks_event_reason_{reason}": "Active"}))) == set()


FALLEN = "NVRM: GPU 0000:5d:00.0: GPU has fallen off the bus."


def test_a_gpu_that_has_fallen_off_the_bus_is_said_in_the_kernels_words() -> None:
    missing = replace(gpus("b200"), gpus=gpus("b200").gpus[:7], fallen=FALLEN)
    assert FALLEN in seen_of(case(gpus=missing), "GPU count")
    failing = SeenGpus(error="Unable to determine the device handle", module="580", fallen=FALLEN)
    assert FALLEN in seen_of(case(gpus=failing), "driver")


def test_the_kernels_line_is_read() -> None:
    row = f"fallen {base64.b64encode(FALLEN.encode()).decode()}\n"
    assert parse_gpus(row + gpu_output()).fallen == FALLEN
    assert parse_gpus(gpu_output()).fallen == ""


def test_cgroup_v1_warns() -> None:
    assert warns(case(machine=machine(cgroup="v1"))) == {"cgroup"}
    assert warns(case(machine=machine(cgroup="v2"))) == set()


# -- the image's own registry


@pytest.mark.parametrize(
    ("image", "daemon", "registry"),
    [
        ("vllm/vllm-openai:v0.14.1", {}, "registry=https://registry-1.docker.io/v2/"),
        ("vllm/vllm-openai:v0.14.1", {"registry-mirrors": ["https://hub.site/"]}, "registry=https://hub.site/v2/"),
        ("nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0", {}, "registry=https://nvcr.io/v2/"),
        ("harbor.site:8443/ai/engine:1", {}, "registry=https://harbor.site:8443/v2/"),
    ],
)
def test_an_images_own_registry_is_asked(image: str, daemon: dict[str, Any], registry: str) -> None:
    host_settings = settings(image=image, docker={"daemon": daemon})
    arguments = [
        argument for argument in PREFLIGHT.read(host_settings).replace("'", " ").split() if "registry=" in argument
    ]
    assert [argument.removeprefix("urls=") for argument in arguments] == [registry]


def test_a_registry_that_is_away_is_named_by_its_address_text() -> None:
    away = replace(machine(), reached=(Reach("registry", 28, 0, "https://registry-1.docker.io/v2/"),))
    found = case(machine=away, fetches=(Fetch("i", "image", 1, True),), settings=settings(hardware=DGX_B200))
    assert "registry https://registry-1.docker.io/v2/: no answer" in seen_of(found, "reachable")


@pytest.mark.parametrize(("kind", "way"), [("d", "rmdir"), ("s", "rm"), ("l", "rm")])
def test_what_is_not_a_file_where_systemd_reads_stops_the_host(kind: str, way: str) -> None:
    path = "/etc/systemd/system/rackwright-llm.service.d/x.conf"
    found = case(machine=replace(machine(), odd_units=((kind, path),)))
    assert stops(found) == {"systemd's files"}
    assert f"{way} {path}" in seen_of(found, "systemd's files")
    assert "systemd's files" not in judged(case())


def test_the_host_names_what_is_not_a_file_where_systemd_reads(tmp_path: Path) -> None:
    units = tmp_path / "etc/systemd/system"
    for name in (
        "rackwright-llm.service.d/d.conf",
        "docker.service.d",
        "x.service.d/d.conf",
        "multi-user.target.wants",
    ):
        (units / name).mkdir(parents=True)
    folder = units / "rackwright-llm.service.d"
    (folder / "l.conf").symlink_to("/nonexistent")
    (folder / "good.conf").write_text("")
    (folder / "link.conf").symlink_to(folder / "good.conf")
    (units / "rackwright-boot.service").symlink_to("/dev/null")
    script = host_script("preflight_read", **dict.fromkeys(READ, "")).replace("find /etc/", f"find {tmp_path}/etc/")
    text = f"{PRELUDE}\nhangs() {{ false; }}\nholders() {{ :; }}\nreading_daemon=0\n(\n{script}\n) 4>/dev/null"
    printed = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False).stdout
    found = {(kind, path.removeprefix(f"{units}/")) for kind, path in parse(f"\n{printed}").odd_units}
    assert found == {(kind, f"{folder.name}/{kind}.conf") for kind in "dl"}


def test_systemd_is_not_asked_while_a_pipe_is_among_its_files(tmp_path: Path) -> None:
    pipe = tmp_path / "etc/systemd/system/docker.service.d/p.conf"
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    (tmp_path / "systemctl").write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\n")
    (tmp_path / "systemctl").chmod(0o755)
    script = host_script("shared_read", reading_asked="docker.service", reading_home=str(tmp_path))
    script = script.replace("find /etc/", f"find {tmp_path}/etc/") + host_text("units_read.sh")
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    run = subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=False)
    assert (run.returncode, f"rm {pipe}" in run.stderr, (tmp_path / "asked").exists()) == (1, True, False)
    pipe.unlink()
    subprocess.run(["sh", "-c", script], env=env, capture_output=True, check=True)
    assert (tmp_path / "asked").exists()


def test_what_the_reading_prints_of_such_hosts_is_parsed() -> None:
    reading = parse(
        "uid=0\nreadonly /etc\nreadonly /usr\nodd d /etc/systemd/system/a.d/x.conf\n"
        "hung /srv/models\nrootless anna\ncgroup=v2\nsnap.docker=yes\n"
        "dockerd=/usr/bin/dockerd -H tcp://0.0.0.0:2375 \n"
    )
    assert reading.readonly == {"/etc", "/usr"}
    assert reading.hung == ("/srv/models",)
    assert reading.odd_units == (("d", "/etc/systemd/system/a.d/x.conf"),)
    assert reading.rootless == ("anna",)
    assert reading.values["dockerd"] == "/usr/bin/dockerd -H tcp://0.0.0.0:2375 "
