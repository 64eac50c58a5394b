"""bench/supply's program on a host: it sees an engine through, takes it away for a time, and believes no wrong file."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bench.supply.onhost import member

RIGHT = b"weights"


def measured(folder: Path, script: str, marker: bool, stop_after: float = 0.0, **more: Any) -> dict[str, Any]:
    """Run member.py over a shell script as its engine, and stop it when that has all, or after so many seconds."""
    spec = {
        "argv": ["sh", "-c", script],
        "folder": str(folder),
        "file": str(folder / "weights"),
        "sha256": hashlib.sha256(RIGHT).hexdigest(),
        "marker": str(folder / "complete") if marker else None,
        "verifies": False,
        "away": None,
        "limit": 30,
        **more,
    }
    file = folder / "member.json"
    file.write_text(json.dumps(spec))
    with subprocess.Popen([sys.executable, member.__file__, str(file)]) as program:
        (folder / "go").write_text(str(time.time()))
        deadline = time.time() + (stop_after or 20)
        while time.time() < deadline and not (folder / "done.json").exists():
            time.sleep(0.02)
        (folder / "stop").touch()
        assert program.wait(20) == 0
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def test_an_engine_that_ends_has_its_file(tmp_path: Path) -> None:
    found = measured(tmp_path, "sleep 0.3; printf weights >weights", marker=False)
    assert found["error"] is None
    assert 0.3 <= found["seconds"] < 10
    assert found["peak_kib"] > 0


def test_an_engine_that_serves_on_is_ended_with_what_it_started(tmp_path: Path) -> None:
    script = "printf weights >weights; touch complete; sleep 61 & echo $! >child; wait"
    found = measured(tmp_path, script, marker=True)
    assert found["error"] is None
    child = Path("/proc", (tmp_path / "child").read_text().strip(), "stat")
    deadline = time.time() + 5
    while child.exists() and child.read_text().rpartition(")")[2].split()[0] != "Z" and time.time() < deadline:
        time.sleep(0.05)
    assert not child.exists() or " Z " in child.read_text()


@pytest.mark.parametrize(
    ("script", "error"),
    [("printf wrong >weights", "the file is not the origin's"), ("exit 3", "the engine ended with 3")],
)
def test_a_wrong_file_and_a_failed_engine_are_no_success(tmp_path: Path, script: str, error: str) -> None:
    found = measured(tmp_path, script, marker=False, stop_after=2)
    assert found["seconds"] is None
    assert found["error"] == error


def test_a_member_that_leaves_begins_again(tmp_path: Path) -> None:
    found = measured(tmp_path, "sleep 0.6; printf weights >weights", marker=False, away=[0.3, 0.8])
    assert found["starts"] == 2
    assert found["seconds"] >= 1.4
