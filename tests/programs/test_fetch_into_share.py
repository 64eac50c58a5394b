"""The download program and stores that hosts share: read-only, filled by two at once, root mapped to another user."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rackwright_lab import faults
from rackwright_lab.hosts import share
from rackwright_lab.machine import prerequisites
from rackwright_lab.machine.progress import Progress
from tests import texts
from tests.lab.products import in_proof
from tests.programs.model_hub import BASE, Hub, stores_in


@pytest.fixture
def read_only(hub: Hub) -> Iterator[Callable[[], None]]:
    """Mounts the folder of all models read-only, as a store that other hosts fill."""

    def mount() -> None:
        subprocess.run(["mount", "--bind", hub.models, hub.models], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", hub.models], check=True)

    yield mount
    while subprocess.run(["umount", hub.models], check=False, capture_output=True).returncode == 0:
        pass


def forget(hub: Hub) -> None:
    """Make this host forget what it has verified."""
    for record in hub.manifests.iterdir():
        record.unlink()
    faults.forget_requests(hub.state)


def test_a_read_only_store_that_is_whole_is_verified_once_and_used(hub: Hub, read_only: Callable[[], None]) -> None:
    hub.run()
    commit = hub.manifest()["commit"]
    forget(hub)
    read_only()
    code, output = hub.run()
    assert code == 0, output
    assert texts.READ_ONLY_WHOLE.format(folder=hub.target()) in output
    assert hub.fetched() == []
    again, output = hub.run(commit=commit)
    assert (again, "verifying" in output) == (0, False)


def test_a_read_only_store_that_lacks_something_is_refused_in_words(hub: Hub, read_only: Callable[[], None]) -> None:
    hub.run()
    victim = hub.target() / "config.json"
    victim.write_bytes(b"x" * victim.stat().st_size)
    read_only()
    code, output = hub.run()
    assert code == 1
    assert f"{texts.LACKS.format(folder=hub.models, target=hub.target())}1 of" in output
    assert texts.FILL_ELSEWHERE in output
    assert "Traceback" not in output


def test_two_hosts_that_share_a_store_verify_it_once_each(hub: Hub) -> None:
    hub.run()
    commit = hub.manifest()["commit"]
    other = hub.models.parent / "other"
    other.mkdir()
    code, output = hub.run(manifests=str(other))
    assert (code, "verifying" in output) == (0, True)
    for records in (hub.manifests, other):
        code, output = hub.run(commit=commit, manifests=str(records))
        assert (code, "verifying" in output) == (0, False), output


def test_two_hosts_never_fill_a_share_at_once(hub: Hub, squashed: Path) -> None:
    """Each has a mount of its own; what keeps them apart is the share's lock."""
    other = Hub(hub.url, hub.state, hub.models.parent / "other" / "models", hub.program)
    for folder in (other.models, other.manifests):
        folder.mkdir(parents=True)
    share.mount(squashed, other.models)
    try:
        faults.set_fault(hub.state, "slow", path="*cdn*", value=1 << 20)
        first = hub.start(BASE)
        hub.wait_for_bytes(1 << 16)
        second = other.start(BASE)
        assert second.stdout is not None
        assert any(texts.WAITS_FOR_FETCH.partition("{")[0] in row for row in second.stdout)
        faults.clear(hub.state)
        assert first.wait(60) == 0
        remaining, _ = second.communicate(timeout=60)
        assert second.returncode == 0, remaining
    finally:
        share.unmount(other.models)
    fetched = [row["path"] for row in hub.fetched() if row["status"] in (200, 206)]
    assert len(fetched) == len(set(fetched)), fetched


# -- a share whose server maps root to nobody


@pytest.fixture(scope="session")
def _bindfs() -> None:
    """Return the server of such shares: it comes with the other programs of the lab."""
    prerequisites.ensure(Progress(sys.stderr))


@pytest.fixture
def squashed(hub: Hub, _bindfs: None) -> Iterator[Path]:
    """Mount the folder of all models as such a share; the value is what its server exports."""
    export = hub.models.parent / "export"
    export.mkdir()
    share.mount(export, hub.models)
    yield export
    share.unmount(hub.models)


def test_a_share_on_which_root_is_nobody_is_filled_and_verified_once(hub: Hub, squashed: Path) -> None:
    code, output = hub.run()
    assert code == 0, output
    commit = hub.manifest()["commit"]
    assert (hub.target() / "config.json").owner() == "nobody"
    faults.forget_requests(hub.state)
    code, output = hub.run(commit=commit)
    assert (code, "verifying" in output) == (0, False), output
    assert faults.requests(hub.state) == []


@in_proof("test_fetch_model.py reads a touched file again, and another test here fills such a share")
def test_what_others_write_there_is_seen_whatever_time_they_give_it(hub: Hub, squashed: Path) -> None:
    hub.run()
    manifest = hub.manifest()
    victim = max(manifest["files"], key=lambda file: int(file["size"]))
    weights = squashed / hub.target().name / victim["path"]
    before = weights.stat()
    with weights.open("r+b") as handle:
        handle.write(b"x" * 100)
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = weights.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    time.sleep(1.1)  # the mount keeps what it knows of a file for a second
    code, output = hub.run(commit=manifest["commit"])
    assert code == 0, output
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == victim["sha256"]


@in_proof("test_fetch_model.py resumes at the byte, and another test here fills such a share")
def test_a_cut_download_there_goes_on_and_reads_no_file_twice(hub: Hub, squashed: Path) -> None:
    faults.set_fault(hub.state, "slow", path="*cdn*", value=1 << 20)
    process = hub.start(BASE)
    hub.wait_for_bytes(1 << 16)
    assert [notes.read_text() for notes in hub.manifests.glob("*.partial")] != []
    process.send_signal(signal.SIGKILL)
    process.wait()
    faults.clear(hub.state)
    code, output = hub.run(BASE)
    assert code == 0, output
    assert ".partial/" not in output, "what it had verified counts"
    assert list(hub.manifests.glob("*.partial")) == []


@in_proof("a read-only store that is whole is used by a test here")
def test_a_share_that_refuses_writes_is_used_when_it_is_whole(hub: Hub, squashed: Path) -> None:
    hub.run()
    commit = hub.manifest()["commit"]
    forget(hub)
    share.refuse_writes(squashed)
    time.sleep(1.1)
    code, output = hub.run()
    assert code == 0, output
    assert texts.READ_ONLY_WHOLE.format(folder=hub.target()) in output
    assert hub.fetched() == []
    code, output = hub.run(commit=commit)
    assert (code, "verifying" in output) == (0, False), output


@in_proof("a read-only store that lacks something is refused by a test here")
def test_a_share_that_refuses_writes_and_lacks_something_is_refused_in_words(hub: Hub, squashed: Path) -> None:
    hub.run()
    commit = hub.manifest()["commit"]
    (squashed / hub.target().name / "config.json").unlink()
    share.refuse_writes(squashed)
    time.sleep(1.1)
    for folder in (None, "elsewhere"):
        code, output = hub.run(commit=commit, directory=folder)
        assert code == 1
        assert texts.READ_ONLY.format(folder=hub.models) in output
        assert texts.FILL_ELSEWHERE in output
        assert "Traceback" not in output


# -- a record is of one store


def test_a_record_says_nothing_of_another_share_over_the_same_path(hub: Hub) -> None:
    """The other one has the same names, sizes, times and inodes, and other bytes."""
    with tmpfs("server:/one", hub.models):
        hub.run()
        manifest, name = hub.manifest(), hub.target().name
        moved = hub.models.parent / "kept"
        shutil.copytree(hub.models, moved)
    weights = max(manifest["files"], key=lambda file: int(file["size"]))
    with tmpfs("server:/two", hub.models):
        (hub.models / name).mkdir()
        for file in sorted(manifest["files"], key=lambda file: int(file["inode"])):
            path = hub.models / name / file["path"]
            with_inode(file["inode"], path)
            path.write_bytes(b"x" * file["size"] if file is weights else (moved / name / file["path"]).read_bytes())
            os.utime(path, ns=(0, file["mtime_ns"]))
            assert (path.stat().st_size, path.stat().st_ino) == (file["size"], file["inode"])
        code, output = hub.run(commit=manifest["commit"])
        assert code == 0, output
        found = hashlib.sha256((hub.models / name / weights["path"]).read_bytes()).hexdigest()
        assert found == weights["sha256"]


@contextmanager
def tmpfs(source: str, target: Path) -> Iterator[None]:
    """Mount a file system that counts its inodes from 1 at this path."""
    subprocess.run(["mount", "-t", "tmpfs", source, target], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", target], check=True)


def with_inode(number: int, path: Path) -> None:
    """Make a file with an inode that a tmpfs has not come to yet."""
    path.touch()
    while path.stat().st_ino < number:
        path.unlink()
        path.touch()


def test_a_disk_has_the_same_name_however_it_is_found(hub: Hub) -> None:
    """After a reboot its device may be another one; another disk is another store, at the same device too."""
    image, copy, other = (hub.models.parent / name for name in ("image", "copy", "other"))
    for disk in (image, other):
        subprocess.run(["truncate", "-s", "8M", disk], check=True)
        subprocess.run(["mkfs.ext4", "-q", disk], check=True)
    shutil.copyfile(image, copy)
    names = []
    for disk in (image, copy, other):
        subprocess.run(["mount", "-o", "loop", disk, hub.models], check=True)
        names.append(stores_in(hub.models).split(b"\0")[1])
        subprocess.run(["umount", hub.models], check=True)
    assert names[0].startswith(b"ext4:")
    assert names[0] == names[1] != names[2]


@pytest.mark.usefixtures("_bindfs")
def test_what_an_ordinary_user_mounts_is_no_store(hub: Hub, tmp_path: Path) -> None:
    """It says what they like of its files, and of itself."""
    (tmp_path / "theirs").mkdir()
    subprocess.run(
        ["setpriv", "--ruid=1000", "bindfs", "-o", "allow_other", tmp_path / "theirs", hub.models], check=True
    )
    try:
        assert stores_in(hub.models).split(b"\0")[1] == b""
        code, output = hub.run()
        assert code == 0, output
        code, output = hub.run(commit=hub.manifest()["commit"])
        assert (code, "verifying" in output) == (0, True), output
    finally:
        share.unmount(hub.models)
