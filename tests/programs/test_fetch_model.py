"""The download program as a host's image runs it, with the real huggingface_hub, against the lab's hub on loopback."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackwright.hostside import store_functions
from rackwright.hostside.fetch_model.cache import cached
from rackwright.hostside.fetch_model.files import is_plain
from rackwright.hostside.fetch_model.hub import Hub as Repository
from rackwright.hostside.packed import packed
from rackwright.remote.job_scripts import MISTAKE
from rackwright_lab import faults
from rackwright_lab.hosts import share
from rackwright_lab.machine import prerequisites
from rackwright_lab.machine.progress import Progress
from rackwright_lab.servers.web import Site, WebServer
from tests import texts

BASE = "openai/gpt-oss-120b"
SMALL = "nvidia/gpt-oss-120b-Eagle3"
GATED = "meta-llama/Llama-3.1-8B-Instruct"
EXCLUDE = ["original/*", "metal/*"]


def stores_in(models: Path) -> bytes:
    """On which store each folder is, as the host tells the program."""
    words = ["sh", "-c", store_functions() + 'stores_in "$1"', "-", str(models)]
    return subprocess.run(words, check=True, capture_output=True).stdout


def _size(path: Path) -> int:
    """Return a file's bytes; none when it has been moved into place in the meantime."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@dataclass
class Hub:
    """A loopback hub, and the program that downloads from it into `models`."""

    url: str
    state: Path
    models: Path
    program: Path

    cache: Path | None = None
    """A Hugging Face cache on the host."""
    packages: Path | None = None
    """Where Python looks first for the image's packages."""

    def start(self, repository: str = SMALL, token: str = "", **spec: Any) -> subprocess.Popen[str]:
        secrets = self.models.parent / "secrets"
        secrets.mkdir(exist_ok=True)
        (secrets / "hub_token").write_text(token)
        (secrets / "stores").write_bytes(stores_in(self.models))
        whole = {
            "repository": repository,
            "revision": "main",
            "commit": None,
            "name": repository.replace("/", "--"),
            "directory": None,
            "include": [],
            "exclude": EXCLUDE,
            "models_dir": str(self.models),
            "stall": 30,
            "pause": 0.1,
            "rate_mib": None,
            "secrets": str(secrets),
            "files": {},
            "manifests": str(self.manifests),
        } | spec
        env = {"PATH": os.environ["PATH"], "HF_ENDPOINT": self.url, "HOME": str(self.models.parent)}
        env |= {"HUB_CACHES": f"/nowhere:{self.cache}"} if self.cache else {}
        env |= {"PYTHONPATH": str(self.packages)} if self.packages else {}
        command = [sys.executable, str(self.program), json.dumps(whole)]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, repository: str = SMALL, token: str = "", **spec: Any) -> tuple[int, str]:
        process = self.start(repository, token, **spec)
        output, _ = process.communicate(timeout=120)
        return process.returncode, output

    @property
    def manifests(self) -> Path:
        return self.models.parent / "manifests"

    def target(self) -> Path:
        """Return the one complete model folder."""
        (found,) = [path.parent for path in self.models.glob("*/.rackwright.json") if path.parent.suffix != ".partial"]
        return found

    def wait_for_bytes(self, size: int) -> None:
        """Wait until a file has so many bytes, and no more than it must have."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if any(_size(part) > size for part in self.models.glob("*.partial/.parts/*.part")):
                return
            time.sleep(0.05)
        raise AssertionError("no byte came within a minute")

    def wait_for_verified(self) -> Path:
        """Wait until a file of a model that is not complete is verified."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if found := next((path for path in self.models.glob("*.partial/[!.]*") if path.stat().st_size), None):
                return found
            time.sleep(0.01)
        raise AssertionError("no file was verified within a minute")

    def complete(self) -> bool:
        return any(self.models.glob("*/.rackwright.json"))

    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.target() / ".rackwright.json").read_text())
        return found

    def fetched(self) -> list[dict[str, Any]]:
        return [row for row in faults.requests(self.state) if row["method"] == "GET" and "/api/" not in row["path"]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, Path]]:
    state = tmp_path_factory.mktemp("web")
    faults.set_tokens(state, {"hf_granted": True, "hf_stranger": False})
    program = state / "fetch_model.pyz"
    program.write_bytes(base64.b64decode(packed("hostside/fetch_model")))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    site = Site(state, hub="127.0.0.1", cdn="localhost", cdn_url=f"http://localhost:{port}")
    with WebServer(("127.0.0.1", port), site) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{port}", state, program
        running.shutdown()


@pytest.fixture
def hub(server: tuple[str, Path, Path], tmp_path: Path) -> Iterator[Hub]:
    url, state, program = server
    faults.clear(state)
    faults.forget_requests(state)
    for name in ("models", "manifests"):
        (tmp_path / name).mkdir()
    yield Hub(url, state, tmp_path / "models", program)
    faults.clear(state)


def test_a_model_is_complete_only_when_all_of_it_is_verified(hub: Hub) -> None:
    code, output = hub.run(BASE)
    assert code == 0, output
    manifest = hub.manifest()
    assert hub.target().name == f"openai--gpt-oss-120b--{manifest['commit'][:12]}"
    names = {file["path"] for file in manifest["files"]}
    assert "config.json" in names
    assert not any(name.startswith(("original/", "metal/")) for name in names)
    for file in manifest["files"]:
        path = hub.target() / file["path"]
        assert hashlib.sha256(path.read_bytes()).hexdigest() == file["sha256"]
        assert (path.stat().st_size, path.stat().st_mtime_ns, path.stat().st_ino) == (
            file["size"],
            file["mtime_ns"],
            file["inode"],
        )
        assert path.stat().st_mode & 0o444 == 0o444
    assert not list(hub.models.glob("*.partial"))
    assert not (hub.target() / ".parts").exists()


def test_a_second_run_fetches_nothing(hub: Hub) -> None:
    hub.run()
    commit = hub.manifest()["commit"]
    faults.forget_requests(hub.state)
    code, output = hub.run(commit=commit)
    assert code == 0, output
    assert faults.requests(hub.state) == []


def test_only_the_damaged_file_is_fetched_again(hub: Hub) -> None:
    hub.run(BASE)
    before = hub.manifest()
    victim = next(file["path"] for file in before["files"] if file["path"].endswith(".safetensors"))
    (hub.target() / victim).write_bytes(b"x" * (hub.target() / victim).stat().st_size)
    faults.forget_requests(hub.state)
    code, output = hub.run(BASE, commit=before["commit"])
    assert code == 0, output
    assert len(hub.fetched()) == 1
    after = {file["path"]: file for file in hub.manifest()["files"]}
    assert after[victim]["sha256"] == hashlib.sha256((hub.target() / victim).read_bytes()).hexdigest()
    assert not list(hub.models.glob("*.partial"))


def test_a_touched_file_is_read_and_not_fetched(hub: Hub) -> None:
    hub.run()
    before = hub.manifest()
    os.utime(hub.target() / "config.json")
    faults.forget_requests(hub.state)
    assert hub.run(commit=before["commit"])[0] == 0
    assert faults.requests(hub.state) == []
    assert hub.manifest() != before


@pytest.mark.parametrize("harm", [False, True])
def test_what_is_touched_before_the_end_is_read_again_and_its_bytes_decide(hub: Hub, harm: bool) -> None:
    process = hub.start(rate_mib=1)
    touched = hub.wait_for_verified()
    if harm:
        touched.write_bytes(b"x" * touched.stat().st_size)
    os.utime(touched, (1, 1))
    output = process.communicate(timeout=120)[0]
    assert f"verifying {touched}" in output
    assert (process.returncode, hub.complete()) == ((1, False) if harm else (0, True)), output
    assert ("another process wrote to" in output) == harm


def test_a_killed_run_is_resumed_at_the_byte(hub: Hub) -> None:
    faults.set_fault(hub.state, "slow", path="*cdn*", value=2 << 20)
    process = hub.start(BASE)
    hub.wait_for_bytes(1 << 20)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not hub.complete()
    faults.clear(hub.state)
    faults.forget_requests(hub.state)
    code, output = hub.run(BASE)
    assert code == 0, output
    assert texts.CONTINUED in output
    assert any(row["range"] for row in hub.fetched())


def test_a_stall_is_noticed_and_the_download_goes_on(hub: Hub) -> None:
    faults.set_fault(hub.state, "stall", path="*cdn*", value=100_000, times=1)
    code, output = hub.run(BASE, stall=20)
    assert code == 0, output
    assert f"{texts.NO_BYTE.format(seconds='20 s')}; try 2 of 4" in output
    assert hub.complete()


@pytest.mark.parametrize(
    ("kind", "value", "path"), [("truncated", 0.5, "*cdn*"), ("503", None, "*resolve*"), ("wrong_bytes", None, "*cdn*")]
)
def test_a_fault_that_passes_is_got_over(hub: Hub, kind: str, value: float | None, path: str) -> None:
    faults.set_fault(hub.state, kind, path=path, value=value, times=1)
    code, output = hub.run(BASE)
    assert code == 0, output
    assert hub.complete()


def test_wrong_bytes_are_not_taken(hub: Hub) -> None:
    faults.set_fault(hub.state, "wrong_bytes", path="*cdn*")
    code, output = hub.run(SMALL)
    assert code == 1
    assert re.search(texts.pattern(texts.WRONG_BYTES, repository=SMALL), output), output
    assert not hub.complete()


def test_waits_as_long_as_the_hub_asks(hub: Hub) -> None:
    faults.set_fault(hub.state, "429", path="/api/*", value=1, times=1)
    code, output = hub.run(SMALL)
    assert code == 0, output
    assert "429" in output
    assert "to wait 1 s; try 2 of 4 in 1 s" in output
    assert hub.complete()


def test_a_hub_that_asks_to_wait_for_long_is_an_error(hub: Hub) -> None:
    faults.set_fault(hub.state, "429", path="/api/*", value=5000)
    code, output = hub.run(SMALL)
    assert code == 1
    assert "limits how often" in output
    assert "5000 s" in output


@pytest.mark.parametrize(
    ("repository", "revision", "token", "message"),
    [
        ("openai/no-such-model", "main", "", "was not found on the hub"),
        (SMALL, "no-such-branch", "", "has no revision no-such-branch (404)"),
        (GATED, "main", "", "is gated, and no models.hub_token is set"),
        (GATED, "main", "hf_stranger", "the account of models.hub_token has no access"),
        (GATED, "main", "hf_expired", "hub_token"),
    ],
)
def test_each_refusal_has_its_own_text(hub: Hub, repository: str, revision: str, token: str, message: str) -> None:
    code, output = hub.run(repository, token, revision=revision)
    assert code == MISTAKE
    assert message in output
    assert not hub.complete()
    assert not token or token not in output


def test_a_gated_model_comes_with_a_token_that_may_read_it(hub: Hub) -> None:
    code, output = hub.run(GATED, "hf_granted")
    assert code == 0, output
    assert hub.complete()


def test_a_missing_file_has_its_own_text(hub: Hub) -> None:
    faults.set_fault(hub.state, "404", path="*resolve*config.json", value="EntryNotFound")
    code, output = hub.run()
    assert code == 1
    assert "lacks a file that it lists (404)" in output


def test_a_library_that_cannot_be_loaded_is_told(hub: Hub, tmp_path: Path) -> None:
    hub.packages = tmp_path / "packages"
    library = hub.packages / "huggingface_hub"
    library.mkdir(parents=True)
    why = "it was built for another Python"
    (library / "__init__.py").write_text(f"raise ImportError({why!r})\n")
    code, output = hub.run()
    assert (code, why in output) == (1, True), output


COUNTED = """\
import os, sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "huggingface_hub.file_download":
            with open("{seen}", "a") as seen:
                print(os.getpid(), file=seen)
sys.meta_path.insert(0, Watch())
"""
"""Looked for by Python at its start: one line for each process that loads the library."""


def test_the_library_is_loaded_once_for_all_children(hub: Hub, tmp_path: Path) -> None:
    hub.packages = tmp_path / "packages"
    hub.packages.mkdir()
    (hub.packages / "sitecustomize.py").write_text(COUNTED.format(seen=tmp_path / "seen"))
    code, output = hub.run()
    assert code == 0, output
    assert len((tmp_path / "seen").read_text().splitlines()) == 1


def test_no_route_has_its_own_text(hub: Hub) -> None:
    unreachable = Hub("http://127.0.0.1:1", hub.state, hub.models, hub.program)
    started = time.monotonic()
    code, output = unreachable.run()
    assert code == 1
    assert "no route: the hub cannot be reached" in output
    assert time.monotonic() - started < 110


def test_a_whole_folder_of_somebody_else_is_adopted(hub: Hub) -> None:
    hub.run()
    whole = hub.target()
    (whole / ".rackwright.json").unlink()
    (whole / "eagle.yaml").write_text("theirs: true\n")
    whole.rename(hub.models / "eagle")
    faults.forget_requests(hub.state)
    code, output = hub.run(directory="eagle")
    assert code == 0, output
    assert hub.fetched() == []
    assert hub.target() == hub.models / "eagle"
    assert (hub.models / "eagle" / "eagle.yaml").read_text() == "theirs: true\n"


def test_an_unfinished_folder_of_somebody_else_is_kept_aside_and_its_right_files_used(hub: Hub) -> None:
    theirs = hub.models / "gpt-oss-120b"
    hub.run(BASE)
    hub.target().rename(theirs)
    (theirs / ".rackwright.json").unlink()
    (theirs / "config.json").write_text("{}")
    faults.forget_requests(hub.state)
    code, output = hub.run(BASE, directory="gpt-oss-120b")
    assert code == 0, output
    assert len(hub.fetched()) == 1
    assert (hub.models / "gpt-oss-120b.before-rackwright-1" / "config.json").read_text() == "{}"
    assert hub.target() == theirs
    assert (theirs / "config.json").read_text() != "{}"


def test_the_rate_is_kept(hub: Hub) -> None:
    started = time.monotonic()
    code, output = hub.run(SMALL, rate_mib=2)
    size = sum(file["size"] for file in hub.manifest()["files"])
    assert code == 0, output
    assert size > 2 << 20
    assert time.monotonic() - started > size / (2 << 20) * 0.7


def test_two_at_once_never_write_the_same_file(hub: Hub) -> None:
    """As on a store that two hosts fill: the second one waits, and has nothing left to fetch."""
    faults.set_fault(hub.state, "slow", path="*cdn*", value=1 << 20)
    first = hub.start(BASE)
    hub.wait_for_bytes(1 << 16)
    second = hub.start(BASE)
    assert second.stdout is not None
    for output_line in second.stdout:
        if "another process is fetching into" in output_line:
            break
    else:
        pytest.fail("the second one did not wait")
    faults.clear(hub.state)
    assert first.wait(60) == 0
    remaining, _ = second.communicate(timeout=60)
    assert second.returncode == 0, remaining
    fetched = [row["path"] for row in hub.fetched() if row["status"] in (200, 206)]
    assert len(fetched) == len(set(fetched)), fetched


def test_a_branch_that_moved_gets_a_folder_of_its_own(hub: Hub) -> None:
    hub.run(SMALL)
    first = hub.target()
    faults.move_branch(hub.state, SMALL, 1)
    try:
        assert hub.run(SMALL)[0] == 0
    finally:
        faults.move_branch(hub.state, SMALL, 2)
    assert len(list(hub.models.iterdir())) == 2
    assert first.exists()


def test_patterns_that_match_nothing_are_an_error(hub: Hub) -> None:
    code, output = hub.run(include=["*.gguf"])
    assert code == MISTAKE
    assert "no file of" in output


# -- whose word counts


def lock_of(hub: Hub, **changed: Any) -> dict[str, Any]:
    """Return the files of what was fetched, as a lock file has them; `changed` by name."""
    pins = {file["path"]: {key: file[key] for key in ("size", "sha256", "blob")} for file in hub.manifest()["files"]}
    return {path: {**pin, **changed.get(path, {})} for path, pin in pins.items()}


def test_a_manifest_that_somebody_else_may_have_written_counts_as_none(hub: Hub) -> None:
    hub.run()
    manifest, target = hub.manifest(), hub.target()
    victim = max(manifest["files"], key=lambda file: int(file["size"]))
    weights = target / victim["path"]
    weights.write_bytes(b"x" * victim["size"])
    status = weights.stat()
    sha256 = hashlib.sha256(weights.read_bytes()).hexdigest()
    victim.update({"mtime_ns": status.st_mtime_ns, "inode": status.st_ino, "sha256": sha256})
    (target / ".rackwright.json").write_text(json.dumps(manifest))
    code, output = hub.run(commit=manifest["commit"])
    assert code == 0, output
    assert weights.read_bytes() != b"x" * victim["size"]


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_folder_that_others_may_write_to_is_verified_anew_and_closed(hub: Hub, what: str) -> None:
    hub.run()
    commit, target = hub.manifest()["commit"], hub.target()
    open_to_all = target if what == "folder" else target / "config.json"
    open_to_all.chmod(open_to_all.stat().st_mode | 0o022)
    faults.forget_requests(hub.state)
    code, output = hub.run(commit=commit)
    assert code == 0, output
    assert "verifying" in output
    assert hub.fetched() == []
    assert not open_to_all.stat().st_mode & 0o022


def test_the_lock_decides_which_bytes_are_taken(hub: Hub) -> None:
    hub.run()
    commit, pins = hub.manifest()["commit"], lock_of(hub)
    code, output = hub.run(commit=commit, files=pins)
    assert code == 0, output
    for changed in ({"sha256": "0" * 64, "blob": None}, {"size": 1}):
        code, output = hub.run(commit=commit, files=lock_of(hub, **{"config.json": changed}))
        assert code == 1
        assert re.search(texts.pattern(texts.NOT_AS_LOCKED, revision="main", files="config.json"), output), output
    less = {path: pin for path, pin in pins.items() if path != "config.json"}
    more = {**pins, "more.safetensors": {"size": 1, "sha256": "0" * 64, "blob": None}}
    for files, name in ((less, "config.json"), (more, "more.safetensors")):
        code, output = hub.run(commit=commit, files=files)
        assert (code, name in output) == (1, True), output


ELSEWHERE = "../x /etc/passwd a/../../x a//b ./a .rackwright.json a/.parts/b a\\b"


@pytest.mark.parametrize("name", [*ELSEWHERE.split(), "a\nb", "a\x1bb", ""])
def test_a_name_of_the_hubs_that_leads_elsewhere_is_none(name: str) -> None:
    assert not is_plain(name)


@pytest.mark.parametrize("name", ["config.json", "a/b/c.safetensors", ".gitattributes", "naïve.txt"])
def test_a_name_below_the_folder_is_one(name: str) -> None:
    assert is_plain(name)


@pytest.mark.parametrize(
    ("location", "goes"), [("https://hub/b", True), ("http://hub/b", False), ("https://cdn/b", False)]
)
def test_the_token_goes_to_the_hub_alone_and_never_in_clear(location: str, goes: bool) -> None:
    headers = Repository("a/b", "hf_secret", slow=False)._headers("https://hub/a", location)
    assert ("authorization" in headers) is goes


# -- a cache that is on the host already


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


# -- a store that several hosts share


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
