"""A member that is to wait for its head, and has come up on its own since it was read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rackwright.hostside import durable_script

SYSTEMCTL = (
    """systemctl() { case $1 in is-active) echo %s ;; is-enabled) return 1 ;; *) echo "$*" >>%s/asked ;; esac; }\n"""
)


def joined(folder: Path, state: str, unit: str = "as asked", binding: str = "rank=1\n") -> str:
    """Return the calls of systemctl by which a member of that state, unit and binding joins its group."""
    home, units = folder / "home", folder / "units"
    for path in (home / "releases/abc", units):
        path.mkdir(parents=True)
    (home / "current").symlink_to("releases/abc")
    (home / "releases/abc/llm.service").write_text("as asked")
    (units / "llm.service").write_text(unit)
    (home / "binding").write_text("rank=1\n")
    places = {"home": str(home), "units": str(units), "held": str(folder / "held"), "unit": "llm.service"}
    script = durable_script("join_group", **places, release="abc", binding=binding, keep=2)
    subprocess.run(["sh", "-c", SYSTEMCTL % (state, folder) + script], check=True)
    return (folder / "asked").read_text()


@pytest.mark.parametrize("state", ["active", "activating"])
def test_one_that_waits_or_serves_as_asked_is_not_stopped(tmp_path: Path, state: str) -> None:
    calls = joined(tmp_path, state)
    assert "stop llm.service" not in calls
    assert "enable --quiet llm.service" in calls
    assert (tmp_path / "home/keep").read_text() == "2\n"


@pytest.mark.parametrize(
    ("state", "changed"), [("failed", {}), ("active", {"unit": "another"}), ("active", {"binding": "rank=0\n"})]
)
def test_any_other_is_started_anew(tmp_path: Path, state: str, changed: dict[str, str]) -> None:
    calls = joined(tmp_path, state, **changed)
    assert "stop llm.service" in calls
    assert "start --no-block llm.service" in calls
