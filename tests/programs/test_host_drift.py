"""A host's own look at edited files and disabled units (watch-drift.j2), with a systemctl of the test."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackwright.concerns.watch.notify import RUNTIME, notify_files
from rackwright.concerns.watch.units import check_file
from rackwright.loading.validate import validate
from rackwright.paths import STATE, UNITS
from rackwright.plan.reading import pairs

SETTINGS = {
    "model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"},
    "notify": {"command": "/bin/page"},
}
SYSTEMCTL = """#!/bin/sh
case $1 in
is-enabled) grep -qx "$2" {root}/disabled && echo disabled || echo enabled ;;
is-active) ! grep -qx "$3" {root}/stopped ;;
esac
"""


def listed(path: Path) -> str:
    return f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path}\n"


@dataclass
class Host:
    """A host as a deploy left it."""

    root: Path

    def __post_init__(self) -> None:
        self.units.mkdir()
        self.release.mkdir(parents=True)
        (self.root / "bin").mkdir()
        (self.root / "state/watch").mkdir()
        timer, unit, file = self.units / "rackwright-watch.timer", "rackwright-llm.service", self.root / "look"
        for path, text in (
            (timer, "timer"),
            (file, "look"),
            (self.units / unit, "unit"),
            (self.release / unit, "unit"),
        ):
            path.write_text(text)
        (self.units / "rackwright-boot.service").write_text("boot")
        (self.root / "state/watch/files").write_text(listed(timer) + listed(file))
        digest = hashlib.sha256(b"unit").hexdigest()
        (self.release / "SHA256SUMS").write_text(f"{digest}  {unit}\n")
        for pointer in ("current", "proven"):
            (self.home / pointer).symlink_to("releases/abc")
        (self.root / "bin/systemctl").write_text(SYSTEMCTL.format(root=self.root))
        (self.root / "bin/systemctl").chmod(0o755)
        for name in ("disabled", "stopped"):
            (self.root / name).write_text("")

    @property
    def units(self) -> Path:
        return self.root / "units"

    @property
    def home(self) -> Path:
        return self.root / "state/endpoints/llm"

    @property
    def release(self) -> Path:
        return self.home / "releases/abc"

    def look(self, is_due: bool = True) -> list[tuple[str, str]]:
        """Return the events that a look makes: state and text."""
        if is_due:
            (self.root / "run/drift-looked").unlink(missing_ok=True)
        settings, _ = validate("h1", SETTINGS, {})
        assert settings is not None
        text = str(notify_files(settings)[check_file("drift")]).replace(f"/run/{RUNTIME}", f"{self.root}/run")
        text = text.replace(STATE, f"{self.root}/state").replace(UNITS, str(self.units))
        environment = {**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}"}
        run = subprocess.run(["sh"], input=text, env=environment, capture_output=True, text=True, check=False)
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
        events = sorted((self.root / "state/events").glob("[0-9]*"))
        found = [pairs(path.read_text()) for path in events]
        for path in events:
            path.unlink()
        return [(event["state"], event["text"]) for event in found]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_host_as_it_was_left_has_no_event(host: Host) -> None:
    assert host.look() == []


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("look", "look was edited"),
        ("units/rackwright-watch.timer", "rackwright-watch.timer was edited"),
        ("units/rackwright-llm.service", "endpoint llm"),
        ("state/endpoints/llm/releases/abc/rackwright-llm.service", "endpoint llm"),
    ],
)
def test_an_edit_is_one_event_and_its_end_too(host: Host, path: str, says: str) -> None:
    before = (host.root / path).read_text()
    (host.root / path).write_text("by hand")
    ((state, text),) = host.look()
    assert state == "firing"
    assert says in text
    assert host.look() == []
    (host.root / path).write_text(before)
    assert [state for state, _ in host.look()] == ["resolved"]


def test_a_removed_file_and_disabled_and_stopped_units_are_drift(host: Host) -> None:
    (host.root / "look").unlink()
    (host.root / "disabled").write_text("rackwright-boot.service\n")
    (host.root / "stopped").write_text("rackwright-watch.timer\n")
    ((_, text),) = host.look()
    for says in ("look is gone", "rackwright-boot.service is not enabled", "rackwright-watch.timer is stopped"):
        assert says in text


def test_a_release_that_was_never_proven_is_drift_unless_it_is_tried(host: Host) -> None:
    (host.home / "proven").unlink()
    (host.home / "trial").write_text("")
    assert host.look() == []
    (host.home / "trial").unlink()
    assert len(host.look()) == 1


def test_it_looks_every_ten_minutes(host: Host) -> None:
    assert host.look() == []
    (host.root / "look").write_text("by hand")
    assert host.look(is_due=False) == []


def test_what_was_put_right_during_a_boot_is_resolved_once(host: Host) -> None:
    (host.root / "state/notify/sent").mkdir(parents=True)
    (host.root / "state/notify/sent/drift").touch()
    assert [state for state, _ in host.look()] == ["resolved"]
    assert host.look() == []
