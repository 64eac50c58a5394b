"""Registry, image, encodings and models on a real lived-in host, and each way in which they can fail."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright_lab import faults
from rackwright_lab.hosts import share
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.servers.image import ARM64_ONLY
from tests import texts
from tests.lab.calm import needs_preparing
from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.lab.products import in_proof, with_proof
from tests.refused import refusal

pytestmark = pytest.mark.lab

REPOSITORY = "nvcr.io/nvidia/tensorrt-llm/release"
IMAGE = f"{REPOSITORY}:1.1.0rc0"
SMALL = {"repository": "nvidia/gpt-oss-120b-Eagle3", "mount": "/config/models/eagle"}
SMALLER = {"repository": "openai/gpt-oss-20b", "mount": "/config/models/gpt-oss-20b", "exclude": ["original/*"]}
BASE = {
    "repository": "openai/gpt-oss-120b",
    "mount": "/config/models/gpt-oss-120b",
    "exclude": ["original/*", "metal/*"],
}
GATED = {"repository": "meta-llama/Llama-3.1-8B-Instruct", "mount": "/config/models/llama"}
FILES = Path(__file__).parent / "staging"
COMMAND: list[str | Path] = [BIN / "pyinfra", FILES / "inventory.py", FILES / "deploy.py", "-y"]


@dataclass
class Staging:
    """One host, staged by the product's own tasks with settings of the test's own."""

    site: Site
    host: Host
    settings: dict[str, Any] = field(
        default_factory=lambda: {"image": IMAGE, "model": SMALL, "downloads": {"stall_timeout": 5}}
    )

    def run(self, *options: str, **settings: Any) -> Run:
        words = [f"{name}={value}" for name, value in self.environment(settings).items()]
        return self.site.command("env", *words, *COMMAND, *options)

    def start(self, **settings: Any) -> subprocess.Popen[bytes]:
        environment = {**self.site.environment(), **self.environment(settings)}
        command = [str(argument) for argument in COMMAND]
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def environment(self, settings: dict[str, Any]) -> dict[str, str]:
        variables = {"STAGING_HOST": self.host.name, "STAGING_SETTINGS": json.dumps({**self.settings, **settings})}
        return {**variables, "PYTHONPATH": str(ROOT)}  # the folder is a site of its own, without steps of its own

    def on_host(self, command: str) -> str:
        return self.host.run(command).stdout

    def forget_image(self) -> None:
        """As on a host that never had it."""
        self.host.run("docker image ls -q | sort -u | xargs -r docker rmi -f; rm -rf /var/lib/rackwright/images")

    def forget_models(self) -> None:
        self.host.run("rm -rf /srv/models/openai--* /srv/models/nvidia--* /srv/models/meta-llama--*")

    def models(self) -> list[str]:
        return self.on_host("ls -d /srv/models/*--*--* 2>/dev/null || true").split()

    @property
    def web(self) -> Path:
        return self.site.lab.paths.web


@pytest.fixture(scope="module")
def lived(worker_lab: Lab) -> Host:
    """Return the lived-in host, as it was made."""
    host = worker_lab.host("lived2")
    host.reset()
    return host


@pytest.fixture
def staging(site: Site, lived: Host) -> Iterator[Staging]:
    """Return the host with its servers in order, before and after."""
    faults.clear(site.lab.paths.web)
    faults.forget_requests(site.lab.paths.web)
    yield Staging(site, lived)
    faults.clear(site.lab.paths.web)
    if not site.lab.registry.server.is_on:
        site.lab.registry.heal()


STAGED = f"""
docker image inspect {IMAGE} >/dev/null 2>&1 || exit 1
[ -f /srv/encodings/o200k_base.tiktoken ] && [ -f /srv/encodings/cl100k_base.tiktoken ] || exit 1
ls /srv/models/nvidia--gpt-oss-120b-Eagle3--*/.rackwright.json >/dev/null 2>&1
"""


@pytest.fixture
def staged(staging: Staging, request: pytest.FixtureRequest) -> Staging:
    """Return the host with everything staged; tests leave it so, unless they fail or say otherwise."""
    if needs_preparing(request) or staging.host.run(STAGED, check=False).returncode:
        run = staging.run()
        assert run.status == 0, run.output
    return staging


def test_a_lived_in_host_is_staged_and_keeps_what_it_had(staging: Staging) -> None:
    logins = json.loads(staging.on_host("cat /root/.docker/config.json"))["auths"]
    files = set(staging.on_host("find /srv/models -type f -exec sha256sum {} +").splitlines())
    run = staging.run(model=BASE, draft=SMALL)
    assert run.status == 0, run.output
    after = json.loads(staging.on_host("cat /root/.docker/config.json"))["auths"]
    assert logins
    assert {name: login for name, login in after.items() if name != "nvcr.io"} == logins
    assert staging.on_host("stat -c %a:%U /root/.docker/config.json") == "600:root\n"
    assert files
    assert files <= set(staging.on_host("find /srv/models -type f -exec sha256sum {} +").splitlines())
    assert len(staging.models()) == 2
    assert staging.run(model=BASE, draft=SMALL).changed == []


def test_what_was_fetched_is_what_the_hub_has(staged: Staging) -> None:
    folder = eagle_of(staged)
    manifest = json.loads(staged.on_host(f"cat {folder}/.rackwright.json"))
    for file in manifest["files"]:
        assert file["sha256"] in staged.on_host(f"sha256sum {folder}/{file['path']}")


def test_nothing_is_asked_of_the_registry_or_the_hub_once_staged(staged: Staging) -> None:
    faults.forget_requests(staged.web)
    staged.site.lab.registry.stop()
    run = staged.run()
    assert run.status == 0, run.output
    assert run.changed == []
    assert [row for row in faults.requests(staged.web) if row["method"] != "HEAD"] == []


# -- registry and image


def test_a_refused_key_is_told_apart_from_a_missing_one(staging: Staging) -> None:
    staging.forget_image()
    refused = staging.run(registry_key="nvapi-of-last-year")
    assert refused.status == 1
    assert "nvcr.io refuses the key" in refused.output
    assert "nvapi-of-last-year" not in refused.output
    missing = staging.run(registry_key="")
    assert missing.status == 1
    assert "nvcr.io wants a key" in missing.output


def test_a_key_is_needed_only_where_the_registry_asks_for_one(staging: Staging) -> None:
    staging.forget_image()
    staging.site.lab.registry.require_key(False)
    try:
        run = staging.run(registry_key="")
        assert run.status == 0, run.output
    finally:
        staging.site.lab.registry.require_key()


@in_proof("test_leaks.py looks for such a login on the whole host")
def test_a_login_that_is_not_kept_is_nowhere_afterwards(staging: Staging) -> None:
    staging.forget_image()
    key = staging.site.lab.secrets()["registry-key"]
    run = staging.run(registry={"keep": False}, registry_key=key)
    assert run.status == 0, run.output
    assert "nvcr.io" not in json.loads(staging.on_host("cat /root/.docker/config.json"))["auths"]
    assert staging.on_host("ls /run/rackwright/secrets") == ""


@in_proof("each fault of the hub heals, by the same tries")
def test_a_registry_that_fails_is_named_after_some_tries(staging: Staging) -> None:
    staging.forget_image()
    staging.site.lab.registry.answer(503)
    try:
        run = staging.run()
    finally:
        staging.site.lab.registry.heal()
    assert run.status == 1
    assert texts.NOT_PULLED.format(registry="nvcr.io", tries=4) in run.output


def test_a_tag_that_does_not_exist_is_named(staging: Staging) -> None:
    run = staging.run(image=f"{REPOSITORY}:9.9.9")
    assert run.status == 1
    assert f"nvcr.io has no {REPOSITORY}:9.9.9 (404)" in run.output


def test_an_image_for_other_machines_is_refused_and_leaves_nothing(staging: Staging) -> None:
    run = staging.run(image=f"{REPOSITORY}:{ARM64_ONLY}")
    assert run.status == 1
    assert "arm64" in run.output
    assert "linux/amd64" in run.output
    assert ARM64_ONLY not in staging.on_host("docker image ls")


@in_proof("tests/unit/test_image.py reports a moved tag and changes nothing")
def test_a_tag_that_moved_on_the_host_restarts_and_pulls_nothing(staged: Staging) -> None:
    assert staged.run(image=f"{REPOSITORY}:1.2.0rc6").status == 0
    staged.on_host(f"docker tag {REPOSITORY}:1.2.0rc6 {IMAGE}")
    try:
        run = staged.run()
        assert run.status == 0, run.output
        assert run.changed == []
        assert f"the tag {IMAGE} has moved on this host" in run.output
    finally:
        staged.forget_image()


def test_a_full_disk_at_the_image_is_named(staging: Staging) -> None:
    staging.forget_image()
    staging.host.run("systemctl stop docker.socket docker")
    staging.host.fill_disk("/var/lib/docker", 8)
    staging.host.run("systemctl start docker")
    try:
        run = staging.run()
    finally:
        staging.host.run("systemctl stop docker.socket docker")
        staging.host.free_disk("/var/lib/docker")
        staging.host.run("systemctl start docker")
    assert run.status == 1
    assert "the disk is full" in run.output
    assert staging.run().status == 0


# -- encodings


def test_wrong_encodings_are_not_taken_and_the_old_file_stays(staged: Staging) -> None:
    path = "/srv/encodings/o200k_base.tiktoken"
    staged.on_host(f"echo old >{path}")
    faults.set_fault(staged.web, "wrong_bytes", path="*o200k*")
    run = staged.run()
    assert run.status == 1
    assert "has the SHA-256" in run.output
    assert staged.on_host(f"cat {path}") == "old\n"
    assert staged.on_host("ls /srv/encodings").split() == ["cl100k_base.tiktoken", "o200k_base.tiktoken"]
    faults.clear(staged.web)
    assert staged.run().status == 0
    assert "446a9538cb6c348e" in staged.on_host(f"sha256sum {path}")


# -- models


HUB_FAULTS: dict[str, tuple[str, str, float | str | None, str]] = {
    "gated": ("403", "*resolve*", None, "is gated"),
    "unknown": ("404", "/api/*", "RepoNotFound", "was not found on the hub"),
    "no such revision": ("404", "/api/*", "RevisionNotFound", "has no revision main (404)"),
    "too often": ("429", "/api/*", 5000, "limits how often"),
    "wrong bytes": ("wrong_bytes", "*cdn*", None, "arrived with wrong bytes, twice"),
}


@pytest.mark.parametrize(
    "fault", with_proof(HUB_FAULTS, {"wrong bytes"}, "each is one row of a table; the gated model's is below")
)
def test_each_fault_of_the_hub_has_its_own_text_and_heals(staged: Staging, fault: str) -> None:
    kind, path, value, message = HUB_FAULTS[fault]
    staged.forget_models()
    faults.set_fault(staged.web, kind, path=path, value=value)
    run = staged.run()
    assert run.status == 1
    assert message in run.output
    assert not [folder for folder in staged.models() if not folder.endswith(".partial")]
    faults.clear(staged.web)
    healed = staged.run()
    assert healed.status == 0, healed.output


def test_a_gated_model_wants_a_token_and_gets_it_by_a_file_only(staged: Staging) -> None:
    run = staged.run(model=GATED, models={"hub_token": None})
    assert run.status == 1
    refusal(run.output, "RW2903", GATED["repository"])
    assert f"{GATED['repository']}{texts.GATED}" in run.output
    token = staged.site.lab.secrets()["hub-token"]
    run = staged.run("-vvv", "--debug", model=GATED)
    assert run.status == 0, run.output
    assert token not in run.output
    assert staged.site.lab.secrets()["registry-key"] not in run.output
    places = "/run /tmp /var/tmp /var/lib/rackwright /var/log /etc /srv"
    assert staged.host.run(f"grep -rIl -e {token} {places}", check=False).stdout == ""


@in_proof("tests/programs/test_fetch_model.py stalls the same program")
def test_a_stall_is_got_over(staged: Staging) -> None:
    staged.forget_models()
    faults.set_fault(staged.web, "stall", path="*cdn*", value=100_000, times=1)
    run = staged.run(model=BASE, downloads={"stall_timeout": 10})
    assert run.status == 0, run.output
    assert "no byte came for 10 s" in run.output


@in_proof("the disk is full at the image, in the same words")
def test_a_full_disk_at_the_model_is_named_and_heals(staged: Staging) -> None:
    staged.forget_models()
    staged.host.fill_disk("/srv/models", 70)
    try:
        run = staged.run(model=BASE)
    finally:
        staged.host.free_disk("/srv/models")
    assert run.status == 1
    assert "the disk is full" in run.output
    assert "df -h /srv/models" in run.output
    assert staged.run(model=BASE).status == 0


def eagle_of(staged: Staging) -> str:
    """Return the folder of the draft model, and not the one that was moved away beside it."""
    (folder,) = [path for path in staged.models() if "Eagle3" in path and ".before-" not in path]
    return folder


def test_a_damaged_file_is_put_right_and_only_that_file(staged: Staging) -> None:
    folder = eagle_of(staged)
    digest = hashlib.sha256(staged.on_host(f"cat {folder}/config.json").encode()).hexdigest()
    staged.on_host(f"echo '{{}}' >{folder}/config.json")
    faults.forget_requests(staged.web)
    run = staged.run()
    assert run.status == 0, run.output
    assert digest in staged.on_host(f"sha256sum {folder}/config.json")
    assert len([row for row in faults.requests(staged.web) if row["method"] == "GET"]) == 1


@in_proof("a damaged file is put right, by the same verification")
def test_a_folder_that_somebody_could_write_to_is_verified_anew_and_closed(staged: Staging) -> None:
    folder = eagle_of(staged)
    digest = hashlib.sha256(staged.on_host(f"cat {folder}/config.json").encode()).hexdigest()
    staged.on_host(f"chown -R ops {folder}; runuser -u ops -- sh -c 'echo tampered >{folder}/config.json'")
    faults.forget_requests(staged.web)
    run = staged.run()
    assert run.status == 0, run.output
    assert texts.SOMEBODY_ELSES.format(folder=folder) in run.output
    assert digest in staged.on_host(f"sha256sum {folder}/config.json")
    assert staged.on_host(f"find {folder} ! -user root -o -perm /022 ! -type l") == ""
    fetched = [
        row["path"] for row in faults.requests(staged.web) if row["method"] == "GET" and "/api/" not in row["path"]
    ]
    assert len(fetched) == 1, fetched
    assert staged.run().changed == []


def test_a_hugging_face_cache_on_the_host_is_copied_and_not_fetched(staged: Staging) -> None:
    """Users of plain `docker run` have one."""
    folder = eagle_of(staged)
    cache = "/home/ops/.cache/huggingface/hub"
    cached = f"{cache}/models--nvidia--gpt-oss-120b-Eagle3"
    staged.on_host(
        f'commit=$(sed -n \'s/^ *"commit": "\\([0-9a-f]*\\)".*/\\1/p\' {folder}/.rackwright.json); '
        f"mkdir -p {cache}/blobs/00 {cached}/blobs {cached}/snapshots/$commit; cd {folder}; n=0; "
        "find . -type f ! -name .rackwright.json | while read -r file; do n=$((n + 1)); shared=00/$(printf %064d $n); "
        f'cp "$file" {cache}/blobs/$shared; ln -s ../../blobs/$shared {cached}/blobs/$n; '
        f'mkdir -p "{cached}/snapshots/$commit/$(dirname "$file")"; '
        f'ln -s {cached}/blobs/$n "{cached}/snapshots/$commit/$file"; done; '
        f"chown -R ops /home/ops/.cache; chmod 0700 /home/ops; cd /; rm -rf {folder}"
    )
    faults.forget_requests(staged.web)
    run = staged.run()
    assert run.status == 0, run.output
    got = [row["path"] for row in faults.requests(staged.web) if row["method"] == "GET"]
    assert [path for path in got if "/api/" not in path] == []
    assert staged.on_host(f"find {folder} ! -user root -o -type l") == ""
    staged.on_host("rm -rf /home/ops/.cache")
    assert staged.run().changed == []


@in_proof("the share below is made read-only as well, and refuses in the same words")
def test_a_read_only_store_is_verified_once_used_as_it_is_and_refused_in_words(staged: Staging) -> None:
    records, mark = "/var/lib/rackwright/manifests", "/srv/models"
    staged.on_host(f"mount --bind {mark} {mark}; mount -o remount,bind,ro {mark}; rm {records}/*Eagle3*")
    try:
        faults.forget_requests(staged.web)
        run = staged.run()
        assert run.status == 0, run.output
        assert texts.NOT_VERIFIED.format(folder=mark) in run.output
        got = [row["path"] for row in faults.requests(staged.web) if row["method"] == "GET"]
        assert [path for path in got if "/api/" not in path] == []
        assert staged.run().changed == []
        refused = staged.run(model=SMALLER)
        assert refused.status == 1
        assert f"{texts.READ_ONLY.format(folder=mark)}{mark}/" in refused.output
        assert texts.FILL_ELSEWHERE in refused.output
        assert "Traceback" not in refused.output
    finally:
        staged.on_host(f"umount {mark}")
    assert staged.run().changed == []


@in_proof("models in a folder of the host's own are filled and verified")
def test_a_share_on_which_root_is_nobody_is_filled_and_used_and_refused_in_words(staged: Staging) -> None:
    export = staged.site.lab.paths.root / "export"
    export.mkdir()
    share.mount_in(staged.host, export, "/srv/models")
    try:
        run = staged.run()
        assert run.status == 0, run.output
        assert staged.on_host(f"stat -c %U {eagle_of(staged)}/config.json") == "nobody\n"
        assert staged.run().changed == []
        _tamper(export / Path(eagle_of(staged)).name / "config.json")
        run = staged.run()
        assert run.status == 0, run.output
        assert "not as verified: config.json" in run.output
        share.refuse_writes(export)
        staged.on_host("rm /var/lib/rackwright/manifests/*Eagle3*")
        run = staged.run()
        assert run.status == 0, run.output
        assert staged.run().changed == []
        refused = staged.run(model=SMALLER)
        assert refused.status == 1
        assert texts.READ_ONLY.format(folder="/srv/models") in refused.output
        assert "Traceback" not in refused.output
    finally:
        staged.on_host("umount --lazy /srv/models")
        shutil.rmtree(export)
    run = staged.run()
    assert run.status == 0, run.output
    assert "was not made by Rackwright" in run.output, "what was verified was another store's"


def _tamper(file: Path) -> None:
    """Other bytes, and all that an ordinary user can do to hide it."""
    before = file.stat()
    file.write_bytes(b"x" * before.st_size)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@in_proof("test_ssh_faults.py has a job that outlives its connection, and is joined")
def test_the_download_outlives_a_killed_run_and_the_next_one_joins_it(staged: Staging) -> None:
    staged.forget_models()
    faults.set_fault(staged.web, "slow", path="*cdn*", value=512 << 10)
    killed = staged.start(model=BASE)
    _wait_for(lambda: bool(staged.on_host("ls -d /srv/models/*.partial 2>/dev/null || true")))
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert "active" in staged.on_host("systemctl is-active 'rackwright-job-model-*'")
    run = staged.run(model=BASE)
    assert run.status == 0, run.output
    assert texts.JOINED in run.output
    assert staged.run(model=BASE).changed == []


@in_proof("test_cuts.py cuts the power while a host fetches")
def test_a_reboot_in_the_middle_loses_nothing(staged: Staging) -> None:
    staged.forget_models()
    faults.set_fault(staged.web, "slow", path="*cdn*", value=1 << 20)
    cut = staged.start(model=BASE)
    _wait_for(lambda: bool(staged.on_host("find /srv/models -name '*.part' -size +1000k")))
    staged.host.kill_power()
    os.kill(cut.pid, signal.SIGKILL)
    cut.wait()
    staged.host.start()
    faults.clear(staged.web)
    run = staged.run(model=BASE)
    assert run.status == 0, run.output
    assert texts.CONTINUED in run.output


def _wait_for(true: Any, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.3)


def test_a_lock_holds_the_bytes_when_the_branch_moves_and_the_host_is_new(staged: Staging) -> None:
    folder = eagle_of(staged)
    lock = FILES / f"rackwright.lock.{staged.site.lab.paths.id}.yml"
    words = [f"{name}={value}" for name, value in staged.environment({}).items()]
    command: list[str | Path] = ["env", *words, BIN / "rackwright", "pin", FILES / "inventory.py"]
    try:
        of_hosts = staged.site.command(*command, "--from-hosts")
        assert of_hosts.status == 0, of_hosts.output
        locked = yaml.safe_load(lock.read_text())
        lock.unlink()
        resolved = staged.site.command(*command)
        assert resolved.status == 0, resolved.output
        locked_again = yaml.safe_load(lock.read_text())
        assert locked_again["images"] == locked["images"] != {}
        for name, model in locked_again["models"].items():
            assert model["commit"] == locked["models"][name]["commit"]
            assert model["files"].keys() == locked["models"][name]["files"].keys()
        assert not (FILES / "rackwright.lock.yml").exists()
        staged.forget_models()
        staged.forget_image()
        faults.move_branch(staged.web, str(SMALL["repository"]), 1)
        run = staged.run()
        assert run.status == 0, run.output
        assert staged.models() == [folder]
        assert "at sha256:" in run.output
        assert staged.run().changed == []
    finally:
        lock.unlink(missing_ok=True)
        faults.move_branch(staged.web, str(SMALL["repository"]), 2)
