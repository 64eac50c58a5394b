"""A job that hands something on is released once no host of its run will take it, however those ended."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rackwright.adapter.run_context import part_of
from rackwright.hostside import host_script
from rackwright.plan.change import Job
from rackwright.remote import downloads, jobs
from rackwright.remote.errors import ConnectionLostError
from rackwright.remote.job_scripts import Ended
from rackwright.remote.transfers import Transfers

KEEPER = Job("hand-on-m", "hand m on", "", helps=True, waits=True, transfer="m", takers=("h2", "h3"))
FETCH = Job("model-m", "fetch m", "", transfer="m")


def hosts(count: int = 3) -> list[Any]:
    state = SimpleNamespace()
    made = [SimpleNamespace(name=f"h{number + 1}", state=state) for number in range(count)]
    state.active_hosts = made
    return made


def test_it_is_over_once_each_taker_has_ended_its_part_or_is_out_of_the_run() -> None:
    first, second, third = hosts()
    transfers = part_of(first.state, Transfers)
    assert not transfers.is_over(first, KEEPER)
    transfers.end("h2", "m")
    transfers.end("h3", "another")
    transfers.end("h3", "")
    assert not transfers.is_over(first, KEEPER)
    transfers.end("h3", "m")
    assert transfers.is_over(first, KEEPER)

    first, second, third = hosts()
    transfers = part_of(first.state, Transfers)
    first.state.active_hosts.remove(second)
    assert not transfers.is_over(first, KEEPER)
    transfers.failed.add(third.name)
    assert transfers.is_over(first, KEEPER)
    assert not transfers.is_over(first, FETCH), "a job that no one takes from hands nothing on"


class Remote:
    """Answers looks at a job; `looks` are what happens before each of them, and the job ends after the last."""

    def __init__(self, looks: list[Any]) -> None:
        self.looks, self.released = looks, 0

    def __call__(self, _host: Any, command: str, **_: Any) -> tuple[bool, Any]:
        if "released=released" in str(command):
            self.released += 1
            return True, SimpleNamespace(stdout_lines=[])
        self.looks.pop(0)()
        running = "yes" if self.looks else "no"
        rows = [f"running={running}", "log=", "events=", "status=" + ("" if self.looks else "0")]
        return True, SimpleNamespace(stdout_lines=rows)


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_start", lambda *_: "nonce")
    monkeypatch.setattr(jobs, "note", lambda *_, **__: None)
    monkeypatch.setattr(jobs, "command_of", lambda step: step.script)
    monkeypatch.setattr(downloads, "beside", lambda _host, work: work)


@pytest.mark.usefixtures("quiet")
def test_a_job_is_released_once_when_its_takers_ended_and_its_own_end_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *_ = hosts()
    transfers = part_of(first.state, Transfers)
    counts: list[int] = []
    remote = Remote([])
    remote.looks = [
        lambda: transfers.end("h2", "m"),
        lambda: counts.append(remote.released),
        lambda: transfers.end("h3", "m"),
        lambda: counts.append(remote.released),
        lambda: counts.append(remote.released),
    ]
    monkeypatch.setattr(jobs, "remote", remote)
    assert jobs.follow_job(first, KEEPER, lambda _: None).status == 0
    assert counts == [0, 1, 1]
    assert ("h1", "m") in transfers.ended


@pytest.mark.usefixtures("quiet")
def test_a_download_that_was_never_begun_has_ended_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    _, second, _ = hosts()

    def lost(*_: Any) -> Ended:
        raise ConnectionLostError("the connection was lost (closed)")

    monkeypatch.setattr(downloads, "show_job", lost)
    downloads.begin(second, FETCH)
    assert [one.job for one in downloads.collect(second)] == [FETCH]
    assert ("h2", "m") in part_of(second.state, Transfers).ended


@pytest.mark.parametrize(("nonce", "gets_it"), [("mine", True), ("other", False)])
def test_only_the_runs_own_job_is_released(tmp_path: Path, nonce: str, gets_it: bool) -> None:
    for name in ("job", "secrets"):
        (tmp_path / name).mkdir()
    (tmp_path / "job/nonce").write_text(f"{nonce}\n")
    values = {"folder": f"{tmp_path}/job", "secrets": f"{tmp_path}/secrets", "nonce": "mine", "released": "released"}
    script = host_script("job_release", **values)
    subprocess.run(["sh", "-c", script], check=True)
    assert (tmp_path / "secrets/released").exists() == gets_it
    subprocess.run(["sh", "-c", f"rm -r {tmp_path}/secrets; {script}"], check=True)
    assert not (tmp_path / "secrets").exists(), "one that has ended gets nothing"
