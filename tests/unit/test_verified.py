"""Before a start: models and encodings are what the host has verified, whatever the owner of the folders above them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rackwright.hostside import host_script

FILES = {"config.json": b"{}", "model-1.safetensors": b"weights", "sub dir/a - b.txt": b"text", "ünï.txt": b"x"}


class Model:
    """A model folder that a host has verified, with its record."""

    def __init__(self, home: Path, closed: bool) -> None:
        self.home, self.folder, self.closed = home, home / "models" / "org--m--abc", closed
        for name, content in FILES.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(content)
        if not closed:
            self.given("nobody")
        self.note()

    def note(self) -> None:
        """Write the record as the download does."""
        record = {"folder": str(self.folder), "store": "ext4:1", "files": [self._entry(name) for name in FILES]}
        (self.home / "records").mkdir(exist_ok=True)
        (self.home / "records" / f"{self.folder.name}.json").write_text(json.dumps(record, indent=1))

    def _entry(self, name: str) -> dict[str, Any]:
        status = (self.folder / name).stat()
        sums = {"sha256": hashlib.sha256(FILES[name]).hexdigest(), "blob": None}
        times = {"mtime_ns": status.st_mtime_ns, "ctime_ns": None if self.closed else status.st_ctime_ns}
        return {"path": name, "size": status.st_size, **sums, **times, "inode": status.st_ino}

    def given(self, user: str) -> None:
        subprocess.run(["chown", "-R", user, self.folder], check=True)

    def swapped(self, user: str) -> None:
        """Put another folder in its place, as the owner of the folder above can."""
        moved = self.folder.with_name("mine")
        self.folder.rename(moved)
        shutil.copytree(moved, self.folder)
        self.given(user)

    def start(self) -> tuple[int, str, str]:
        (self.home / "needs").write_text(f"image x@sha256:1\npath {self.folder}\npath {self.home}/encodings\n")
        places = {"records": str(self.home / "records"), "marks": str(self.home / "marks")}
        script = host_script("verified", needs=str(self.home / "needs"), **places)
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(params=[True, False], ids=["root's", "of others"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Model:
    return Model(tmp_path, request.param)


def test_what_is_as_verified_is_not_read(model: Model) -> None:
    assert model.start() == (0, "", "")


def test_a_folder_without_a_record_is_nobodys_business(model: Model) -> None:
    shutil.rmtree(model.home / "records")
    model.swapped("nobody")
    assert model.start() == (0, "", "")


def _edited(model: Model) -> None:
    status = (model.folder / "config.json").stat()
    (model.folder / "config.json").write_bytes(b"[]")
    os.utime(model.folder / "config.json", ns=(status.st_atime_ns, status.st_mtime_ns))
    model.given("nobody")


def _gone(model: Model) -> None:
    (model.folder / "model-1.safetensors").unlink()


def _file_linked(model: Model) -> None:
    shutil.copy(model.folder / "config.json", model.home / "elsewhere")
    (model.folder / "config.json").unlink()
    (model.folder / "config.json").symlink_to(model.home / "elsewhere")


def _linked(model: Model) -> None:
    model.folder.rename(model.home / "elsewhere")
    model.folder.symlink_to(model.home / "elsewhere")


def _other(model: Model) -> None:
    """Another folder of root's, as one that was verified for another model."""
    shutil.rmtree(model.folder)
    model.folder.mkdir()
    (model.folder / "config.json").write_bytes(b"{ }")


def _all_gone(model: Model) -> None:
    shutil.rmtree(model.folder)


SWAPS: dict[Callable[[Model], None], str] = {
    _edited: "config.json has other bytes",
    _gone: "model-1.safetensors is gone",
    _file_linked: "config.json is gone",
    _linked: "is a link",
    _other: "config.json has other bytes",
    _all_gone: "it is not there",
}


@pytest.mark.parametrize("swap", SWAPS, ids=lambda swap: swap.__name__)
def test_a_swap_is_not_served(model: Model, swap: Callable[[Model], None]) -> None:
    swap(model)
    status, _, output = model.start()
    assert status == 1
    if swap is not _other:
        assert SWAPS[swap] in output, output
    assert "run the deploy again" in output


def test_a_file_more_is_a_swap_where_only_root_could_have_added_one(tmp_path: Path) -> None:
    model = Model(tmp_path, closed=True)
    time.sleep(0.02)
    model.swapped("nobody")
    (model.folder / "model-2.safetensors").write_bytes(b"more")
    status, _, output = model.start()
    assert (status, "model-2.safetensors was added" in output) == (1, True)


def test_what_another_host_adds_to_a_share_keeps_nobody_from_serving(tmp_path: Path) -> None:
    model = Model(tmp_path, closed=False)
    time.sleep(0.02)
    (model.folder / "original.bin").write_bytes(b"more")
    assert model.start() == (0, "", "")


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_the_same_bytes_start_whatever_else_differs(model: Model, user: str) -> None:
    model.swapped(user)
    (model.folder / ".nfs0001").write_text("a file that a share keeps while it is open")
    status, output, error = model.start()
    assert (status, error) == (0, "")
    assert ("reading" in output) == (user == "nobody" or not model.closed)


def test_encodings_are_read_text(tmp_path: Path) -> None:
    model = Model(tmp_path, True)
    for folder in ("encodings", "marks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "encodings" / "o200k").write_bytes(b"words")
    (tmp_path / "marks" / "o200k").write_text(f"{hashlib.sha256(b'words').hexdigest()} 1:2:3:4\n")
    assert model.start() == (0, "", "")
    (tmp_path / "encodings" / "o200k").write_bytes(b"Words")
    status, _, output = model.start()
    assert (status, "encodings/o200k is not what this host has verified: it has other bytes" in output) == (1, True)
