"""Programs that fetch, verify and hand on have idle I/O in all of their threads: an endpoint's own comes first."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from collections.abc import Iterator
from pathlib import Path

from rackwright.hostside.quiet_disk import NICE
from rackwright_lab import faults
from tests.programs.hand_on_hosts import MIB, Fleets, content, fleets, program
from tests.programs.model_hub import BASE, Hub, hub, server

__all__ = ["fleets", "hub", "program", "server"]

IOPRIO_GET = {"x86_64": 252, "aarch64": 31}[platform.machine()]
IDLE = 3
"""IOPRIO_CLASS_IDLE of linux/ioprio.h."""


def family(process: int) -> Iterator[int]:
    """Yield a process and those that it has started."""
    yield process
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from family(int(child))


def classes(process: int) -> set[int]:
    """Return the I/O classes of all threads of a process and its children."""
    threads = [int(task.name) for one in family(process) for task in Path(f"/proc/{one}/task").iterdir()]
    found = [ctypes.CDLL(None).syscall(IOPRIO_GET, 1, thread) for thread in threads]
    return {one >> 13 for one in found if one >= 0}  # a thread that has ended has none


def test_this_test_itself_is_not_idle() -> None:
    assert IDLE not in classes(os.getpid())


def test_hosts_that_take_and_hand_on_are_idle(fleets: Fleets) -> None:
    fleet = fleets(2, {"model": content(6 * MIB)}, rate=2 * MIB)
    for host in fleet.hosts:
        host.start()
    fleet.hosts[1].wait_for_bytes(2 * MIB)
    for host in fleet.hosts:
        assert host.process
        assert classes(host.process.pid) == {IDLE}
        assert os.getpriority(os.PRIO_PROCESS, host.process.pid) >= NICE


def test_the_download_program_is_idle_while_it_fetches(hub: Hub) -> None:
    faults.set_fault(hub.state, "slow", path="*cdn*", value=1 << 20)
    process = hub.start(BASE)
    try:
        hub.wait_for_bytes(1 << 18)
        assert classes(process.pid) == {IDLE}
        assert all(os.getpriority(os.PRIO_PROCESS, one) >= NICE for one in family(process.pid))
    finally:
        process.kill()
        process.communicate(timeout=60)


def test_the_download_program_is_idle_while_it_verifies_what_is_here(hub: Hub) -> None:
    assert hub.run(BASE)[0] == 0
    for file in hub.target().glob("*.safetensors"):
        os.utime(file)
    process = hub.start(BASE)
    try:
        assert process.stdout
        assert any("verifying" in row for row in process.stdout)
        os.kill(process.pid, signal.SIGSTOP)
        assert classes(process.pid) == {IDLE}
    finally:
        process.kill()
        process.communicate(timeout=60)
