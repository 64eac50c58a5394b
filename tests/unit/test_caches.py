"""The caches of hosts: what is listed, what may go, and what is read and fetched again."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rackwright.cli import cache
from rackwright.cli.main import main
from rackwright.concerns.caches import seen
from rackwright.concerns.caches.damage import repair_changes, verify_changes
from rackwright.concerns.caches.entries import FOREIGN, HUB, OURS, UNFINISHED, CacheEntry, entries_of
from rackwright.concerns.caches.seen import HubModel, SeenCaches, parse
from rackwright.concerns.caches.spare import agreed_changes, spare_of
from rackwright.concerns.encodings import ENCODINGS
from rackwright.concerns.encodings.concern import SeenFile
from rackwright.concerns.image import IMAGE, LocalImage, SeenImages
from rackwright.concerns.models import MODELS, SeenModel, SeenModels
from rackwright.concerns.retention import RETENTION, KeptRelease
from rackwright.exit_codes import ExitCode
from rackwright.hostside import host_script
from rackwright.inspect.caches import HostCaches, cache_values, lines, table
from rackwright.inspect.prune_plan import plan_of
from rackwright.plan.answers import image_sizes
from rackwright.plan.change import Job, Owned, Refuse, Shell
from rackwright.plan.concern import HostReading
from rackwright.plan.ownership import RECORD
from rackwright.record.record import CACHE_PRUNE, CACHE_REPAIR, CACHE_VERIFY
from rackwright.rollout.launch import Run
from rackwright.rollout.maintenance.caches import care_for, damaged_in
from rackwright.settings.host_settings import HostSettings
from tests.unit.test_plan import recorded, settings

OLD = SeenModel(
    "/srv/models/a--b--111111111111", "a/b", frozenset(), "1" * 40, frozenset(), frozenset(), 7, 3 << 30, ()
)
STALE = LocalImage("nvcr.io/nvidia/tensorrt-llm/release", "0.9", "sha256:" + "a" * 64)
BASE = "/srv/models/openai--gpt-oss-120b--f64fb9006318"


def lived(**parts: Any) -> HostReading:
    """Return the reading of a host that serves, with other parts."""
    return HostReading({**recorded("converged").by_concern, **parts})


def with_old(*owned: Owned, **parts: Any) -> HostReading:
    """Return the reading of one that has an older model and an older image as well."""
    base = recorded("converged")
    models = replace(base[MODELS], models=(*base[MODELS].models, OLD))
    images = replace(base[IMAGE], images=(*base[IMAGE].images, STALE))
    found = {MODELS.name: models, IMAGE.name: images, RECORD.name: base[RECORD] | {*owned}}
    return lived(**{**found, **parts})


def named(entries: tuple[CacheEntry, ...], path: str) -> CacheEntry:
    return next(one for one in entries if one.path == path)


OWNED = (Owned("model", "/srv/models/a--b--*"), Owned("image", f"{STALE.repository}:{STALE.tag}"))


# -- what is there


def test_each_thing_is_listed_with_what_needs_it_and_whose_it_is() -> None:
    entries = entries_of(settings(), with_old(), SeenCaches(), {})
    assert named(entries, BASE).needed_by == ("llm", "release 6a9d807cd03a")
    assert named(entries, BASE).whose == OURS
    assert (named(entries, OLD.path).needed_by, named(entries, OLD.path).whose) == ((), FOREIGN)
    assert named(entries_of(settings(), with_old(*OWNED), SeenCaches(), {}), OLD.path).whose == OURS


def test_a_later_look_at_all_bytes_counts_as_the_time_of_verification() -> None:
    folder = OLD.path.rpartition("/")[2]
    assert named(entries_of(settings(), with_old(), SeenCaches({folder: 99}), {}), OLD.path).verified == 99
    assert named(entries_of(settings(), with_old(), SeenCaches({folder: 3}), {}), OLD.path).verified == 7


def test_a_model_that_is_not_as_verified_says_which_files() -> None:
    base = recorded("converged")
    models = replace(base[MODELS], models=(replace(OLD, changed=("x.safetensors",)),))
    entry = named(entries_of(settings(), lived(models=models), SeenCaches(), {}), OLD.path)
    assert entry.trouble == "not as verified: x.safetensors"
    assert entry.verified is None


def test_a_folder_that_others_put_there_is_listed_and_stays() -> None:
    caches = SeenCaches(folders={"/srv/models/theirs": 42})
    entry = named(entries_of(settings(), lived(), caches, {}), "/srv/models/theirs")
    assert (entry.size, entry.whose, entry.trouble, entry.needed_by) == (42, FOREIGN, "", ())
    wanted = settings(model={"path": "/srv/models/theirs", "repository": "a/b", "mount": "/config/models/b"})
    assert named(entries_of(wanted, lived(), caches, {}), "/srv/models/theirs").needed_by == ("llm",)


def test_a_hub_cache_is_for_the_endpoints_whose_commit_it_has() -> None:
    commit = next(model.commit for model in recorded("converged")[MODELS].models if model.path == BASE)
    path = "/home/ann/.cache/huggingface/hub/models--openai--gpt-oss-120b"
    has = SeenCaches(hub=(HubModel(path, 5, frozenset({commit})),))
    lacks = SeenCaches(hub=(HubModel(path, 5, frozenset({"0" * 40})),))
    assert named(entries_of(settings(), lived(), has, {}), path) == CacheEntry(
        HUB, "openai/gpt-oss-120b", path, 5, ("llm",)
    )
    assert named(entries_of(settings(), lived(), lacks, {}), path).needed_by == ()


def test_an_image_has_the_bytes_that_docker_says() -> None:
    engine = '[{"RepoTags": ["x/y:1"], "RepoDigests": ["x/y@sha256:aa"], "Size": 42}]\n\nanswer 200 http://docker/images/json\n'
    assert image_sizes(engine) == {("x/y", "sha256:aa"): 42}
    assert image_sizes("") == {}


# -- what the host prints


def fill(folder: Path, name: str, size: int) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)


def printed(home: Path, places: dict[str, Path]) -> SeenCaches:
    functions = host_script("hub_caches", hub_caches="~/hub", model="")
    script = host_script("caches_read", hashed="hashed", **{key: str(path) for key, path in places.items()})
    words = f"hangs() {{ false; }}\n{functions}homes() {{ printf '%s\\n' {home}; }}\n{script}"
    return parse(subprocess.run(["sh", "-c", words], check=True, capture_output=True, text=True).stdout)


def test_a_host_counts_hub_caches_unfinished_downloads_and_times(tmp_path: Path) -> None:
    home, commit = tmp_path / "ann", "c" * 40
    places = {name: tmp_path / name for name in ("models_dir", "manifests", "marks")}
    fill(home / "hub" / "models--org--small", "blobs/1", 700)
    fill(home / "hub" / "models--org--small", f"snapshots/{commit}/x", 0)
    fill(home / "hub" / "blobs", "ab/cd", 90)
    fill(home / "hub" / "models--odd name", "blobs/1", 1)
    (home / "hub" / "models--org--link").symlink_to("/")
    fill(places["models_dir"] / "m.partial", ".parts/1.part", 30)
    fill(places["models_dir"] / "theirs", "x", 30)
    fill(places["models_dir"] / "recorded", "x", 30)
    fill(places["manifests"], "recorded.json", 2)
    (places["models_dir"] / "link").symlink_to("/")
    fill(places["manifests"], "m.hashed", 0)
    (places["manifests"] / "m.hashed").write_text("1795327985\n")
    fill(places["marks"], "o200k_base.tiktoken", 1)
    os.utime(places["marks"] / "o200k_base.tiktoken", (5, 5))
    assert printed(home, places) == SeenCaches(
        {"m": 1795327985},
        {"o200k_base.tiktoken": 5},
        {f"{places['models_dir']}/m.partial": 30},
        {f"{places['models_dir']}/theirs": 30},
        (HubModel(f"{home}/hub/models--org--small", 700, frozenset({commit})),),
        {f"{home}/hub/blobs": 90},
    )


def test_a_cache_that_leads_out_of_its_home_is_not_counted(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "ann", tmp_path / "elsewhere"
    home.mkdir()
    fill(elsewhere / "models--org--small", "blobs/1", 700)
    (home / "hub").symlink_to(elsewhere)
    places = {name: tmp_path / name for name in ("models_dir", "manifests", "marks")}
    assert printed(home, places) == SeenCaches()


def test_the_reading_is_one_script_with_the_settings_folders() -> None:
    script = seen.read(settings(models={"folder": "/data/m", "hub_caches": ["/mnt/hub"]}))
    assert "models_dir=/data/m\n" in script
    assert "hub_caches=/mnt/hub\n" in script


# -- what may go


def names_of_spare(reading: HostReading, unfinished: dict[str, int | None] | None = None, **keys: Any) -> list[str]:
    return [one.name for one in spare_of(settings(**keys), reading, unfinished or {}, {}).spare]


def test_what_nothing_needs_goes_when_it_is_ours() -> None:
    assert names_of_spare(with_old(*OWNED)) == [OLD.path, f"{STALE.repository}:{STALE.tag}"]
    assert names_of_spare(with_old()) == []


def test_what_a_kept_release_needs_stays() -> None:
    base = recorded("converged")[RETENTION]
    retained = KeptRelease("0123456789ab", f"{STALE.repository}@{STALE.digest}", frozenset({OLD.path}))
    assert names_of_spare(with_old(*OWNED, retention=replace(base, releases=(*base.releases, retained)))) == []


def test_what_the_settings_ask_for_stays_although_no_release_has_it_yet() -> None:
    wanted = {"repository": OLD.repository, "mount": "/config/models/b", "revision": OLD.commit}
    assert OLD.path not in names_of_spare(with_old(*OWNED), draft=wanted)
    branch = {**wanted, "revision": "other"}
    assert OLD.path not in names_of_spare(with_old(*OWNED), draft=branch), "its commit is not known yet"


def on_share(reading: HostReading) -> HostReading:
    """Return the reading with its older model on a network file system."""
    models = [replace(one, shared=one.path == OLD.path) for one in reading[MODELS].models]
    return HostReading({**reading.by_concern, MODELS.name: replace(reading[MODELS], models=tuple(models))})


def test_a_model_on_a_share_stays_and_is_named_since_other_hosts_may_serve_from_it_text() -> None:
    found = spare_of(settings(), on_share(with_old(*OWNED)), {}, {})
    assert [one.name for one in found.spare] == [f"{STALE.repository}:{STALE.tag}"]
    (held,) = found.held
    assert held.startswith(f"{OLD.path} is on a share")
    assert spare_of(settings(), on_share(with_old()), {}, {}).held == (), "others have put it there"


def test_nothing_goes_while_what_a_release_needs_cannot_be_read() -> None:
    base = recorded("converged")[RETENTION]
    unclear = replace(base, releases=(*base.releases, KeptRelease("fedcba987654", "", frozenset())))
    found = spare_of(settings(), with_old(*OWNED, retention=unclear), {}, {})
    assert (found.spare, len(found.held)) == ((), 1)
    assert "fedcba987654" in found.held[0]


def test_no_image_goes_while_docker_does_not_answer() -> None:
    silent = SeenImages(False, (), {})
    found = spare_of(settings(), with_old(*OWNED, image=silent), {}, {})
    assert [one.name for one in found.spare] == [OLD.path]
    assert "Docker does not answer" in found.held[0]
    mere = HostSettings.model_validate({}).with_gateways((), ())
    assert spare_of(mere, with_old(*OWNED, image=silent), {}, {}).held == (), "a mere gateway needs no Docker"


def test_a_cut_download_goes_when_no_endpoint_would_continue_it() -> None:
    cut = {"/srv/models/a--b--222222222222.partial": 5, f"{BASE}.partial": 6, "/srv/models/x.partial": 7}
    reading = lived(ownership=recorded("converged")[RECORD] | {*OWNED})
    assert names_of_spare(reading, dict(cut)) == ["/srv/models/a--b--222222222222.partial"]
    branch = {"repository": "a/b", "mount": "/config/models/b", "revision": "other"}
    assert names_of_spare(reading, dict(cut), draft=branch) == []


def test_a_cut_download_on_a_share_stays_for_the_host_that_continues_it_text() -> None:
    reading = lived(ownership=recorded("converged")[RECORD] | {*OWNED})
    shared = lived(ownership=reading[RECORD], models=replace(reading[MODELS], share="/srv/models"))
    cut = "/srv/models/a--b--222222222222.partial"
    found = spare_of(settings(), shared, {cut: 5}, {})
    assert found.spare == ()
    assert [text.partition(",")[0] for text in found.held] == [f"{cut} is on a share"]


def test_encodings_go_when_no_endpoint_chats_by_them() -> None:
    base = recorded("converged")[RETENTION]
    bare = [replace(one, paths=one.paths - {"/srv/encodings"}) for one in base.releases]
    reading = lived(retention=replace(base, releases=tuple(bare)))
    assert names_of_spare(reading, harmony=False) == [
        "/srv/encodings/o200k_base.tiktoken",
        "/srv/encodings/cl100k_base.tiktoken",
    ]
    assert names_of_spare(reading) == []
    assert names_of_spare(lived(), harmony=False) == []


def test_only_what_was_agreed_to_is_removed() -> None:
    found = spare_of(settings(), with_old(*OWNED), {}, {})
    (change,) = agreed_changes(found, {OLD.path, "/srv/models/other"})
    assert change.what.startswith(f"remove the model {OLD.path}")
    assert change.disowns == (Owned("model", OLD.path),)


def test_a_download_that_is_under_way_is_not_removed(tmp_path: Path) -> None:
    target = tmp_path / "a--b--222222222222"
    fill(tmp_path / f"{target.name}.partial", ".parts/lock", 0)
    owned = {Owned("model", f"{tmp_path}/a--b--*")}
    (spare,) = spare_of(settings(), lived(ownership=frozenset(owned)), {f"{target}.partial": 1}, {}).spare
    (step,) = spare.change.steps
    assert isinstance(step, Shell)
    partial = tmp_path / f"{target.name}.partial"
    with (partial / ".parts" / "lock").open("w") as download:
        fcntl.flock(download, fcntl.LOCK_EX)
        done = subprocess.run(["sh", "-c", step.script], check=False, capture_output=True, text=True)
    assert (done.returncode, partial.exists()) == (1, True)
    assert "is under way" in done.stderr
    subprocess.run(["sh", "-c", step.script], check=True)
    assert not partial.exists()


# -- what is read and fetched again


def test_verify_hashes_every_model_and_the_encodings_text() -> None:
    changes = verify_changes(settings(), with_old())
    jobs = [step for change in changes for step in change.steps if isinstance(step, Job)]
    assert [job.title for job in jobs] == [
        *(f"hash {model.path}" for model in with_old()[MODELS].models),
        "hash the encodings of /srv/encodings",
    ]


def test_a_verify_of_a_host_without_encodings_leaves_them_out() -> None:
    assert not [one for one in verify_changes(settings(), lived(encodings={})) if "encodings" in one.what]


def test_repair_does_nothing_on_a_host_that_is_as_verified() -> None:
    assert repair_changes(settings(), with_old()) == []


def test_repair_puts_right_what_a_kept_release_alone_needs_text() -> None:
    base = recorded("converged")
    models = replace(base[MODELS], models=(replace(OLD, changed=("x.safetensors",)),))
    (change,) = repair_changes(settings(), lived(models=models))
    assert change.what == f"put a/b at 111111111111 right into {OLD.path}"
    assert change.why == "not as verified: x.safetensors"
    assert change.owns == ()
    (job,) = change.steps
    assert isinstance(job, Job)
    assert '"commit": "' + "1" * 40 in job.script
    assert '"directory": null' in job.script


def test_repair_of_a_folder_with_a_name_of_its_own_stays_there() -> None:
    base = recorded("converged")
    mine = replace(OLD, path="/srv/models/mine", changed=("x.safetensors",))
    (change,) = repair_changes(settings(), lived(models=replace(base[MODELS], models=(mine,))))
    (job,) = change.steps
    assert isinstance(job, Job)
    assert '"directory": "mine"' in job.script


@pytest.mark.parametrize("pinned_at", ["commit", "main"])
def test_repair_verifies_a_folder_whose_record_is_gone_and_fetches_no_other_text(pinned_at: str) -> None:
    gone = SeenModels((), frozenset({BASE, "/srv/models/theirs"}))
    pinned = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
    commit = next(model.commit for model in recorded("converged")[MODELS].models if model.path == BASE)
    changes = repair_changes(
        settings(model={**pinned, "revision": commit if pinned_at == "commit" else "main"}), lived(models=gone)
    )
    assert [change.why for change in changes] == ["this host has no record of what it has verified there"]


def test_repair_fetches_a_wrong_encoding_and_no_missing_one() -> None:
    wrong = {"o200k_base.tiktoken": SeenFile("0" * 64, "644:root")}
    (change,) = repair_changes(settings(), lived(encodings=wrong))
    assert change.what.startswith("fetch /srv/encodings/o200k_base.tiktoken")
    assert not any(isinstance(step, Refuse) for step in change.steps)
    assert recorded("converged")[ENCODINGS]


def test_a_wrong_encoding_is_named_and_loses_its_mark(tmp_path: Path) -> None:
    folder, marks, job = tmp_path / "encodings", tmp_path / "marks", tmp_path / "job"
    for path in (folder, marks, job):
        path.mkdir()
    (folder / "o200k_base.tiktoken").write_text("flipped")
    (marks / "o200k_base.tiktoken").write_text("x")
    (job / "nonce").write_text("n\n")
    (job / "log").write_text("")
    change = verify_changes(settings(encodings={"folder": str(folder)}), lived())[-1]
    (step,) = change.steps
    assert isinstance(step, Job)
    script = step.script.replace("/var/lib/rackwright/encodings", str(marks))
    subprocess.run(["sh", "-c", script], check=True, env={**os.environ, "JOB": str(job)})
    assert [row.split(" ")[2] for row in (job / "events").read_text().splitlines()] == ["damaged", "damaged"]
    assert not (marks / "o200k_base.tiktoken").exists()


def test_the_files_that_hosts_name_are_counted_once() -> None:
    event = {"kind": "damaged", "host": "h1", "job": "hash-x", "text": "damaged: /m/x"}
    assert damaged_in([event, event, {"kind": "job", "host": "h1"}]) == ["h1 damaged: /m/x"]


# -- what people see


def listed() -> list[HostCaches]:
    reading, caches = with_old(*OWNED), SeenCaches(unfinished={"/srv/models/a--b--222222222222.partial": 5})
    entries = entries_of(settings(), reading, caches, {})
    found = HostCaches("gpu01", entries, spare_of(settings(), reading, caches.unfinished, {}))
    return [found, replace(found, host="gpu02"), HostCaches("gpu03", error="no connection")]


def test_the_table_has_a_row_an_entry() -> None:
    text = table(listed(), None)
    assert text.count("gpu01") == len(listed()[0].entries)
    assert "3.0 GiB" in text
    assert UNFINISHED in text


def test_the_sums_name_what_can_go_and_a_host_that_was_not_read_text() -> None:
    text = "\n".join(lines(listed()))
    assert "gpu03: no connection" in text
    assert "that nothing needs; next: rackwright cache prune INVENTORY" in text
    assert text.splitlines()[-1].startswith("2 hosts: at least ")


def test_bytes_on_a_share_are_counted_once_for_all_its_hosts_text() -> None:
    entries = entries_of(settings(), on_share(with_old(*OWNED)), SeenCaches(), {})
    (one,) = (entry for entry in entries if entry.shared)
    hosts = [HostCaches(name, (one,)) for name in ("gpu01", "gpu02", "gpu03")]
    assert [*lines(hosts)][-1].startswith("3 hosts: 3.0 GiB")
    apart = [replace(host, entries=(replace(one, shared=False),)) for host in hosts]
    assert [*lines(apart)][-1].startswith("3 hosts: 9.0 GiB")


def test_a_prune_is_planned_by_what_the_listing_says_text() -> None:
    plan = plan_of(cache_values(listed()))
    assert plan.hosts == ("gpu01", "gpu02")
    assert plan.unread
    assert plan.agreed == [
        OLD.path,
        "gpu01:/srv/models/a--b--222222222222.partial",
        f"{STALE.repository}:{STALE.tag}",
        "gpu02:/srv/models/a--b--222222222222.partial",
    ]
    first = f"2 hosts (gpu01, gpu02): remove the model {OLD.path} (3.0 GiB); 6.0 GiB in all"
    assert next(plan.lines()) == first


@pytest.mark.parametrize("size", [None, 5])
def test_an_unknown_size_is_said(size: int | None) -> None:
    entry = CacheEntry(HUB, "a/b", "/x", size)
    assert ("?" in table([HostCaches("h", (entry,))], None)) is (size is None)


# -- a run of it


class MadeUpRun(Run):
    """A run whose pyinfra only notes what it would have."""

    def pyinfra(self, deploy: Path, hosts: Sequence[str], data: Mapping[str, Any], **fields: Any) -> int:
        assert deploy.name == "cache.py"
        assert hosts == self.hosts
        for kind, values in EVENTS:
            self.note(kind, **values)
        return 0


EVENTS: list[tuple[str, dict[str, Any]]] = []
"""What hosts do in such a run."""


def made_up_run(folder: Path, *events: tuple[str, dict[str, Any]]) -> Run:
    EVENTS[:] = [*events, ("host", {"host": "h1", "state": "done"})]
    return MadeUpRun(folder / "i.py", folder, ("h1", "h2"), folder / "x.jsonl")


DONE_TOO = ("host", {"host": "h2", "state": "done"})
DAMAGED_FILE = ("damaged", {"host": "h2", "job": "hash-x", "text": "damaged: /srv/models/x/1"})


def test_a_verify_that_found_nothing_is_done(tmp_path: Path) -> None:
    status, _ = care_for(made_up_run(tmp_path, DONE_TOO), CACHE_VERIFY)
    assert status == ExitCode.DONE


def test_a_damaged_file_is_pending_and_named_with_its_host_text(tmp_path: Path) -> None:
    status, text = care_for(made_up_run(tmp_path, DONE_TOO, DAMAGED_FILE), CACHE_VERIFY)
    assert status == ExitCode.PENDING
    assert "h2 damaged: /srv/models/x/1" in text
    assert text.endswith(f"next: rackwright cache repair {tmp_path}/i.py")


@pytest.mark.parametrize(
    ("purpose", "status"),
    [(CACHE_VERIFY, ExitCode.ERROR), (CACHE_REPAIR, ExitCode.MIXED), (CACHE_PRUNE, ExitCode.MIXED)],
)
def test_a_host_on_which_it_failed_is_named_and_what_was_found_is_not_lost(
    purpose: str, status: ExitCode, tmp_path: Path
) -> None:
    failed = ("host", {"host": "h2", "state": "failed before its switch"})
    found, text = care_for(made_up_run(tmp_path, failed, DAMAGED_FILE), purpose)
    assert found == status
    assert "RW0844" in text
    assert "/srv/models/x/1" in text


@pytest.mark.parametrize(("agrees", "status"), [(True, 0), (False, 1)])
def test_a_prune_asks_and_takes_the_hosts_from_which_something_goes(
    agrees: bool, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars/all.yml").write_text(
        "model: {repository: openai/gpt-oss-120b, mount: /config/models/gpt-oss-120b}\n"
    )
    (tmp_path / "deploy.py").write_text("")
    inventory = tmp_path / "i.py"
    hosts = "{'rack': ['gpu01', 'gpu02', 'gpu03']}"
    inventory.write_text(f"from rackwright.inventory import build\nglobals().update(build(__file__, {hosts}))\n")
    calls: list[tuple[str, list[str], list[str]]] = []

    def carry_out(_: Any, purpose: str, hosts: Sequence[Any], names: Sequence[str]) -> int:
        calls.append((purpose, [host.name for host in hosts], list(names)))
        return 0

    monkeypatch.setattr(cache, "agreed", lambda _: agrees)
    monkeypatch.setattr(cache, "_plan", lambda *_: replace(plan_of(cache_values(listed())), unread=False))
    monkeypatch.setattr(cache, "_run", carry_out)
    assert main(["cache", "prune", str(inventory)]) == status
    assert [(purpose, hosts) for purpose, hosts, _ in calls] == [(CACHE_PRUNE, ["gpu01", "gpu02"])] * agrees
    assert main(["cache", "prune", str(inventory), "--dry"]) == 0
    assert len(calls) == agrees
