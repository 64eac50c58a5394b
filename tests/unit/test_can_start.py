"""What a start needs is there before anything is stopped: the real script among stand-ins for what it asks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.endpoint.switch.events import SwitchProgress
from rackwright.concerns.endpoint.switch.follow import WAITS, failure_of
from rackwright.concerns.endpoint.switch.job import can_start_script
from rackwright.hostside import host_script
from tests import texts

SHELLS = [shell for shell in ("dash", "busybox", "bash") if shutil.which(shell)]
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95"
IMAGE = "nvcr.io/nvidia/tensorrt-llm/release@sha256:3e4c"
Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture(params=SHELLS)
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Ask:
    """Ask on a host that is well, but for what is said; returns exit status, reason and cause."""
    shell = [request.param, "sh"] if request.param == "busybox" else [request.param]

    def run_script(
        active: bool = True,
        info: dict[str, Any] | None = None,
        lacks: str = "",
        smi: str = "echo 'GPU 0: NVIDIA B200'",
        images: str = "exit 0",
        needs: str = "",
        df: str = "echo /dev/sda1 900000 100 800000 1% /",
        publishes: str = "yes",
        again: str = "no",
        by: str = "switch",
        findmnt: str = "echo /",
        fragment: str = "",
        docker_unit: str = "enabled",
        daemon: int = 7,
        store: str = "",
        written: str = "",
        silent: str = "",
        containerd: str = "",
    ) -> tuple[int, str, str]:
        stubs = (
            {"ServerVersion": "28.0.1", "DockerRootDir": str(tmp_path), "Runtimes": RUNTIMES} if info is None else info
        )
        programs = {
            "systemctl": f"case $1 in is-active) {'true' if active else 'false'} ;; is-enabled) echo {docker_unit} ;; "
            f"show) case $* in *MainPID*) echo {daemon} ;; *) echo '{fragment}' ;; esac ;; esac",
            "findmnt": findmnt,
            "docker": f"case $1 in info) cat <<'END'\n{compact(stubs)}\nEND\n;;\n*) {images} ;; esac",
            "nvidia-smi": smi,
            "df": f"echo head; {df}",
        }
        for name, text in programs.items():
            program = tmp_path / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)
        release = tmp_path / "releases" / "abc"
        release.mkdir(parents=True, exist_ok=True)
        (release / "needs").write_text(needs)
        words: dict[str, str | int] = {
            "unit": "u",
            "releases": str(release),
            "publishes": publishes,
            "again": again,
            "room": 16384,
            "written": written,
            "by": by,
        }
        stand_ins = f"docker_other_store() {{ printf '%s' '{store}'; }}\ndocker_lacks() {{ printf '%b' '{lacks}'; }}"
        stand_ins += f"\ndocker_start_waits() {{ printf '%b' '{silent}'; }}"
        stand_ins += "\ndocker_asks_bus() { :; }"
        stand_ins += f"\ndocker_asks_containerd() {{ printf '%b' '{containerd}'; }}"
        script = f"{stand_ins}\n{host_script('can_start', **words)}"
        paths = {name: tmp_path / name for name in ("reason", "cause")}
        for path in paths.values():
            path.write_text("")
        env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
        env |= {name: str(path) for name, path in paths.items()}
        run = subprocess.run([*shell, "-c", script], env=env, capture_output=True, text=True, check=False, timeout=60)
        assert run.stderr == ""
        return run.returncode, paths["reason"].read_text().strip(), paths["cause"].read_text().strip()

    return run_script


def compact(state: dict[str, Any]) -> str:
    """As Docker's client prints it."""
    return json.dumps(state, separators=(",", ":"))


RUNTIMES = {"nvidia": {"path": "sh", "status": {"x": "y"}}, "runc": {"path": "/bin/sh"}}
WELL = (0, "", "")


def test_a_host_that_is_well_may_stop_what_serves(ask: Ask) -> None:
    assert ask(needs=f"image {IMAGE}\npath /\n") == WELL
    assert ask(again="yes") == WELL


def test_what_a_start_makes_in_the_endpoints_own_folder_need_not_be_there(ask: Ask, tmp_path: Path) -> None:
    assert ask(needs=f"path {tmp_path}/keyed\n") == WELL


FEW = 'case "$*" in -Pi*) echo /d 9 1 5 9 / ;; *) echo /d 9 1 99999 9 / ;; esac'
GONE: dict[str, tuple[dict[str, Any], str]] = {
    "Docker's chains are gone (nat DOCKER, filter DOCKER)": ({"lacks": "nat DOCKER\\nfilter DOCKER\\n"}, "needs"),
    "nothing can be written to /proc": ({"written": "/no/such /proc"}, "disk"),
    "Docker does not answer": ({"info": {}}, "docker"),
    "containerd does not answer": ({"info": {"ServerVersion": "1", "ContainerdCommit": {"ID": "N/A"}}}, "docker"),
    "/no/such-runtime, by which Docker starts containers, is no longer on this host": (
        {"info": {"ServerVersion": "1", "Runtimes": {**RUNTIMES, "nvidia": {"path": "/no/such-runtime"}}}},
        "needs",
    ),
    "runc-gone, by which Docker starts": (
        {"info": {"ServerVersion": "1", "Runtimes": {**RUNTIMES, "runc": {"path": "runc-gone"}}}},
        "needs",
    ),
    "dockerd no longer has the runtime nvidia": ({"info": {"ServerVersion": "1", "Runtimes": {"runc": {}}}}, "needs"),
    "Failed to initialize NVML: Driver/library version mismatch": ({"smi": f"echo '{MISMATCH}'; exit 18"}, "gpu"),
    f"release abc could not start: its image is no longer on this host; next, on it: docker pull {IMAGE}": (
        {"needs": f"image {IMAGE}\n", "images": "echo 'Error: No such image: x'; exit 1"},
        "needs",
    ),
    "release abc could not start: /no/such/folder is no longer on this host": (
        {"needs": "path /\npath /no/such/folder\n"},
        "needs",
    ),
    "only 100 KiB are free in": ({"df": "echo /d 900000 1 100 99% /"}, "disk"),
    "only 5 files can still be made in": ({"df": FEW}, "disk"),
}


@pytest.mark.parametrize("text", GONE)
def test_whatever_is_gone_is_named_before_anything_is_stopped(ask: Ask, text: str) -> None:
    state, cause = GONE[text]
    status, reason, output = ask(**state)
    assert (status, output) == (1, cause)
    assert text in reason
    progress = SwitchProgress("llm", "/logs", cause=output, failure=reason)
    assert all(one.cause.is_hosts for one in failure_of(progress).reasons), (
        "it is the host's fault, never the release's"
    )


def test_the_way_out_of_chains_that_are_gone_is_no_outage(ask: Ask) -> None:
    _, reason, _ = ask(lacks="nat DOCKER\\n")
    assert reason.index("rackwright drain ") < reason.index("systemctl restart docker")
    status, reason, _ = ask(lacks="nat DOCKER\\n", again="yes")
    gone = texts.CHAINS_GONE.format(chains="nat DOCKER")
    assert (status, gone in reason) == (1, True), "it may have happened in the drain"


@pytest.mark.parametrize(
    "state",
    [
        {"active": False, "info": {}, "lacks": "nat DOCKER\\n"},
        {"publishes": "no", "lacks": "nat DOCKER\\n"},
        {"publishes": "no", "lacks": "nat DOCKER\\n", "again": "yes"},
        {"smi": "exit 124"},
        {"smi": "echo 'Unable to determine the device handle for GPU'; exit 15"},
        {"needs": f"image {IMAGE}\n", "images": "echo 'Cannot connect to the Docker daemon'; exit 1"},
        {"info": {"ServerVersion": "1", "Runtimes": {"nvidia": {"runtimeType": "io.containerd.runc.v2"}}}},
        {"df": "echo btrfs 0 0 999999 - /"},
    ],
)
def test_what_nobody_can_tell_or_nothing_needs_stops_no_switch(ask: Ask, state: dict[str, Any]) -> None:
    assert ask(**state) == WELL


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process whose child is called docker-proxy, from a program that can be taken away."""
    program = tmp_path / "docker-proxy"
    shutil.copy(shutil.which("sleep") or "", program)
    with subprocess.Popen(["sh", "-c", f"{program} 600 & wait"], start_new_session=True) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while b"docker-proxy" not in b"".join(_command(number) for number in children.read_text().split()):
            time.sleep(0.01)
        yield process
        os.killpg(process.pid, signal.SIGKILL)


def _command(number: str) -> bytes:
    return Path(f"/proc/{number}/cmdline").read_bytes()


def test_a_program_that_a_running_container_was_started_by_is_missed(
    ask: Ask, daemon: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    program = tmp_path / "docker-proxy"
    assert ask(daemon=daemon.pid) == WELL
    program.rename(tmp_path / "away")
    status, reason, cause = ask(daemon=daemon.pid)
    assert (status, cause) == (1, "needs")
    assert reason.startswith(texts.PROGRAM_GONE.format(path=program))
    assert ask(daemon=daemon.pid, publishes="no") == WELL


def test_a_firewalld_that_does_not_answer_stops_what_publishes_a_port(ask: Ask) -> None:
    text = "firewalld is silent; next, on it: look"
    silent = {"silent": f"{text}\\n"}
    for case in ({}, {"again": "yes"}, {"by": "drain"}):
        assert ask(**silent, **case) == (1, text, "waits")
    progress = SwitchProgress("llm", "/logs", cause="waits", failure="x")
    assert failure_of(progress).code == WAITS
    assert all(one.cause.is_hosts for one in failure_of(progress).reasons)
    assert ask(**silent, publishes="no") == ask(**silent, by="boot") == ask(**silent, active=False) == WELL


def test_a_containerd_that_does_not_answer_keeps_each_endpoint_from_its_switch(ask: Ask) -> None:
    text = "containerd is silent; next, on it: look"
    silent = {"containerd": f"{text}\\n", "publishes": "no", "info": {}}
    for case in ({}, {"again": "yes"}, {"by": "drain"}):
        assert ask(**{**silent, **case}) == (1, text, "waits")
    assert ask(**silent, by="boot") == ask(**silent, active=False) == WELL


BY_HAND = "case $* in *SOURCE*) echo /dev/nvme1n1 ;; *) echo /mnt ;; esac"


def test_a_drain_for_chains_that_are_gone_names_the_way_out_once_it_is_drained(ask: Ask) -> None:
    status, reason, _ = ask(lacks="nat DOCKER\\n", by="drain")
    assert (status, "drain" in reason.partition("next: ")[2]) == (1, True)
    assert "rackwright drain" not in reason


@pytest.mark.parametrize(
    "faults",
    [
        {"lacks": "nat DOCKER\\n"},
        {"info": {}},
        {"smi": f"echo '{MISMATCH}'; exit 18"},
        {"needs": "path /\n", "findmnt": BY_HAND, "fragment": "/run/systemd/generator/mnt.mount"},
        {"needs": "path /\n", "findmnt": "case $* in *SOURCE*) echo pool/models ;; *) echo /mnt ;; esac"},
    ],
)
def test_what_a_restart_of_the_host_makes_again_is_not_missed_before_it(ask: Ask, faults: dict[str, Any]) -> None:
    assert ask(by="boot", **faults) == WELL


@pytest.mark.parametrize(
    ("faults", "text"),
    [
        ({"needs": "path /no/such/folder\n"}, "/no/such/folder is no longer on this host"),
        ({"needs": "path /\n", "findmnt": BY_HAND}, "/mnt, which was mounted by hand (/dev/nvme1n1)"),
        ({"docker_unit": "masked-runtime"}, "docker.service is masked"),
        ({"store": "userns-remap"}, "another store at its next start (userns-remap,"),
    ],
)
def test_what_a_restart_of_the_host_needs_is_asked_before_it(ask: Ask, faults: dict[str, Any], text: str) -> None:
    status, reason, _ = ask(by="boot", **faults)
    assert (status, text in reason) == (1, True), reason
    assert "docker_unit" in faults or "findmnt" not in faults or ask(by="switch", **faults) == WELL


def test_what_is_to_start_and_what_is_to_come_back_are_asked_for() -> None:
    script = can_start_script("llm", [("llm", "new"), ("llm", None), ("old", "was"), ("llm", "new")], True)
    assert (
        "releases='/var/lib/rackwright/endpoints/llm/releases/new /var/lib/rackwright/endpoints/old/releases/was'"
        in script
    )
    assert "docker_lacks()" in script
    assert "docker_asks_firewalld()" in script
