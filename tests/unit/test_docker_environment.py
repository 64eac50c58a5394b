"""Docker is asked by its own socket, whatever a login's environment, systemd's, or a context of root's names."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path

import pytest

from rackwright.concerns.composite import composite
from rackwright.paths import DOCKER_HOST, DOCKER_MISLEADING
from rackwright.plan.change import Guarded, Job, Shell
from rackwright.remote import commands, guards, job_scripts
from tests.unit.machines import settings
from tests.unit.test_endpoint_changes import release

ASKED = "docker ps"
ELSEWHERE = {"DOCKER_HOST": "tcp://192.0.2.1:2375", **dict.fromkeys(DOCKER_MISLEADING, "elsewhere")}


@pytest.fixture
def login(tmp_path: Path) -> dict[str, str]:
    """Make a login environment that names another Docker, and a `docker` that prints its arguments."""
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\nenv | grep ^DOCKER_\n")
    docker.chmod(0o755)
    return {**ELSEWHERE, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


def output_of(words: list[str], login: dict[str, str]) -> str:
    return subprocess.run(words, env=login, stdout=subprocess.PIPE, text=True, check=True).stdout


def test_a_step_asks_the_socket(login: dict[str, str]) -> None:
    command = commands.command_of(Shell(ASKED)).get_raw_value()
    assert output_of(["sh", "-c", command], login) == f"DOCKER_HOST={DOCKER_HOST}\n"


def test_a_job_asks_the_socket(login: dict[str, str]) -> None:
    script = job_scripts.payload(Job("pull", "pull", ASKED)).split("\n")[0].split(" ")[2]
    assert output_of(["sh", "-c", base64.b64decode(script).decode()], login) == f"DOCKER_HOST={DOCKER_HOST}\n"


def test_what_a_guard_takes_back_asks_the_socket(login: dict[str, str]) -> None:
    undo = guards.undo_script(Guarded("docker", "true", ASKED, 60))
    assert output_of(["sh", "-c", undo], login) == f"DOCKER_HOST={DOCKER_HOST}\n"


def test_a_reading_asks_the_socket(login: dict[str, str]) -> None:
    script = composite([], settings(), {"more": "printf 'seen %s\\n' \"$(env | grep ^DOCKER_)\""})
    assert f"seen DOCKER_HOST={DOCKER_HOST}\n" in output_of(["sh", "-c", script], login)


def test_an_endpoints_unit_asks_the_socket() -> None:
    lines = release().unit.splitlines()
    assert f"Environment=DOCKER_HOST={DOCKER_HOST}" in lines
    assert f"UnsetEnvironment={' '.join(DOCKER_MISLEADING)}" in lines
