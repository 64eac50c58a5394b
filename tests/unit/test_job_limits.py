"""No call of a host's script waits for ever: one wedged GPU, or a dockerd that hangs, must not eat the way back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rackwright.hostside import script_folders

TEMPLATES = Path(__file__).parents[2] / "templates"
SCRIPTS = sorted(path for folder in script_folders() for path in folder.glob("*.sh"))
PARTS = [*SCRIPTS, TEMPLATES / "before-start.j2", TEMPLATES / "wait-ready.j2"]
RUN = 'docker run --rm --pull never --name "$container" --label "$label='
LONG = ("docker pull", f'{RUN}$helper"')
"""Commands that take hours by nature: their job notices a stall."""
CALL = re.compile(r"(?:^|[|&;({!]|\bif|\buntil|\bwhile|=\$\()\s*(docker|nvidia-smi|dockerd)\s+(?!\)|>)", re.M)
"""A command that asks the driver or dockerd, where a command may stand, without `timeout` in front of it."""


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_every_call_of_docker_and_of_the_driver_has_a_limit(part: Path) -> None:
    lines = (row for row in part.read_text().splitlines() if not row.lstrip().startswith(("#", "{#", "printf")))
    code = "\n".join(lines)
    calls = [code[found.start(1) :].partition("\n")[0] for found in CALL.finditer(code)]
    assert [call for call in calls if not call.startswith(LONG)] == []


def test_a_call_without_a_limit_would_be_found() -> None:
    for command in (
        "docker ps",
        "x=$(docker inspect y)",
        "if ! docker info; then",
        "a && nvidia-smi -L",
        "(docker rm x)",
    ):
        assert CALL.search(command), command
    for command in (
        "timeout 20 docker ps",
        "command -v docker",
        "Wants=docker.service",
        "x=$(timeout 3 nvidia-smi -L)",
    ):
        assert not CALL.search(command), command


def test_no_two_scripts_have_one_name() -> None:
    assert len(SCRIPTS) > 60
    assert sorted({path.name for path in SCRIPTS}) == sorted(path.name for path in SCRIPTS)
