"""Downloads that are begun side by side: in order, under the host's one slot, reported where they are collected."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from rackwright.adapter import connection
from rackwright.plan.change import Job
from rackwright.remote import downloads
from rackwright.remote.downloads import begin, collect, under_way
from rackwright.remote.errors import ConnectionLostError
from rackwright.remote.job_scripts import Ended
from tests.refused import refusal

HELP = Job("hand-on-base", "hand on base", "", code="RW2935", helps=True)
PULL = Job("pull-image", "pull image", "", code="RW2701")
FETCH = Job("model-base", "fetch base", "", code="RW2903", after=(PULL.name,))
SECONDS = 5.0


class Host:
    """Runs jobs that end when a test lets them, and remembers in what order they began."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.status = dict.fromkeys((PULL.name, FETCH.name, HELP.name), 0)
        self.may_begin = threading.Event()
        self.may_begin.set()
        self.may_end = {name: threading.Event() for name in self.status}
        self.starts = threading.Condition()
        self.lost: set[str] = set()
        self.shown: list[str] = []
        logs = {"log": lambda _: None, "log_styled": lambda text, **_: self.shown.append(text)}
        self.host: Any = SimpleNamespace(name="h1", **logs, state=SimpleNamespace())

    def show_job(self, _host: Any, job: Job, show: Callable[[str], None], begun: Callable[[], None]) -> Ended:
        assert job.name != PULL.name or self.may_begin.wait(SECONDS)
        if job.name in self.lost:
            raise ConnectionLostError("the connection was lost (closed)")
        with self.starts:
            self.begun.append(job.name)
            self.starts.notify_all()
        begun()
        show(f"{job.name} says why")
        assert self.may_end[job.name].wait(SECONDS)
        return Ended(self.status[job.name])

    def begin(self, job: Job) -> None:
        begin(self.host, job)

    def until_begun(self, *names: str) -> None:
        with self.starts:
            assert self.starts.wait_for(lambda: set(names) <= set(self.begun), SECONDS), self.begun

    def collect(self) -> dict[str, str]:
        """Return what was collected, with its failure."""
        return {one.job.name: str(one.failure or "") for one in collect(self.host)}


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    found = Host()
    monkeypatch.setattr(downloads, "show_job", found.show_job)
    monkeypatch.setattr(connection, "_arguments", lambda *_: {})
    return found


def test_what_is_begun_goes_on_while_the_next_begins(host: Host) -> None:
    host.may_begin.clear()
    host.begin(PULL)
    host.begin(FETCH)
    time.sleep(0.1)
    assert host.begun == []
    host.may_begin.set()
    host.until_begun(PULL.name, FETCH.name)
    assert host.begun == [PULL.name, FETCH.name], "the host knows what to wait for when the second one arrives"
    for name in host.begun:
        host.may_end[name].set()
    assert host.collect() == {PULL.name: "", FETCH.name: ""}
    assert under_way(host.host) == []
    assert host.collect() == {}, "each is collected once"


def test_a_failure_is_told_where_it_is_collected_under_its_own_name(host: Host) -> None:
    host.status = dict.fromkeys(host.status, 1)  # without its image, the other has failed as well
    host.begin(PULL)
    host.begin(FETCH)
    host.until_begun(PULL.name, FETCH.name)
    for event in host.may_end.values():
        event.set()
    [(job, text)] = host.collect().items()
    assert (job, text.splitlines()[1:]) == (PULL.name, ["pull-image says why"])
    refusal(text, "RW2701", "pull image: ", "status 1")


def test_what_must_come_after_a_lost_download_is_not_begun(host: Host) -> None:
    host.lost.add(PULL.name)
    host.begin(PULL)
    host.begin(FETCH)
    output = host.collect()
    assert output.keys() == {PULL.name}, "one failure is reported once"
    assert "the connection was lost" in output[PULL.name]
    assert host.begun == []


def test_a_mistake_of_ours_is_not_swallowed(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Ended:
        raise ZeroDivisionError

    monkeypatch.setattr(downloads, "show_job", broken)
    host.begin(PULL)
    with pytest.raises(ZeroDivisionError):
        host.collect()


def test_what_is_for_other_hosts_and_fails_is_reported_and_fails_no_host(host: Host) -> None:
    host.status[HELP.name] = 1
    host.may_end[HELP.name].set()
    host.begin(HELP)
    assert host.collect() == {HELP.name: ""}
    [text] = host.shown
    refusal(text, "RW2935", HELP.title, "status 1")
    assert f"{HELP.name} says why" in text
