"""The power goes: what our scripts call written is on the disk, on a real ext4 whose journal is lost in memory."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackwright.hostside import durable_script
from tests.unit.test_trial import ALL_NEW, ALL_OLD, Disk

pytestmark = pytest.mark.lab

EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2
"""What is in memory alone is gone, the journal's newest part too: as without power."""


@dataclass
class PowerlessDisk:
    """A file system of its own that can lose its power."""

    image: Path
    folder: Path

    def mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", self.image, self.folder], check=True)

    def unmount(self) -> None:
        subprocess.run(["umount", self.folder], check=True)

    def cut_power(self) -> None:
        """Lose everything that was not synced, and come up again, from what the image has now.

        From a copy: a lab that boots at that time has this mount in its own namespace too, so the old one stays mounted
        there, shut down, and mounting the same image would only give that one again.
        """
        here = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(here, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(here)
        self.unmount()
        copy = self.image.with_name(f"{self.image.name}-again")
        subprocess.run(["cp", "--sparse=always", self.image, copy], check=True)
        self.image = copy
        self.mount()


@pytest.fixture
def powerless(tmp_path: Path) -> Iterator[PowerlessDisk]:
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as made:
        made.truncate(64 * 2**20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    disk = PowerlessDisk(image, folder)
    disk.mount()
    yield disk
    disk.unmount()


def sync(folder: Path) -> None:
    subprocess.run(["sync", "--file-system", folder], check=True)


def test_a_mount_that_somebody_else_has_too_changes_nothing(powerless: PowerlessDisk) -> None:
    other = subprocess.Popen(["unshare", "--mount", "sleep", "60"])
    try:
        while Path(f"/proc/{other.pid}/ns/mnt").readlink() == Path("/proc/self/ns/mnt").readlink():
            time.sleep(0.01)
        powerless.cut_power()
        (powerless.folder / "written").write_text("afterwards")
    finally:
        other.kill()
        other.wait()


def test_only_what_was_synced_is_there_afterwards(powerless: PowerlessDisk) -> None:
    """The cut itself: a file that is renamed without a sync is gone or empty, so the tests below can fail."""
    sync(powerless.folder)
    script = durable_script("event") + f'\nprintf kept | durable_file "{powerless.folder}/kept"'
    subprocess.run(["sh", "-c", script], check=True)
    lost = powerless.folder / "lost"
    lost.with_suffix(".new").write_text("lost")
    lost.with_suffix(".new").rename(lost)
    powerless.cut_power()
    assert (powerless.folder / "kept").read_text() == "kept"
    assert not lost.exists() or lost.read_text() == ""


def test_a_committed_switch_is_committed_without_power(powerless: PowerlessDisk) -> None:
    disk = Disk(powerless.folder / "host")
    sync(powerless.folder)
    disk.begin()
    assert disk.switch_and_commit() == 0
    powerless.cut_power()
    assert disk.state == ALL_NEW


@pytest.mark.parametrize("cut", [2, 3, 4, 5, 6, 7])
def test_a_switch_that_is_cut_with_the_power_is_taken_back_at_boot(powerless: PowerlessDisk, cut: int) -> None:
    disk = Disk(powerless.folder / "host")
    sync(powerless.folder)
    disk.lay_down()
    disk.switch_and_commit(cut)
    powerless.cut_power()
    assert disk.trial.exists(), "it is there before anything moves"
    assert disk.end("boot") == 0
    assert disk.state == ALL_OLD
