"""The status with which `scripts/run-tests` ends: what passes when it is tried again has passed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.lab.conftest import scope_of

SCRIPT = Path(__file__).parents[2] / "scripts/run-tests"
PYTHON = """#!/bin/sh
# In the place of Python: pytest ends with the next status of the file, everything else with 0.
[ "$2" = pytest ] || exit 0
status=$(head -n 1 statuses)
sed -i 1d statuses
exit "${status:-0}"
"""


@pytest.mark.parametrize(
    ("statuses", "wanted", "remaining"),
    [
        ([0, 0], 0, 0),
        ([1, 0, 0], 0, 0),  # the first part's second try passed: the second part is tried
        ([1, 1, 0], 1, 1),
        ([2, 0], 2, 1),  # pytest itself was interrupted: nothing to try again
        ([0, 1, 0], 0, 0),
    ],
)
def test_the_last_try_decides(tmp_path: Path, statuses: list[int], wanted: int, remaining: int) -> None:
    for folder in ("scripts", ".venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(SCRIPT, tmp_path / "scripts/run-tests")
    python = tmp_path / ".venv/bin/python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    (tmp_path / "statuses").write_text("".join(f"{status}\n" for status in statuses))
    run = subprocess.run([tmp_path / "scripts/run-tests", "unit", "lab"], check=False, capture_output=True)
    assert run.returncode == wanted
    assert len((tmp_path / "statuses").read_text().splitlines()) == remaining


def test_files_of_a_folder_share_a_worker_and_other_files_have_their_own() -> None:
    tests = (
        "test_plan.py::test_a",
        "test_host.py::test_a",
        "group/test_group.py::test_b",
        "group/test_group_x.py::test_c",
    )
    plan, host, *group = (scope_of(f"tests/lab/{test}") for test in tests)
    assert plan != host
    assert group == ["tests/lab/group"] * 2
