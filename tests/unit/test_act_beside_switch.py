"""A switch and a restart by the watch on one host: the real scripts, with a real lock."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.proof.chat import model_name
from rackwright.concerns.endpoint.switch.job import commit_script
from rackwright.concerns.endpoint.switch.proving import Tried, prove_script
from rackwright.hostside import job_script
from rackwright.paths import STATE, endpoint_of, questions_file
from rackwright.plan.jobstream import Event, JobStream

NONCE = "0b7f3c1e-7f0b-4d57-8a51-6f1f3f2f6f10"
RELEASE = "0123456789ab"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "nonce").write_text(f"{NONCE}\n")
    (folder / "log").write_text("")
    (folder / "events").write_text("")
    return folder


def run(job: Path, script: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "JOB": str(job), "reason": str(job / "reason"), "cause": str(job / "cause")}
    return subprocess.run(["sh"], input=script, env=environment, capture_output=True, text=True, check=False)


def events(job: Path) -> Iterator[Event]:
    for heard in JobStream(NONCE).take(b"", (job / "events").read_bytes()):
        if isinstance(heard, Event):
            yield heard


def waiting(folder: Path, seconds: int) -> str:
    return job_script("await_act", lock=f"{folder}/lock", until=f"{folder}/until", seconds=seconds)


def test_a_job_waits_for_the_watch_and_says_so(tmp_path: Path, job: Path) -> None:
    (tmp_path / "until").write_text("1000 llm\n")
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen(["sh", "-c", waiting(tmp_path, 60)], env={**os.environ, "JOB": str(job)})
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
    assert process.wait(5) == 0
    assert [event.kind for event in events(job)] == ["progress"]
    assert "llm" in next(events(job)).text


def test_a_job_does_not_wait_for_ever(tmp_path: Path, job: Path) -> None:
    (tmp_path / "until").write_text("1000 llm\n")
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert run(job, waiting(tmp_path, 1)).returncode == 1
    assert "rackwright-act@llm" in (job / "reason").read_text()


def test_without_an_act_nothing_is_waited_for(tmp_path: Path, job: Path) -> None:
    assert run(job, waiting(tmp_path, 0)).returncode == 0
    (tmp_path / "lock").touch()
    assert run(job, waiting(tmp_path, 0)).returncode == 0
    assert list(events(job)) == []


def commits(home: Path, job: Path, release: str) -> None:
    (home / "releases" / release).mkdir(parents=True)
    script = commit_script("llm", release, Binding(("GPU-1",)), 2).replace(f"{STATE}/endpoints/llm", str(home))
    found = run(job, script)
    assert (found.returncode, found.stderr) == (0, "")


def test_a_commit_keeps_its_questions_for_root_alone_as_long_as_its_release(tmp_path: Path, job: Path) -> None:
    home = tmp_path / "state/endpoints/llm"
    tried = Tried(RELEASE, Binding(("GPU-1",)), "image", (model_name("http://127.0.0.1:1", "m"),))
    stored = home / "proofs" / RELEASE
    assert questions_file("llm", RELEASE).endswith(f"/endpoints/llm/proofs/{RELEASE}")
    # Nothing answers there, and the questions are in their file anyway.
    assert run(job, prove_script("llm", tried)).returncode != 0
    commits(home, job, RELEASE)
    assert stored.stat().st_mode & 0o777 == 0o600
    assert stored.parent.stat().st_mode & 0o777 == 0o700
    assert stored.read_text() == (job / "proof-llm").read_text()
    assert stored.read_text().startswith("# seconds=")
    for release in ("1" * 12, "2" * 12):
        commits(home, job, release)
    assert not stored.exists()
    assert len(list(stored.parent.iterdir())) == 2


def test_a_commit_ends_what_the_watch_had_given_up(tmp_path: Path, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (job / "systemctl").write_text('#!/bin/sh\necho "$*" >>"$JOB/calls"\n')
    (job / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{job}:{os.environ['PATH']}")
    home, marks, watch = tmp_path / "state/endpoints/llm", tmp_path / "state/marks", tmp_path / "state/watch"
    marks.mkdir(parents=True)
    watch.mkdir()
    for name in ("sick-llm", "watch-llm", "sick-other", "quarantine"):
        (marks / name).touch()
    (watch / "acts-llm").write_text("1 restart failed x\n2 sick - x\n")
    commits(home, job, RELEASE)
    assert (job / "calls").read_text() == "enable --quiet --no-reload rackwright-llm.service\n"
    assert {path.name for path in marks.iterdir()} == {"sick-other", "quarantine"}
    assert [row.split()[1] for row in (watch / "acts-llm").read_text().splitlines()] == ["restart", "sick", "clear"]


def test_the_act_s_unit_is_no_endpoint_s() -> None:
    assert endpoint_of("rackwright-act@.service") is None
    assert endpoint_of("rackwright-act@llm.service") is None
