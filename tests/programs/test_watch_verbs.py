"""`rackwright watch` on a host: the real script; only systemctl is the test's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rackwright.concerns.watch.pause import parse_pause
from rackwright.hostside import host_script

SHELL = shutil.which("dash") or "sh"


class WatchedHost:
    """A host's folders below a temporary one."""

    def __init__(self, root: Path) -> None:
        self.root, self.paused = root, root / "run" / "engines-paused"
        self.bin = root / "bin"
        self.bin.mkdir()
        self.timer("0")

    def timer(self, status: str) -> None:
        program = self.bin / "systemctl"
        program.write_text(f"#!/bin/sh\nexit {status}\n")
        program.chmod(0o755)

    def put(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def run(self, verb: str, seconds: int = 0, who: str = "", reason: str = "") -> subprocess.CompletedProcess[str]:
        paths = {"paused": self.paused, "watched": self.root / "watched"}
        paths |= {"states": self.root / "states", "acts": self.root / "acts"}
        script = host_script(
            "watch_verbs",
            verb=verb,
            seconds=seconds,
            who=who,
            reason=reason,
            timer="rackwright-watch.timer",
            **{key: str(path) for key, path in paths.items()},
        )
        environment = {"PATH": f"{self.bin}:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
        return subprocess.run(
            [SHELL, "-c", script], env=environment, text=True, capture_output=True, timeout=20, check=False
        )


@pytest.fixture
def host(tmp_path: Path) -> WatchedHost:
    return WatchedHost(tmp_path)


def uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


def test_a_pause_is_written_as_status_and_the_look_read_it(host: WatchedHost) -> None:
    assert host.run("pause", 3600, "ops@deploy1", "it's $(reboot) time").returncode == 0
    pause = parse_pause(host.paused.read_text(), uptime())
    assert pause is not None
    assert 3590 <= pause.seconds <= 3600
    assert (pause.who, pause.reason) == ("ops@deploy1", "it's $(reboot) time")
    assert host.paused.read_text().split("\n")[0].isdecimal()


def test_resume_ends_it_and_says_so_only_if_something_looks_again(host: WatchedHost) -> None:
    host.put("watched/llm", "act=restart\n")
    host.run("pause", 60, "ops", "")
    host.timer("3")
    failed = host.run("resume")
    assert (failed.returncode, host.paused.exists()) == (1, False)
    assert "rackwright-watch.timer" in failed.stderr
    host.timer("0")
    assert host.run("resume").returncode == 0


def test_show_names_state_signs_and_acts(host: WatchedHost) -> None:
    host.put("watched/llm", "act=tell\n")
    host.put("states/llm", "looked=1.5\nstate=hung\nsigns=steps still for 120 s, the probe unanswered\nwould=restart\n")
    host.put("acts/acts-llm", "1764212400 restart ok it answered\nbroken row\n")
    shown = host.run("show")
    assert shown.returncode == 0, shown.stderr
    for part in ("llm: hung", "would have done: restart", "act: tell", "steps still for 120 s", "2025-11-27"):
        assert part in shown.stdout
    assert "broken" not in shown.stdout


def test_show_on_a_host_without_a_watch_is_no_error(host: WatchedHost) -> None:
    host.timer("3")
    assert host.run("show").returncode == 0


def test_show_names_a_pause_and_an_ended_one_is_none(host: WatchedHost) -> None:
    host.run("pause", 600, "ops", "RMA")
    assert "by ops" in host.run("show").stdout
    host.paused.write_text("1\nwho=ops\n")
    assert "paused" not in host.run("show").stdout
