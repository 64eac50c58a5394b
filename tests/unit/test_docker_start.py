"""What dockerd asks when it starts, before it is stopped: the real script among programs that answer or do not."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.docker import SeenDocker, parse
from rackwright.concerns.docker.chains import can_restart_script
from rackwright.concerns.docker.dockerd import Configuration
from rackwright.hostside import host_text

SHELLS = [shell for shell in ("dash", "busybox", "bash") if shutil.which(shell)]
PROGRAMS = ("awk", "cat", "cut", "grep", "head", "sed", "stat", "tail", "tee", "tr")
SILENT = 124
"""How `timeout` ends for a program that did not answer in time."""
Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture(params=SHELLS)
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Ask:
    """Ask on a host whose firewalld answers, but for what is said; returns exit status, reason and cause."""
    program = shutil.which(request.param) or ""
    shell = [program, "sh"] if request.param == "busybox" else [program]

    def run_it(
        owner: str | None = "echo b true",
        zone: str = "echo s public",
        command: str | None = None,
        ctr: str | None = "exit 0",
        iptables: str | None = "exit 0",
        inactive: str = "none",
    ) -> tuple[int, str, str]:
        folder = tmp_path / "bin"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name in PROGRAMS:
            (folder / name).symlink_to(shutil.which(name) or "")
        bus = None if owner is None else f"case $* in *NameHasOwner*) {owner} ;; *getDefaultZone*) {zone} ;; esac"
        active = f"case $* in *{inactive}*) exit 3 ;; esac"
        programs = {"busctl": bus, "firewall-cmd": command, "ctr": ctr, "iptables": iptables, "systemctl": active}
        # A limit of no seconds would be none: every question has one.
        programs["timeout"] = '[ "$1" -gt 0 ] || exit 125; shift; exec "$@"'
        for name, text in programs.items():
            if text is not None:
                (folder / name).write_text(f"#!/bin/sh\n{text}\n")
                (folder / name).chmod(0o755)
        paths = {name: tmp_path / name for name in ("reason", "cause")}
        for path in paths.values():
            path.write_text("")
        env = {"PATH": str(folder), **{name: str(path) for name, path in paths.items()}}
        command_line = [*shell, "-c", can_restart_script()]
        run = subprocess.run(command_line, env=env, capture_output=True, text=True, check=False, timeout=30)
        assert run.stderr == ""
        return run.returncode, paths["reason"].read_text().strip(), paths["cause"].read_text().strip()

    return run_it


WELL = (0, "", "")
FIREWALLD, BUS, CONTAINERD, LOCK = "firewalld does", "D-Bus does", "containerd does", "the lock of iptables"


@pytest.mark.parametrize(
    ("answers", "text", "way"),
    [
        ({"zone": f"exit {SILENT}"}, FIREWALLD, "systemctl restart firewalld"),
        ({"owner": None, "command": f"exit {SILENT}"}, FIREWALLD, "systemctl restart firewalld"),
        ({"owner": f"exit {SILENT}"}, BUS, "journalctl -u dbus"),
        ({"ctr": f"exit {SILENT}"}, CONTAINERD, "systemctl restart containerd"),
        ({"iptables": "exit 4"}, LOCK, "fuser -v /run/xtables.lock"),
    ],
)
def test_what_does_not_answer_is_named_and_nothing_is_stopped(
    ask: Ask, answers: dict[str, Any], text: str, way: str
) -> None:
    status, reason, cause = ask(**answers)
    assert (status, cause) == (1, "waits")
    assert reason.startswith(text)
    assert way in reason.partition("; next, ")[2]


def test_the_way_out_of_a_silent_firewalld_is_no_outage(ask: Ask) -> None:
    _, reason, _ = ask(zone=f"exit {SILENT}")
    words = ["rackwright drain ", "systemctl restart firewalld", "systemctl restart docker", "rackwright undrain "]
    assert sorted(words, key=reason.index) == words


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"owner": "echo b false", "zone": f"exit {SILENT}"},
        {"zone": "exit 1"},
        {"owner": "exit 1"},
        {"owner": None, "command": "exit 252"},
        {"owner": None, "command": f"exit {SILENT}", "inactive": "firewalld"},
        {"ctr": "exit 1", "iptables": "exit 1"},
        {"ctr": f"exit {SILENT}", "inactive": "containerd"},
        {"owner": None, "ctr": None, "iptables": None},
    ],
)
def test_what_answers_or_is_not_there_keeps_no_dockerd_from_its_restart(ask: Ask, answers: dict[str, Any]) -> None:
    assert ask(**answers) == WELL


def test_whoever_holds_the_lock_is_named(tmp_path: Path) -> None:
    lock, locks = tmp_path / "xtables.lock", tmp_path / "locks"
    lock.touch()
    inode = lock.stat().st_ino
    locks.write_text(
        f"1: FLOCK  ADVISORY  WRITE 17 00:1a:{inode} 0 EOF\n2: FLOCK  ADVISORY  WRITE 18 00:1a:{inode}1 0 EOF\n"
    )
    text = host_text("docker_start.sh").replace("/run/xtables.lock", str(lock)).replace("/proc/locks", str(locks))
    run = subprocess.run(["sh", "-c", f"{text}\nlock_holder"], capture_output=True, text=True, check=True)
    assert run.stdout.rstrip() == " by process 17"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("answer", "unknown"),
    [("echo 's \"\"'", True), ("echo 's \"docker\"'", False), ("exit 1", False), ("exit 124", False)],
)
def test_a_firewalld_that_has_no_zone_for_dockers_bridge_is_seen(
    shell: str, answer: str, unknown: bool, tmp_path: Path
) -> None:
    words = [shell, "sh"] if shell == "busybox" else [shell]
    for name, text in {"busctl": answer, "timeout": 'shift; exec "$@"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    script = f"{host_text('docker_start.sh')}\ndocker_unknown_to_firewalld 5"
    run = subprocess.run([*words, "-c", script], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, check=False)
    assert (run.returncode == 0) is unknown


def test_the_reading_says_it_with_the_way_out() -> None:
    text = "firewalld does not answer; next, on it: look"
    reading: SeenDocker = parse(f"engine=yes\nwaits {text}\n")
    assert reading.waits == (text,)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_dockerd_that_does_not_come_up_is_told_in_the_hosts_words(shell: str, tmp_path: Path) -> None:
    words = [shell, "sh"] if shell == "busybox" else [shell]
    (tmp_path / "bin").mkdir()
    programs = {
        "systemctl": "case $1 in restart) exit 124 ;; status) echo '     Active: activating (start)' ;; esac",
        "journalctl": "echo 'level=info msg=\"Loading containers: start.\"'",
        "timeout": 'shift; exec "$@"',
        "dockerd": "exit 0",
        "busctl": "exit 1",
        "iptables": "exit 0",
    }
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    script = Configuration(None, None).apply_script("restart").replace("/etc/", f"{tmp_path}/etc/")
    script = script.replace("export PATH=", f"export PATH={tmp_path}/bin:")
    env = {**os.environ, "reason": str(tmp_path / "reason"), "cause": str(tmp_path / "cause")}
    run = subprocess.run([*words, "-c", script], env=env, capture_output=True, text=True, check=False, timeout=30)
    assert run.returncode == 1
    assert "Active: activating" in run.stderr
    reason = (tmp_path / "reason").read_text()
    assert ("activating (start)" in reason, "Loading containers" in reason) == (True, True)
