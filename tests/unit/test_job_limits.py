"""No call of a switch waits for ever: one wedged GPU, or a dockerd that hangs, must not eat the way back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rackwright.hostside

HOSTSIDE = Path(rackwright.hostside.__file__).parent
TEMPLATES = Path(__file__).parents[2] / "templates"
PARTS = [
    *(
        HOSTSIDE / f"{name}.sh"
        for name in [
            "transaction",
            "commit",
            "docker_apply",
            "docker_valid",
            "drain",
            "gpus_kept",
            "halt",
            "hook",
            "host_faults",
            "job_ended",
            "keep_log",
            "point",
            "pointed_at",
            "prove",
            "remove_helper",
            "stood_on",
            "switch",
            "trial",
            "trial_dockerd",
            "trial_endpoint",
            "wait_for_switch",
            "wait_ready",
        ]
    ),
    TEMPLATES / "before-start.j2",
    TEMPLATES / "wait-ready.j2",
]
CALL = re.compile(r"(?:^|[|&;({!]|\bif|\buntil|\bwhile|=\$\()\s*(docker|nvidia-smi|dockerd)\s+(?!\))", re.M)
"""A command that asks the driver or dockerd, where a command may stand, without `timeout` in front of it."""


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_every_call_of_docker_and_of_the_driver_has_a_limit(part: Path) -> None:
    code = "\n".join(line for line in part.read_text().splitlines() if not line.lstrip().startswith(("#", "{#")))
    assert [found.group(0).strip() for found in CALL.finditer(code)] == []


def test_a_call_without_a_limit_would_be_found() -> None:
    for line in ("docker ps", "x=$(docker inspect y)", "if ! docker info; then", "a && nvidia-smi -L", "(docker rm x)"):
        assert CALL.search(line), line
    for line in ("timeout 20 docker ps", "command -v docker", "Wants=docker.service", "x=$(timeout 3 nvidia-smi -L)"):
        assert not CALL.search(line), line
