"""`rackwright status` names a watch that is switched off, and one that does not look."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rackwright.hostside import host_script
from rackwright.inspect.status.reading import parse
from rackwright.paths import WATCH_UNITS

TIMER = WATCH_UNITS[1]
PLACES = (
    "home",
    "images",
    "lease",
    "docker",
    "rules",
    "left",
    "repairs",
    "drained",
    "marks",
    "groups",
    "runs",
    "paused",
)


class Host:
    """A folder that stands for a host with a watch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.link = folder / "units/timers.target.wants" / TIMER
        self.link.parent.mkdir(parents=True)
        self.link.symlink_to(folder / TIMER)
        for name in ("runner", "watched/llm"):
            self.write(name, "")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)

    def looked(self, ago: int) -> None:
        uptime = int(float(Path("/proc/uptime").read_text().split()[0]))
        self.write("states/llm", f"state=idle\nlooked={uptime - ago}\n")

    def watch(self) -> str:
        places = {name: str(self.folder / name) for name in (*PLACES, "units", "runner", "watched", "states")}
        script = host_script("status_read", endpoints="", timer=TIMER, **places)
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
        return parse(done.stdout.splitlines()).watch


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_host_that_looks_says_nothing(host: Host) -> None:
    assert host.watch() == ""
    host.looked(40)
    assert host.watch() == ""


def test_a_timer_that_is_disabled_is_named(host: Host) -> None:
    host.link.unlink()
    assert host.watch() == "disabled"


def test_a_last_look_of_long_ago_is_named_but_in_a_pause(host: Host) -> None:
    host.looked(1000)
    assert int(host.watch()) == pytest.approx(1000, abs=5)
    host.write("paused", "1\n")
    assert host.watch() == ""


def test_a_host_without_a_watch_is_not_asked(host: Host) -> None:
    (host.folder / "runner").unlink()
    host.link.unlink()
    assert host.watch() == ""
