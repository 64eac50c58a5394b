"""A control group a host, so that everything of it can be ended at once, whatever became of its parents."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from rackwright_lab.machine.shell import LabError

MOUNT_POINTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))


def unified_root() -> Path:
    """Where this machine has its cgroup v2 tree. Raises LabError when it has none."""
    for root in MOUNT_POINTS:
        if (root / "cgroup.controllers").exists():
            return root
    raise LabError(
        "this machine has no cgroup v2 tree, which the lab's hosts need: mount -t cgroup2 none /sys/fs/cgroup/unified"
    )


def remove_legacy(tag: str) -> None:
    """Remove what nspawn leaves in the cgroup v1 tree of systemd, on a machine that still has one."""
    legacy = Path("/sys/fs/cgroup/systemd") / tag
    if legacy.is_dir():
        _remove(legacy, time.monotonic() + 5)


def make(tag: str, host: str) -> Path:
    """Make the group of one host or server, with all controllers the tree can hand down, and return its folder."""
    top = unified_root() / tag
    group = top / host
    group.mkdir(parents=True, exist_ok=True)
    for folder in (top.parent, top):
        hand_down(folder)
    return group


def hand_down(folder: Path) -> None:
    """Let the groups right below have all controllers of this one, which then can hold no processes itself."""
    for controller in (folder / "cgroup.controllers").read_text().split():
        try:
            (folder / "cgroup.subtree_control").write_text(f"+{controller}")
        except OSError:
            continue


def members(group: Path) -> list[int]:
    """Return the processes of a group and of all groups below it."""
    found: list[int] = []
    # Groups come and go while this looks; os.walk passes over those that have gone.
    for folder, _, _ in os.walk(group):
        try:
            text = Path(folder, "cgroup.procs").read_text()
        except OSError:
            continue
        found += [int(pid) for pid in text.split() if pid != "0"]
    return found


def end(group: Path, seconds: float = 20.0) -> None:
    """Kill all that runs in a group and remove it. Raises LabError when something will not die."""
    if not group.exists():
        return
    deadline = time.monotonic() + seconds
    while members(group):
        _kill(group)
        if time.monotonic() > deadline:
            raise LabError(f"processes {members(group)} of {group} do not end: look at them with ps -fp PID")
        time.sleep(0.05)
    _remove(group, deadline)


def _kill(group: Path) -> None:
    switch = group / "cgroup.kill"
    if switch.exists():
        switch.write_text("1")
        return
    for pid in members(group):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _remove(group: Path, deadline: float) -> None:
    for folder in [Path(name) for name, _, _ in os.walk(group, topdown=False)]:
        while True:
            try:
                folder.rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:
                # A group stays busy for a moment after its last process has gone.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
