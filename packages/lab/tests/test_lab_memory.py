"""Whether the disks of a lab's hosts may be in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright_lab.machine.memory import has_room

GIB_IN_KB = 1 << 20


@pytest.mark.parametrize(("hosts", "free", "expected"), [(2, 8, True), (2, 7, False), (6, 12, True), (40, 20, False)])
def test_a_lab_lies_in_memory_only_where_its_hosts_leave_enough(
    tmp_path: Path, hosts: int, free: int, expected: bool
) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal: 99999999 kB\nMemAvailable:   {free * GIB_IN_KB} kB\nBuffers: 1 kB\n")
    assert has_room(hosts, meminfo) is expected


def test_a_kernel_that_does_not_say_has_no_room(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 99999999 kB\n")
    assert not has_room(1, meminfo)
