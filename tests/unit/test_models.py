from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.image import SeenImages
from rackwright.concerns.models import (
    MANIFEST,
    MODELS,
    SeenModels,
    commit_of,
    hash_changes,
    host_path,
    remove_script,
    sources_of,
)
from rackwright.concerns.models import concern as models_module
from rackwright.concerns.preflight.concern import fetch_of
from rackwright.hostside import store_functions
from rackwright.plan import reading
from rackwright.plan.change import Job, Owned, Refuse
from rackwright.plan.concern import HostReading, ResolvedNames, parse_all
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret

IMAGE_DIGEST = "sha256:" + "1" * 64
COMMIT, NEWER = "a" * 40, "b" * 40
BASE = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b", "exclude": ["original/*"]}
DRAFT = {"repository": "nvidia/gpt-oss-120b-Eagle3", "mount": "/config/models/eagle"}


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


def host(folder: Path, image_digest: str | None = IMAGE_DIGEST, **keys: Any) -> HostSettings:
    return HostSettings.model_validate(
        {"model": BASE, "image_digest": image_digest, "models": {"folder": str(folder)}, **keys}
    )


def model_folder(models: Path, commit: str = COMMIT, folder: str = "", fetched: int = 1, **other: Any) -> Path:
    """Make a model folder as the download leaves it."""
    path = models / (folder or f"openai--gpt-oss-120b--{commit[:12]}")
    (path / "sub dir").mkdir(parents=True)
    names = ("config.json", "sub dir/weights of it.safetensors")
    for name in names:
        (path / name).write_text(name)
    files = [file_entry(path, name) for name in names]
    manifest = {
        "version": 1,
        "repository": "openai/gpt-oss-120b",
        "revisions": ["main"],
        "commit": commit,
        "include": [],
        "exclude": ["original/*"],
        "fetched": fetched,
        "files": files,
    }
    (path / MANIFEST).write_text(json.dumps(manifest | other))
    note(path)
    return path


def note(path: Path) -> None:
    """Keep the host's own record of what it has verified, as the download leaves it."""
    records = path.parent.parent / "manifests"
    records.mkdir(exist_ok=True)
    manifest = json.loads((path / MANIFEST).read_text())
    noted = {**manifest, "folder": str(path), "store": store_of(path)}
    (records / f"{path.name}.json").write_text(json.dumps(noted))


@pytest.mark.parametrize(
    ("store", "shared"),
    [
        ("nfs4:filer:/models", True),
        ("fuse.bindfs:/export", True),
        ("fuse:weka", True),
        ("lustre:10.0.0.1@o2ib:/scratch", True),
        ("ext4:0fc63daf-8483-4772-8e79-3d69d8477de4", False),
        ("zfs:tank/nfs4", False),
        ("", False),
    ],
)
def test_a_share_is_known_by_the_kind_of_its_file_system(store: str, shared: bool) -> None:
    assert models_module.is_share(store) is shared


def store_of(path: Path) -> str:
    """Return the store that a folder is on, by the host's own name for it."""
    words = ["sh", "-c", store_functions() + 'store_of "$1"', "-", str(path)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@pytest.fixture(autouse=True)
def _digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models_module, "MANIFESTS", str(tmp_path / "manifests"))


def file_entry(folder: Path, name: str) -> dict[str, Any]:
    status = (folder / name).stat()
    stamp = {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "inode": status.st_ino, "ctime_ns": None}
    return {"path": name, "sha256": "0" * 64, "blob": None, **stamp}


IMAGES = {"image": SeenImages(True, (), {})}


def look(settings: HostSettings) -> HostReading:
    script = reading.script({"models": MODELS.read(settings)})
    lines = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()
    parsed = parse_all([MODELS], reading.parse(lines, ["models"]))[MODELS]
    return HostReading({"models": parsed, **IMAGES})


def pending(settings: HostSettings) -> list[Any]:
    return MODELS.pending(settings, look(settings))


def test_a_bare_host_fetches_every_model_once_text(models: Path) -> None:
    endpoints = {"a": {"port": 8000}, "b": {"port": 8001}}
    base, draft = pending(host(models, draft=DRAFT, endpoints=endpoints))
    assert base.what.startswith("fetch openai/gpt-oss-120b at main into")
    assert draft.what.startswith("fetch nvidia/gpt-oss-120b-Eagle3 at main into")
    assert isinstance(base.steps[0], Job)
    assert base.owns == (Owned("model", f"{models}/openai--gpt-oss-120b--*"),)


def test_a_missing_model_weighs_what_the_lock_file_lists_of_it(models: Path) -> None:
    files = [{"path": name, "size": size, "sha256": "0" * 64} for name, size in (("config.json", 3), ("b", 4))]
    (missing,) = pending(host(models, model={**BASE, "revision": COMMIT, "files": files}))
    found = fetch_of(MODELS.name, missing)
    assert found is not None
    assert (found.size, found.exact) == (7, False), "a run that was cut may have left some of it"
    (without,) = pending(host(models, model={**BASE, "repository": "some/model"}))
    found = fetch_of(MODELS.name, without)
    assert found is not None
    assert found.size == 0


def test_a_complete_model_needs_nothing(models: Path) -> None:
    path = model_folder(models)
    settings = host(models)
    assert pending(settings) == []
    assert settings.model is not None
    assert commit_of(settings.model, look(settings)) == COMMIT
    assert host_path(settings, settings.model, COMMIT) == str(path)


@pytest.mark.parametrize("harm", ["content", "time", "gone", "other inode"])
def test_each_change_of_a_file_is_seen_text(models: Path, harm: str) -> None:
    file = model_folder(models) / "sub dir/weights of it.safetensors"
    before = file.stat()
    if harm == "content":
        file.write_text("longer than it was, by far, and not the same")
    elif harm == "time":
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    elif harm == "gone":
        file.unlink()
    else:
        copy = file.with_name("copy")
        copy.write_bytes(file.read_bytes())
        os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
        copy.replace(file)
    (change,) = pending(host(models))
    assert "put openai/gpt-oss-120b at main right" in change.what
    assert "sub dir/weights of it.safetensors" in change.why
    assert json.loads(_spec(change.steps[0]))["commit"] == COMMIT


def _spec(job: Job) -> str:
    return subprocess.run(
        ["sh", "-c", job.script.split("# Fetch one model")[0] + 'printf %s "$spec"'],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_a_manifest_that_cannot_be_read_counts_as_none(models: Path) -> None:
    model_folder(models, folder="mine")
    (models.parent / "manifests" / "mine.json").write_text("{")
    (change,) = pending(host(models, model={**BASE, "directory": "mine"}))
    assert "was not made by Rackwright" in change.why
    assert change.owns == ()


def test_the_text_of_other_patterns_that_complete_the_folder(models: Path) -> None:
    model_folder(models)
    (change,) = pending(host(models, model={**BASE, "exclude": []}))
    assert "the file patterns are other ones" in change.why


def test_the_lock_files_commit_decides_the_folder(models: Path) -> None:
    model_folder(models)
    (change,) = pending(host(models, model={**BASE, "revision": NEWER}))
    assert f"openai--gpt-oss-120b--{NEWER[:12]}" in change.what
    model_folder(models, NEWER, revisions=[NEWER])
    assert pending(host(models, model={**BASE, "revision": NEWER})) == []


def test_a_branch_stays_where_it_was_last_asked_for(models: Path) -> None:
    model_folder(models, fetched=1)
    model_folder(models, NEWER, fetched=2)
    settings = host(models)
    assert settings.model is not None
    assert commit_of(settings.model, look(settings)) == NEWER


def test_a_taken_folder_is_not_touched(models: Path) -> None:
    model_folder(models, folder="mine")
    (change,) = pending(host(models, model={**BASE, "directory": "mine", "revision": NEWER}))
    assert isinstance(change.steps[0], Refuse)
    assert f"holds openai/gpt-oss-120b at {COMMIT}" in change.steps[0].text


def test_without_an_image_the_download_waits_for_it_text(models: Path) -> None:
    (change,) = pending(host(models, image_digest=None))
    assert isinstance(change.steps[0], Refuse)
    assert change.what.startswith("fetch openai/gpt-oss-120b at main")


def test_the_token_travels_as_a_secret_of_the_job_only(models: Path) -> None:
    (change,) = pending(host(models, models={"hub_token": Secret("hf_known")}))
    assert change.steps[0].secrets == {"hub_token": Secret("hf_known")}
    assert "hf_known" not in change.steps[0].script


def test_the_hubs_own_address_is_not_set_as_a_mirror(models: Path) -> None:
    assert "endpoint=''\n" in pending(host(models))[0].steps[0].script
    mirrored = pending(host(models, mirrors={"hub": "https://hub.example/"}))[0].steps[0]
    assert "endpoint=https://hub.example\n" in mirrored.script


def test_shared_folders_get_what_any_endpoint_needs(models: Path) -> None:
    endpoints = {
        "a": {"port": 8000, "model": {**BASE, "include": ["*.json"], "exclude": ["x", "y"]}},
        "b": {"port": 8001, "model": {**BASE, "include": ["*.txt"], "exclude": ["y", "z"]}},
    }
    (source,) = sources_of(host(models, endpoints=endpoints))
    assert (source.include, source.exclude) == (("*.json", "*.txt"), ("y",))


def test_teardown_removes_only_what_has_our_manifest(models: Path) -> None:
    ours = model_folder(models)
    theirs = models / "openai--gpt-oss-120b--theirs"
    theirs.mkdir()
    subprocess.run(["sh", "-c", remove_script(f"{models}/openai--gpt-oss-120b--*")], check=True)
    assert not ours.exists()
    assert theirs.exists()


AT_HUB = {"models": ResolvedNames({"openai/gpt-oss-120b@main": COMMIT})}
"""What the hub says that the branch is."""


def test_an_empty_host_is_read_as_empty(models: Path) -> None:
    assert look(host(models))[MODELS] == SeenModels((), frozenset())


@pytest.mark.parametrize(("store", "share"), [("ext4:u", False), ("nfs4:server:/x", True), ("", True)])
def test_the_folder_of_models_is_a_share_before_any_model_is_there(models: Path, store: str, share: bool) -> None:
    models.mkdir(exist_ok=True)
    assert look(host(models))[MODELS].share == "", "a disk of this machine"
    script = MODELS.read(host(models)).replace(
        "\nknown= store=\n", f"\nstore_of() {{ printf %s '{store}'; }}\nknown= store=\n"
    )
    output = subprocess.run(
        ["sh", "-c", f"hangs() {{ false; }}\n{script}"], capture_output=True, text=True, check=True
    ).stdout
    assert models_module.parse(output).share == (str(models) if share else "")


def test_a_folder_that_is_there_by_its_commit_gets_the_revision_that_leads_to_it(models: Path) -> None:
    model_folder(models, revisions=[COMMIT])
    settings = host(models)
    reading = look(settings)
    [change] = MODELS.pending(settings, replace(reading, names=AT_HUB))
    assert change.what.startswith(f"record that main is {COMMIT[:12]}")
    assert change.owns == ()


# -- whose word counts


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: os.chown(path / MANIFEST, 1000, 1000),
        lambda path: os.chown(path, 1000, 1000),
        lambda path: os.chown(path / "config.json", 1000, 1000),
        lambda path: (path / "sub dir").chmod(0o777),
        lambda path: (path / "config.json").chmod(0o666),
        lambda path: (path.parent.parent / "manifests" / f"{path.name}.json").unlink(),
    ],
)
def test_a_manifest_counts_only_when_nobody_but_root_could_have_written_it_text(
    models: Path, spoil: Callable[[Path], None]
) -> None:
    settings = host(models, model={**BASE, "directory": "mine"})
    path = model_folder(models, folder="mine")
    assert pending(settings) == []
    spoil(path)
    (change,) = pending(settings)
    assert change.why == f"{path} was not made by Rackwright: what is right in it is kept"


def record_of(path: Path) -> Path:
    return path.parent.parent / "manifests" / f"{path.name}.json"


def on_a_share(path: Path) -> None:
    """As verified where root may not own what it makes: each file is known by its ctime, too."""
    subprocess.run(["chown", "-R", "nobody", path], check=True)
    record = json.loads(record_of(path).read_text())
    for file in record["files"]:
        file["ctime_ns"] = (path / file["path"]).stat().st_ctime_ns
    record_of(path).write_text(json.dumps(record))


def test_where_others_may_write_a_file_is_known_by_what_they_cannot_set_text(models: Path) -> None:
    path = model_folder(models)
    on_a_share(path)
    assert pending(host(models)) == []
    weights = path / "sub dir/weights of it.safetensors"
    before = weights.stat()
    with weights.open("r+b") as handle:
        handle.write(b"x")
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    (change,) = pending(host(models))
    assert change.why == "not as verified: sub dir/weights of it.safetensors"
    subprocess.run(["chown", "-R", "root", path], check=True)
    (change,) = pending(host(models))
    assert "not as verified" in change.why


@pytest.mark.parametrize("other", ["nfs4:server:/other", "", None])
def test_a_record_of_another_store_says_nothing_text(models: Path, other: str | None) -> None:
    record = record_of(model_folder(models))
    record.write_text(json.dumps(json.loads(record.read_text()) | {"store": other}))
    (change,) = pending(host(models, model={**BASE, "revision": COMMIT}))
    assert "was not made by Rackwright: what is right in it is kept" in change.why


@pytest.mark.parametrize("may_touch", [True, False])
def test_what_is_damaged_no_longer_counts_as_verified(models: Path, may_touch: bool, tmp_path: Path) -> None:
    """On a share that root may not write to, the host's own record goes."""
    path = model_folder(models)
    settings = host(models)
    (change,) = hash_changes(settings, look(settings)[MODELS])
    (job,) = change.steps
    assert isinstance(job, Job)
    refusing = tmp_path / "bin"
    refusing.mkdir()
    if not may_touch:
        (refusing / "touch").write_text("#!/bin/sh\nexit 1\n")
        (refusing / "touch").chmod(0o755)
    assert events_of(job, tmp_path, {"PATH": f"{refusing}:{os.environ['PATH']}"}).count("damaged") == 2
    assert pending(settings) != []
    assert record_of(path).exists() is may_touch
    assert not hashed_of(path).exists()


def events_of(job: Job, folder: Path, environment: dict[str, str]) -> list[str]:
    """Run a job's script as the host does; return the words of its events."""
    home = folder / "job"
    home.mkdir(exist_ok=True)
    for name, text in (("nonce", "n\n"), ("log", ""), ("events", "")):
        (home / name).write_text(text)
    subprocess.run(["sh", "-c", job.script], check=True, env={**os.environ, **environment, "JOB": str(home)})
    return [row.split(" ")[2] for row in (home / "events").read_text().splitlines()]


def hashed_of(path: Path) -> Path:
    return record_of(path).with_suffix(".hashed")


def test_a_folder_whose_files_are_all_right_has_the_time_of_that_text(models: Path, tmp_path: Path) -> None:
    path = model_folder(models)
    pins = [
        {"path": name, "size": len(name), "sha256": hashlib.sha256(name.encode()).hexdigest()}
        for name in ("config.json", "sub dir/weights of it.safetensors")
    ]
    settings = host(models, model={**BASE, "revision": COMMIT, "files": pins})
    (change,) = hash_changes(settings, look(settings)[MODELS])
    (job,) = change.steps
    assert isinstance(job, Job)
    assert events_of(job, tmp_path, {}) == ["progress", "progress"]
    assert hashed_of(path).read_text().strip().isdecimal()
    (path / "config.json").write_text("CONFIG.json")
    assert "damaged" in events_of(job, tmp_path, {})
    assert not hashed_of(path).exists(), "what was right once is not right now"
    hashed_of(path).write_text("1")
    subprocess.run(["sh", "-c", remove_script(str(path))], check=True)
    assert not hashed_of(path).exists()


def test_other_bytes_than_the_locks_are_put_right_and_verified_deep_by_the_lock_text(models: Path) -> None:
    model_folder(models)
    pins = [{"path": "config.json", "size": len("config.json"), "sha256": "0" * 64}]
    assert pending(host(models, model={**BASE, "revision": COMMIT, "files": pins})) == []
    other = [{"path": "config.json", "size": len("config.json"), "sha256": "1" * 64}]
    settings = host(models, model={**BASE, "revision": COMMIT, "files": other})
    (change,) = pending(settings)
    assert change.why == "the lock file has other bytes: config.json"
    (job,) = change.steps
    assert isinstance(job, Job)
    assert '"sha256": "' + "1" * 64 in job.script
    (deep,) = hash_changes(settings, look(settings)[MODELS])
    (hashing,) = deep.steps
    assert isinstance(hashing, Job)
    assert "1" * 64 + " config.json" in hashing.script
    assert "0" * 64 + " sub dir/weights of it.safetensors" in hashing.script


def test_a_read_only_folder_is_verified_and_never_ours_to_remove_text(models: Path) -> None:
    settings = host(models)
    read_only = SeenModels((), frozenset({f"{models}/openai--gpt-oss-120b--{COMMIT[:12]}"}), read_only=True)
    reading = HostReading({"models": read_only, **IMAGES}, names=AT_HUB)
    (change,) = MODELS.pending(settings, reading)
    assert change.what.startswith("verify openai/gpt-oss-120b at main")
    assert change.why == f"{models} is read-only, and not verified by this host yet"
    assert change.owns == ()
