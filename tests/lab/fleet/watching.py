"""Clients that ask a fleet all the time: what they saw, and what its run's record says to that."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackwright.record.journal import read_record
from rackwright_lab.hosts.host import Host
from tests.lab.conftest import ROOT, Run
from tests.lab.fleet.load_log import LoadRequest, Span, failed_outside, most_down, read_load, switching


@dataclass(frozen=True)
class Watched:
    """What the clients saw while something was done."""

    path: Path

    @property
    def requests(self) -> list[LoadRequest]:
        """Return every request up to now."""
        return read_load(self.path)


@contextmanager
def loading(hosts: Sequence[Host], rate: float, path: Path) -> Iterator[Watched]:
    """Constant load on every host during a block, requests a second and host; fails when it did not start."""
    path.touch()
    targets = [f"{host.name}=http://{host.address}:8000" for host in hosts]
    words = [sys.executable, "-m", "tests.lab.fleet.load", str(rate), str(path), *targets]
    process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        _until_all_are_asked(len(hosts), path, process)
        yield Watched(path)
        assert process.poll() is None, process.stderr and process.stderr.read()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def _until_all_are_asked(hosts: int, path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while len({one.host for one in read_load(path)}) < hosts:
        assert process.poll() is None, f"the load ended: {process.communicate()[1]}"
        assert time.monotonic() < deadline, "the load did not reach every host"
        time.sleep(0.2)


def record_of(run: Run) -> list[dict[str, Any]]:
    """Read the events of a run, from the record that it named."""
    output_line = next(
        output_line for output_line in run.output.splitlines() if "the record of this run: " in output_line
    )
    return read_record(Path(output_line.rpartition(": ")[2]))


def switches_of(run: Run) -> list[Span]:
    """When each host of a run was switching."""
    return switching(record_of(run))


def assert_nobody_noticed(load: Watched, run: Run, down: int) -> None:
    """No request failed on a host that was not switching, and never were more hosts down than allowed."""
    requests = load.requests
    assert failed_outside(requests, switches_of(run)) == []
    assert most_down(requests) <= down
    assert {request.host for request in requests if not request.wrong} == {request.host for request in requests}
