"""A job that arrives only in part is not started, and leaves nothing."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rackwright.hostside import DOCKER_ENVIRONMENT, host_script
from rackwright.plan.change import Job
from rackwright.remote import job_scripts
from rackwright.settings.secret import Secret

JOB = Job("fetch", "fetch something", "echo working\n", secrets={"token": Secret("hf_known")})


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """Replace systemd-run by a program that only reports its call."""
    tools, marker = tmp_path / "bin", tmp_path / "started"
    tools.mkdir()
    for name, script in {"systemd-run": f'echo "$*" >{marker}', "systemctl": "exit 3"}.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    return marker


def start(tmp_path: Path, payload: str) -> subprocess.CompletedProcess[str]:
    places = {"folder": f"{tmp_path}/jobs/fetch", "secrets": f"{tmp_path}/secrets/fetch"}
    script = host_script("job_start", unit="u.service", **places, digest="d", timeout=9, busy=job_scripts.BUSY)
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    return subprocess.run(
        ["sh", "-c", script], input=payload, env={"PATH": path}, capture_output=True, text=True, check=False
    )


def test_a_whole_job_is_started_with_its_secrets_in_files(tmp_path: Path, started: Path) -> None:
    done = start(tmp_path, job_scripts.payload(JOB))
    nonce = (tmp_path / "jobs/fetch/nonce").read_text().strip()
    assert job_scripts.parse_started(done.stdout.splitlines()) == job_scripts.Started(False, nonce)
    assert len(nonce) == 36
    assert nonce not in started.read_text(), "no command line and no environment has it"
    assert (tmp_path / "jobs/fetch/script").read_text() == DOCKER_ENVIRONMENT + JOB.script
    assert (tmp_path / "secrets/fetch/token").read_text() == "hf_known"
    assert (tmp_path / "secrets/fetch/token").stat().st_mode & 0o777 == 0o600
    assert "hf_known" not in started.read_text()


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 0.9])
def test_a_job_that_was_cut_on_its_way_is_not_started(tmp_path: Path, started: Path, part: float) -> None:
    whole = job_scripts.payload(JOB)
    done = start(tmp_path, whole[: int(len(whole) * part)])
    assert done.returncode == 1
    assert "cut while the job arrived" in done.stderr
    assert not started.exists()
    assert not (tmp_path / "secrets/fetch").exists()


def test_a_job_that_systemd_refuses_leaves_no_secret(tmp_path: Path, started: Path) -> None:
    (tmp_path / "bin/systemd-run").write_text("#!/bin/sh\nexit 1\n")
    assert start(tmp_path, job_scripts.payload(JOB)).returncode == 1
    assert not (tmp_path / "secrets/fetch").exists()


ENDING = """\
#!/bin/sh
seconds=$(cat {asked} 2>/dev/null || echo 0)
echo $((seconds + 1)) >{asked}
case "$2$seconds" in --quiet*) exit 3 ;; *[0-2]) echo deactivating ;; *) echo inactive ;; esac
exit 3
"""
"""A unit that ends in a while: it is not active, and systemd starts no other of its name."""


def test_a_job_of_its_name_that_is_ending_is_waited_for(tmp_path: Path, started: Path) -> None:
    (tmp_path / "bin/systemctl").write_text(ENDING.format(asked=tmp_path / "asked"))
    (tmp_path / "bin/systemd-run").write_text(f'#!/bin/sh\n[ "$(cat {tmp_path}/asked)" -ge 4 ] && echo >{started}\n')
    done = start(tmp_path, job_scripts.payload(JOB))
    assert (done.returncode, started.exists()) == (0, True), done.stderr


def test_a_job_is_joined_by_its_aim_or_else_by_its_script() -> None:
    other = Job("fetch", "fetch something", "echo changed\n")
    assert job_scripts.start_script(JOB) != job_scripts.start_script(other)
    assert job_scripts.start_script(replace(JOB, aim="x")) == job_scripts.start_script(replace(other, aim="x"))
    assert job_scripts.start_script(replace(JOB, aim="x")) != job_scripts.start_script(replace(JOB, aim="y"))
