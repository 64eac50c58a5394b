from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.image import LocalImage, SeenImages
from rackwright.concerns.models import SeenModel, SeenModels
from rackwright.messages import SettingsError
from rackwright.plan.concern import HostReading
from rackwright.settings.host_settings import HostSettings
from rackwright.sources.lockfile import (
    FILE,
    Lock,
    LockedFile,
    LockedModel,
    joined,
    load_lock,
    pinned,
    recorded,
    write_lock,
)

IMAGE = "nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0"
OTHER_IMAGE = "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc1"
ONE, TWO = "sha256:" + "1" * 64, "sha256:" + "2" * 64
COMMIT, OTHER = "a" * 40, "b" * 40
BASE = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b", "exclude": ["original/*"]}
DRAFT = {"repository": "nvidia/gpt-oss-120b-Eagle3", "mount": "/config/models/eagle"}
MODEL = LockedModel(commit=COMMIT, files={"config.json": LockedFile(size=2, sha256="0" * 64)})
LOCK = Lock({IMAGE: ONE}, {"openai/gpt-oss-120b@main": MODEL})


def locked(files: str) -> str:
    """Write a lock file of one model with these files."""
    return f"version: 1\nmodels: {{a/b@main: {{commit: {COMMIT}, files: {{{files}}}}}}}".replace("SHA", "ab" * 32)


def host(**keys: Any) -> HostSettings:
    return HostSettings.model_validate({"model": BASE, "image": IMAGE, **keys})


def test_a_lock_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_lock(tmp_path, LOCK)
    assert load_lock(tmp_path) == LOCK
    assert (tmp_path / FILE).read_text().startswith("# Written by")


def test_a_site_without_a_lock_has_an_empty_one(tmp_path: Path) -> None:
    assert load_lock(tmp_path) == Lock()
    assert pinned(host(), Lock()) == host()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: [", "is not a lock file"),
        ("version: 1\nimags: {}", "imags"),
        (f"version: 1\nimages: {{{IMAGE!r}: latest}}", "no digest or commit at nvcr.io"),
        ("version: 1\nmodels: {a/b@main: {commit: main}}", "no digest or commit at a/b@main"),
        ("version: 2", "version 2 is unknown"),
        ("version: true", "version: Input should be a valid integer"),
        (f"version: 1\nimages: {{{IMAGE!r}: {ONE}, {IMAGE!r}: {ONE}}}", "line 2: comes twice"),
        (f"version: 1\nimages: {{latest: {ONE}}}", "images.latest: no image"),
        (locked("../../etc/x: {size: 1, sha256: SHA}"), "files.../../etc/x: no name of a file"),
        (locked("/etc/x: {size: 1, sha256: SHA}"), "files./etc/x: no name of a file"),
        (locked('"a\\nb": {size: 1, sha256: SHA}'), r"files.a\\nb: no name of a file"),
        (locked('"a\\u202eb": {size: 1, sha256: SHA}'), "no name of a file"),
        (locked(".rackwright/x: {size: 1, sha256: SHA}"), "no name of a file"),
        (locked(f"a: {{size: {1 << 63}, sha256: SHA}}"), "files.a.size: Input should be less than"),
        (locked("a: {size: -1, sha256: SHA}"), "files.a.size: Input should be greater than"),
        (locked("a: {size: '1', sha256: SHA}"), "files.a.size: Input should be a valid integer"),
        (locked("a: {size: true, sha256: SHA}"), "files.a.size: Input should be a valid integer"),
        (locked("a: {size: 1, sha256: abc}"), "files.a.sha256: String should match"),
        (locked("a: {size: 1, sha256: 12}"), "files.a.sha256: Input should be a valid string"),
        (locked("a: {size: 1}"), "files.a: neither sha256 nor blob"),
        (locked("a: {size: 1, sha256: SHA, md5: x}"), "files.a.md5: unknown key"),
        (locked("a: [1]"), "files.a: Input should be"),
        (locked("1: {size: 1, sha256: SHA}"), "files"),
        (locked("a: {size: 1, sha256: SHA}, a: {size: 2, sha256: SHA}"), "files.a, line 2: comes twice"),
        (locked("a: {size: 1, sha256: SHA}").replace("a/b@main", "a/b"), "models.a/b: no model"),
        ("version: 1\nversion: 1", "version, line 1: comes twice"),
        ("[" * 5000, "is not a lock file"),
        ("just text", "is not a lock file: it must have keys"),
        ("", "is not a lock file: it must have keys"),
    ],
)
def test_a_broken_lock_is_an_error_that_says_where(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(SettingsError, match=message) as caught:
        load_lock(tmp_path)
    assert str(tmp_path / FILE) in str(caught.value)
    assert f"next: git checkout {FILE}" in str(caught.value)


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.write_bytes(b"\xff\xfe")])
def test_a_lock_that_is_no_text_is_an_error_and_never_opened_for_good(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    make(tmp_path / FILE)
    with pytest.raises(SettingsError, match=f"{tmp_path}/{FILE} is not a lock file: "):
        load_lock(tmp_path)


def test_the_lock_pins_what_the_settings_leave_open() -> None:
    found = pinned(host(draft=DRAFT), LOCK).all_endpoints["llm"]
    assert found.image_digest == ONE
    assert found.model is not None
    assert found.draft is not None
    assert (found.model.revision, found.model.exclude) == (COMMIT, ("original/*",))
    assert found.draft.revision == "main"


def test_what_the_settings_say_wins() -> None:
    found = pinned(host(image_digest=TWO, model={**BASE, "revision": OTHER}), LOCK).all_endpoints["llm"]
    assert found.image_digest == TWO
    assert found.model is not None
    assert found.model.revision == OTHER


def test_each_endpoint_gets_its_own_pins() -> None:
    endpoints = {"a": {"port": 8000}, "b": {"port": 8001, "image": OTHER_IMAGE, "model": DRAFT}}
    found = pinned(host(endpoints=endpoints), LOCK).all_endpoints
    assert found["a"].image_digest == ONE
    assert found["b"].image_digest is None
    assert found["a"].model is not None
    assert found["b"].model is not None
    assert (found["a"].model.revision, found["b"].model.revision) == (COMMIT, "main")


def reading(digest: str = ONE, changed: tuple[str, ...] = ()) -> HostReading:
    image = LocalImage("nvcr.io/nvidia/tensorrt-llm/release", "1.1.0rc0", digest)
    model = SeenModel(
        path=f"/srv/models/openai--gpt-oss-120b--{COMMIT[:12]}",
        repository="openai/gpt-oss-120b",
        revisions=frozenset({"main"}),
        commit=COMMIT,
        include=frozenset(),
        exclude=frozenset({"original/*"}),
        fetched=1,
        size=2,
        changed=changed,
        pinned_files={"config.json": (2, "0" * 64)},
    )
    return HostReading({"image": SeenImages(True, (image,), {}), "models": SeenModels((model,), frozenset())})


def test_what_a_host_has_becomes_the_lock() -> None:
    assert recorded(host(), reading()) == LOCK


def test_a_damaged_model_is_not_locked() -> None:
    assert recorded(host(), reading(changed=("config.json",))).models == {}


def test_hosts_that_differ_are_named() -> None:
    assert joined([("h1", LOCK), ("h2", LOCK)]) == LOCK
    with pytest.raises(SettingsError, match=f"{ONE} on h1 and {TWO} on h2"):
        joined([("h1", LOCK), ("h2", Lock({IMAGE: TWO}))])


def test_two_hosts_with_other_bytes_at_one_commit_are_an_error() -> None:
    name = next(iter(LOCK.models))
    pin = LockedFile(size=2, sha256="1" * 64)
    other = Lock(LOCK.images, {name: LockedModel(commit=COMMIT, files={"config.json": pin})})
    with pytest.raises(SettingsError, match=r"config\.json .*0{12} on h1 .*1{12} on h2"):
        joined([("h1", LOCK), ("h2", other)])
    by_blob = LockedFile(size=2, blob="2" * 40)
    agreed = Lock(LOCK.images, {name: LockedModel(commit=COMMIT, files={"config.json": by_blob})})
    joined([("h1", LOCK), ("h2", agreed)])  # a hash of another kind contradicts nothing


def test_a_lock_file_that_is_a_broken_link_or_large_pins_nothing_unseen(tmp_path: Path) -> None:
    path = tmp_path / "rackwright.lock.yml"
    path.symlink_to(path.name)
    with pytest.raises(SettingsError, match="RW0916"):
        load_lock(tmp_path)
    path.unlink()
    path.write_text("# long\n" * 1_000_000)
    with pytest.raises(SettingsError, match="RW0916"):
        load_lock(tmp_path)
