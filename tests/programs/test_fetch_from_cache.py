"""The download program beside a Hugging Face cache: files that are there are copied, and the others are fetched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rackwright.hostside.fetch_model.cache import cached
from rackwright_lab import faults
from tests.programs.model_hub import SMALL, Hub


def cache_of(hub: Hub, commit: str) -> Path:
    """Make a Hugging Face cache with what was fetched, as the library lays one out; nothing is left in `models`."""
    cached = hub.models.parent / "cache" / f"models--{SMALL.replace('/', '--')}"
    for file in hub.manifest()["files"]:
        blob = cached / "blobs" / (file["blob"] or file["sha256"])
        name = cached / "snapshots" / commit / file["path"]
        for path in (blob, name):
            path.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes((hub.target() / file["path"]).read_bytes())
        name.symlink_to(os.path.relpath(blob, name.parent))
    shutil.rmtree(hub.target())
    faults.forget_requests(hub.state)
    return cached.parent


def test_a_commit_that_a_cache_holds_is_copied_and_not_fetched(hub: Hub) -> None:
    hub.run()
    commit, names = hub.manifest()["commit"], {file["path"] for file in hub.manifest()["files"]}
    hub.cache = cache_of(hub, commit)
    code, output = hub.run()
    assert code == 0, output
    assert hub.fetched() == []
    assert {file["path"] for file in hub.manifest()["files"]} == names
    for path in hub.target().rglob("*"):
        assert not path.is_symlink()
        assert path.is_dir() or path.stat().st_nlink == 1, "a link would be changed with the cache"


def test_what_is_wrong_in_a_cache_or_leads_out_of_it_is_fetched(hub: Hub, tmp_path: Path) -> None:
    hub.run()
    commit, files = hub.manifest()["commit"], hub.manifest()["files"]
    hub.cache = cache_of(hub, commit)
    snapshot = hub.cache / f"models--{SMALL.replace('/', '--')}" / "snapshots" / commit
    wrong, outside, gone = sorted(file["path"] for file in files)[:3]
    sizes = {file["path"]: file["size"] for file in files}
    Path(os.path.realpath(snapshot / wrong)).write_bytes(b"x" * sizes[wrong])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(Path(os.path.realpath(snapshot / outside)).read_bytes())
    (snapshot / outside).unlink()
    (snapshot / outside).symlink_to(elsewhere)
    (snapshot / gone).unlink()
    code, output = hub.run()
    assert code == 0, output
    assert {row["path"].rpartition("/")[2] for row in hub.fetched()} == {wrong, outside, gone}


SHARED = """
import os, sys
from huggingface_hub import snapshot_download
from huggingface_hub.utils import _shared_blobs as store
folder = snapshot_download(sys.argv[1])
blobs = f"{os.environ['HF_HUB_CACHE']}/models--{sys.argv[1].replace('/', '--')}/blobs"
for number, name in enumerate(sorted(os.listdir(blobs))):
    path = f"{blobs}/{name}"
    asked = {"cache_dir": os.environ["HF_HUB_CACHE"], "expected_size": os.stat(path).st_size}
    assert store.publish_blob_to_shared_store(blob_path=path, xet_hash=f"{number:064x}", **asked)
"""
"""What the library does with each file that came by Xet, which the lab's hub does not speak."""


def shared_by_the_library(hub: Hub) -> Path:
    """Make a cache that huggingface_hub itself has filled, with all files in the store that its models share."""
    cache = hub.models.parent / "cache"
    env = {"PATH": os.environ["PATH"], "HF_ENDPOINT": hub.url, "HF_HUB_CACHE": str(cache), "HOME": str(cache.parent)}
    subprocess.run([sys.executable, "-c", SHARED, SMALL], env=env, check=True, capture_output=True)
    faults.forget_requests(hub.state)
    return cache


def test_what_the_librarys_models_share_is_copied_and_not_fetched(hub: Hub) -> None:
    hub.cache = shared_by_the_library(hub)
    assert all(path.is_symlink() for path in hub.cache.glob("models--*/blobs/*"))
    code, output = hub.run()
    assert code == 0, output
    assert hub.fetched() == []
    assert len(hub.manifest()["files"]) > 3
    assert not any(path.is_symlink() for path in hub.target().rglob("*"))


@pytest.mark.parametrize("name", ["ff/{0}", "00/{0}.refs", "00/{0}/{0}", "{0}", "00/short"])
def test_no_other_file_of_a_cache_counts_as_shared(tmp_path: Path, name: str) -> None:
    blob = tmp_path / "blobs" / name.format("0" * 64)
    snapshot = tmp_path / "models--a--b" / "snapshots" / "c" / "file"
    for path in (blob, snapshot):
        path.parent.mkdir(parents=True)
    blob.write_bytes(b"x")
    snapshot.symlink_to(blob)
    assert cached([tmp_path], "a/b", "c", {"path": "file", "size": 1}) is None


def test_a_shared_blob_that_leads_out_of_its_cache_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"x")
    cache, name = tmp_path / "cache", f"00/{'0' * 64}"
    snapshot = cache / "models--a--b" / "snapshots" / "c" / "file"
    for path in (cache / "blobs" / name, snapshot):
        path.parent.mkdir(parents=True)
    (cache / "blobs" / name).symlink_to(tmp_path / "secret")
    snapshot.symlink_to(cache / "blobs" / name)
    assert cached([cache], "a/b", "c", {"path": "file", "size": 1}) is None
