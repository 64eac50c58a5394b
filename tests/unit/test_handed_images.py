"""Images that hosts take from each other: the lock's lists, each host's part, its job, and the registry for Docker."""

from __future__ import annotations

import fcntl
import json
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rackwright.bundle.image_lists import files_of
from rackwright.bundle.images import INDEXES, MANIFESTS, ImageSource
from rackwright.concerns.docker import DOCKER
from rackwright.concerns.docker.apt import OperatingSystem
from rackwright.concerns.docker.seen import SeenDocker
from rackwright.concerns.handed_images import handed_on, image_sharers
from rackwright.concerns.image import IMAGE, LocalImage, SeenImages, parse
from rackwright.concerns.models import MODELS, SeenModels
from rackwright.concerns.models.neighbours import Link
from rackwright.concerns.preflight.concern import fetch_of
from rackwright.concerns.registry import REGISTRY, SeenLogin
from rackwright.plan.change import Change, Job, Refuse, Shell
from rackwright.plan.concern import HostReading
from rackwright.plan.hand_on import HandsOn, handovers
from rackwright.remote.job_scripts import start_script
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.image_file import ImageFile, for_machine
from rackwright.settings.secret import Secret
from rackwright.sources.lockfile import Lock, LockedImageFile, load_lock, locked, write_lock

DIGEST = "sha256:" + "1" * 64
INDEX, PLATFORM, OTHER, CONFIG, LAYER, ARM = ("1" * 64, *(figure * 64 for figure in "23456"))
FILES = (
    ImageFile(INDEX, 300, INDEXES[0]),
    ImageFile(PLATFORM, 400, MANIFESTS[0], "amd64"),
    ImageFile(OTHER, 400, MANIFESTS[0], "arm64"),
    ImageFile(CONFIG, 500, machine="amd64"),
    ImageFile(LAYER, 1 << 30, machine="amd64"),
    ImageFile(ARM, 1 << 30, machine="arm64"),
)
MODEL = {"repository": "openai/gpt-oss-20b", "revision": "c" * 40, "mount": "/config/models/base"}
NVIDIA, DOCKER_HUB = "nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0", "vllm/vllm-openai:v0.14.1"
TOKEN, KEY = "t" * 64, "nvapi-of-the-tests"


def settings(files: tuple[ImageFile, ...] = FILES, image: str = NVIDIA, **keys: Any) -> HostSettings:
    hand_on = {"interface": "bond1", "images": True}
    base = {"model": MODEL, "image": image, "image_digest": DIGEST, "downloads": {"hand_on": hand_on}}
    found = HostSettings.model_validate({**base, "registry": {"key": Secret(KEY)}, **keys})
    return found.with_image_files({DIGEST: files} if files else {})


def reading(
    *images: LocalImage, machine: str = "amd64", number: int = 1, store: str = "", folders: tuple[str, ...] = ()
) -> HostReading:
    on_host = SeenImages(True, images, {}, whole={DIGEST: store} if store else {}, folders=frozenset(folders))
    return HostReading(
        {
            MODELS.name: SeenModels((), frozenset(), links=(Link("bond1", f"10.0.0.{number}", 10_000),)),
            IMAGE.name: on_host,
            DOCKER.name: SeenDocker(OperatingSystem("debian", (), "bookworm", "12", machine), "up"),
            REGISTRY.name: SeenLogin("600:root", "salt", None, None),
        }
    )


def planned(given: HostSettings, **fleet: HostReading) -> dict[str, list[Change]]:
    """Return each host's changes in its images, in a run of these hosts."""
    parts = [image_sharers(name, given, one, serves=False) for name, one in fleet.items()]
    names = {name for part in parts for name in part}
    chains = {name: handovers([part[name] for part in parts if name in part]) for name in names}
    token = {"run_token": Secret(TOKEN)}
    found = {}
    for host, one in fleet.items():
        mine = HandsOn({name: chain[host] for name, chain in chains.items() if host in chain}, token)
        found[host] = handed_on(IMAGE.pending(given, one), given, replace(one, hands_on=mine))
    return found


def job_of(changes: list[Change]) -> Job:
    [change] = changes
    [job] = change.steps
    assert isinstance(job, Job)
    return job


def value_of(job: Job, name: str) -> str:
    row = next(row for row in job.script.splitlines() if row.startswith(f"{name}="))
    [text] = shlex.split(row.removeprefix(f"{name}="))
    return text


def spec_of(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(value_of(job, "spec"))
    return found


def test_the_first_host_asks_the_registry_and_the_next_one_the_first_host() -> None:
    changes = planned(settings(), a=reading(), b=reading(number=2))
    first, second = (spec_of(job_of(changes[name])) for name in "ab")
    assert first["origin"] == {"url": "https://nvcr.io/v2/nvidia/tensorrt-llm/release/", "registry": True, "after": 120}
    assert first["listen"] == {"address": "10.0.0.1", "port": 7462, "allow": ["10.0.0.2"]}
    assert second["origin"] is None
    assert [source["name"] for source in second["sources"]] == ["a"]
    assert changes["b"][0].why.partition("; ")[2].split()[0] == "a"
    assert job_of(changes["a"]).at_once == 8
    assert job_of(changes["b"]).at_once is None


def test_a_host_takes_the_manifests_configuration_and_layers_of_its_own_architecture() -> None:
    spec = spec_of(job_of(planned(settings(), a=reading(), b=reading(number=2))["a"]))
    names = [(file["path"], file["at"]) for file in spec["files"]]
    manifests = [(f"blobs/sha256/{one}", f"manifests/sha256:{one}") for one in (INDEX, PLATFORM)]
    assert names == [*manifests, *((f"blobs/sha256/{one}", f"blobs/sha256:{one}") for one in (CONFIG, LAYER))]
    assert for_machine(FILES[:1], "amd64") == (), "an index alone has no layers"


def test_hosts_of_two_architectures_are_two_chains() -> None:
    changes = planned(settings(), a=reading(), b=reading(machine="arm64", number=2))
    assert [is_ordinary(job_of(changes[name])) for name in "ab"] == [True, True], "each is alone in its own"


def is_ordinary(job: Job) -> bool:
    """Return True for a pull from the registry."""
    return not any(row.startswith("spec=") for row in job.script.splitlines())


def test_a_host_alone_and_one_without_the_setting_pull_as_ever() -> None:
    alone = job_of(planned(settings(), a=reading())["a"])
    assert is_ordinary(alone)
    plain = settings(downloads={"hand_on": {"interface": "bond1"}})
    assert is_ordinary(job_of(planned(plain, a=reading(), b=reading(number=2))["b"]))
    assert image_sharers("a", plain, reading(), serves=False) == {}


def test_a_pull_knows_the_sizes_that_the_lock_file_lists() -> None:
    rows = [f"amd64 {CONFIG[:12]} 500", f"amd64 {LAYER[:12]} {1 << 30}", f"arm64 {ARM[:12]} {1 << 30}"]
    assert "\nsizes='" + "\n".join(rows) + "'\n" in job_of(planned(settings(), a=reading())["a"]).script
    [change] = IMAGE.pending(settings(files=(), downloads={}), reading())
    assert "\nsizes=''\n" in job_of([change]).script


HAS = LocalImage("nvcr.io/nvidia/tensorrt-llm/release", "1.1.0rc0", DIGEST)
FOLDER = "1" * 16


def test_a_host_whose_docker_kept_no_files_takes_no_part() -> None:
    assert image_sharers("a", settings(), reading(HAS), serves=False) == {}


def test_a_host_that_has_the_files_hands_them_on_and_the_registry_is_not_asked() -> None:
    store = "/var/lib/containerd/io.containerd.content.v1.content"
    changes = planned(settings(), a=reading(HAS, store=store), b=reading(number=2))
    [change] = changes["a"]
    assert change.sentence == f"hand {NVIDIA} on to b (it is not there)"
    keeper = job_of(changes["a"])
    spec = spec_of(keeper)
    assert (spec["sources"], spec["origin"], spec["folder"]) == ([], None, store)
    assert keeper.helps
    assert "pull_once" not in keeper.script
    assert spec_of(job_of(changes["b"]))["origin"] is None


def test_a_host_that_serves_on_unified_memory_hands_on_only_under_a_cap() -> None:
    def parts(serves: bool, **downloads: int) -> int:
        hand_on = {"hand_on": {"interface": "bond1", "images": True}}
        given = settings(hardware={"unified_memory": True}, downloads={**hand_on, **downloads})
        return len(image_sharers("a", given, reading(HAS, store="/x"), serves=serves))

    assert (parts(serves=False), parts(serves=True), parts(serves=True, rate_mib=100)) == (1, 0, 1)


def test_files_stay_only_where_they_are_kept_or_still_to_be_loaded() -> None:
    keeping = settings(downloads={"hand_on": {"interface": "bond1", "images": True, "keep_images": True}})
    [removal] = IMAGE.pending(settings(), reading(HAS, folders=(FOLDER,)))
    assert removal.what == f"remove /var/lib/rackwright/image-files/{FOLDER}"
    assert IMAGE.pending(keeping, reading(HAS, folders=(FOLDER,))) == []
    assert [change.what[:4] for change in IMAGE.pending(settings(), reading(folders=(FOLDER,)))] == ["pull"]
    [other] = IMAGE.pending(keeping, reading(HAS, folders=("9" * 16,)))
    assert other.what.endswith("9" * 16), "those of an image that the settings no longer name"
    for given, keeps in ((settings(), False), (keeping, True)):
        job = job_of(planned(given, a=reading(), b=reading(number=2))["a"])
        assert ("\nclean=''\n" in job.script) is keeps


def removes(folder: Path) -> bool:
    """Have a host remove a folder of files that it needs no more, and return whether it is gone."""
    [removal] = IMAGE.pending(settings(), reading(HAS, folders=(FOLDER,)))
    [step] = removal.steps
    assert isinstance(step, Shell)
    script = step.script.replace(f"/var/lib/rackwright/image-files/{FOLDER}", str(folder))
    subprocess.run(["sh", "-c", script], check=True)
    return not folder.exists()


def test_files_go_also_where_a_host_died_before_it_took_any(tmp_path: Path) -> None:
    empty, whole = tmp_path / "files/empty", tmp_path / "files/whole"
    empty.mkdir(parents=True)
    (whole / ".parts").mkdir(parents=True)
    assert removes(empty)
    with (whole / ".parts/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not removes(whole), "a job still hands them on"
    assert removes(whole)
    assert removes(whole), "what is gone already needs nothing"
    assert not whole.parent.exists()


def test_a_host_says_where_all_files_of_an_image_are() -> None:
    rows = f"whole {DIGEST} /var/lib/x\nfolder {FOLDER}\nfolder ../../etc\nfolder evil\nwhole a b c\n"
    found = parse(rows)
    assert (dict(found.whole), set(found.folders)) == ({DIGEST: "/var/lib/x"}, {FOLDER})
    text = IMAGE.read(settings())
    assert f"{DIGEST} amd64 {INDEX} {PLATFORM} {CONFIG} {LAYER}" in text
    assert f"{DIGEST} arm64 {INDEX} {OTHER} {ARM}" in text
    assert LAYER not in IMAGE.read(settings(downloads={"hand_on": {"interface": "bond1"}}))


def test_the_login_goes_to_the_host_that_asks_the_registry_and_the_token_to_all() -> None:
    changes = planned(settings(), a=reading(), b=reading(number=2))
    first, second = job_of(changes["a"]), job_of(changes["b"])
    assert "registry_login" in first.secrets
    assert "registry_login" not in second.secrets
    for job in (first, second):
        assert job.secrets["run_token"].unmask() == TOKEN
        assert not {TOKEN, KEY} & set(job.script.split())
        assert spec_of(job)["secrets"] == f"/run/rackwright/secrets/{job.name}"
        assert f"secrets={spec_of(job)['secrets']}" in start_script(job)


def test_docker_hubs_images_are_loaded_under_the_loopback_address_first() -> None:
    job = job_of(planned(settings(image=DOCKER_HUB), a=reading(), b=reading(number=2))["a"])
    assert value_of(job, "here") == f"127.83.87.2:600/vllm/vllm-openai@{DIGEST}"
    assert value_of(job, "always") == "yes"
    assert spec_of(job)["origin"]["url"] == "https://registry-1.docker.io/v2/vllm/vllm-openai/"
    assert value_of(job_of(planned(settings(), a=reading(), b=reading(number=2))["a"]), "always") == ""


def test_the_kinds_of_manifests_reach_the_hosts_own_registry() -> None:
    job = job_of(planned(settings(), a=reading(), b=reading(number=2))["b"])
    assert json.loads(value_of(job, "kinds")) == {INDEX: INDEXES[0], PLATFORM: MANIFESTS[0]}


def test_the_pull_stands_between_taking_and_what_follows_it() -> None:
    script = job_of(planned(settings(), a=reading(), b=reading(number=2))["a"]).script
    order = [
        "open_port || exit 1",
        "hand_on.pyz",
        "way_in()",
        "hand_on &",
        "pull_once()",
        "\n)\nstatus=$?\n",
        ': >"$JOB/loaded"',
    ]
    assert [script.index(text) for text in order] == sorted(script.index(text) for text in order)


@pytest.mark.parametrize("given", [{"files": ()}, {"image_digest": None}])
def test_an_image_whose_files_the_lock_does_not_list_is_refused(given: dict[str, Any]) -> None:
    [change] = IMAGE.pending(settings(**given), reading())
    [step] = change.steps
    assert isinstance(step, Refuse)
    assert step.code == "RW2710"
    assert "rackwright pin" in step.text
    assert IMAGE.pending(settings(files=()), reading(HAS)) == [], "what is there needs no list"


def test_images_have_the_ports_behind_those_of_models() -> None:
    draft = {**MODEL, "repository": "nvidia/draft", "mount": "/config/models/draft"}
    assert list(settings(draft=draft).hand_on_image_ports) == [7463]
    with pytest.raises(ValueError, match="7462 is that of endpoint llm"):
        settings(port=7462)


def test_the_lists_of_images_come_back_from_the_lock_file(tmp_path: Path) -> None:
    files = {one.sha256: LockedImageFile(size=one.size, kind=one.kind, machine=one.machine) for one in FILES}
    write_lock(tmp_path, Lock({NVIDIA: DIGEST}, image_files={DIGEST: files}))
    lock = load_lock(tmp_path)
    assert lock.image_files == {DIGEST: files}
    assert set(locked(settings(files=()), lock).image_files[DIGEST]) == set(FILES)
    assert f"{LAYER}: {{" not in (tmp_path / "rackwright.lock.yml").read_text()


def test_a_lock_without_lists_has_no_line_of_them(tmp_path: Path) -> None:
    assert "image_files" not in write_lock(tmp_path, Lock({NVIDIA: DIGEST})).read_text()


def test_files_that_several_architectures_need_are_for_all() -> None:
    by_machine = {}
    for machine, sha256 in (("amd64", PLATFORM), ("arm64", OTHER)):
        source = ImageSource(None, None, NVIDIA, DIGEST, {machine})  # type: ignore[arg-type]
        source.manifests = {INDEX: (INDEXES[0], b"x" * 300), sha256: (MANIFESTS[0], b"x" * 400)}
        source.blobs = {LAYER: 7, ARM if machine == "arm64" else CONFIG: 8}
        by_machine[machine] = source
    found = {sha256: one.machine for sha256, one in files_of(by_machine).items()}
    assert found == {INDEX: "", PLATFORM: "amd64", OTHER: "arm64", LAYER: "", CONFIG: "amd64", ARM: "arm64"}


@pytest.mark.parametrize(
    ("files", "machine", "size"),
    [(FILES, "amd64", 300 + 400 + 500 + (1 << 30)), (FILES, "riscv64", 0), ((), "amd64", 0)],
)
def test_a_missing_image_weighs_what_the_lock_file_lists_of_it_and_takes_its_room_unpacked(
    files: tuple[ImageFile, ...], machine: str, size: int
) -> None:
    (pull,) = IMAGE.pending(settings(files, downloads={}), reading(machine=machine))
    found = fetch_of(IMAGE.name, pull)
    assert found is not None
    published = 60_000_000_000
    assert (pull.about, found.size, found.exact) == (size, size or published, False)
    assert found.room == published, "the lock file says nothing of its size on the disk"
