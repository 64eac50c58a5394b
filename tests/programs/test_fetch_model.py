"""The download program, with the real huggingface_hub, against the lab's hub: whole, resumed, refused, trusted."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from rackwright.hostside.fetch_model.child import Supervisor, in_child
from rackwright.hostside.fetch_model.files import is_plain
from rackwright.hostside.fetch_model.hub import Hub as Repository
from rackwright.remote.job_scripts import MISTAKE
from rackwright_lab import faults
from tests import texts
from tests.lab.products import with_proof
from tests.programs.model_hub import BASE, GATED, SMALL, Hub


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


@pytest.mark.parametrize(
    "harm", with_proof([False, True], [True], "the bytes decide in both; the harmed ones are tried")
)
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


PASSING = [("truncated", 0.5, "*cdn*"), ("503", None, "*resolve*"), ("wrong_bytes", None, "*cdn*")]


@pytest.mark.parametrize(
    ("kind", "value", "path"), with_proof(PASSING, PASSING[:1], "one way to try again; one fault is tried")
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


def test_what_the_rate_holds_back_is_not_reported_as_a_stall() -> None:
    amounts, rates = iter([0]), list[float]()

    def note(_: int, rate: float) -> None:
        rates.append(rate / (1 << 20))

    def work() -> int:
        time.sleep(0.5)
        return 7

    assert in_child(work, Supervisor(60, 2 << 20, lambda: next(amounts, 10 << 20), tell=note)) == 7
    assert len(rates) == 2
    assert min(rates) > 1


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
    headers = Repository("a/b", "hf_secret", slow=False, wait=60)._headers("https://hub/a", location)
    assert ("authorization" in headers) is goes
