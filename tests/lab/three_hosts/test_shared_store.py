"""A store that two hosts share: filled once, verified, repaired, left whole by a host that goes; one without writes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.teardown.teardown import ON_SHARE
from rackwright_lab import faults
from rackwright_lab.hosts import share
from rackwright_lab.hosts.host import Host
from tests import texts
from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.lab.products import in_proof

pytestmark = pytest.mark.lab
IMAGE = "nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0"
SMALL = {"repository": "nvidia/gpt-oss-120b-Eagle3", "mount": "/config/models/eagle"}
GIVEN_UP = {**SMALL, "repository": "nvidia/gpt-oss-120b-Eagle3-v2"}
OTHER = {**SMALL, "repository": "nvidia/gpt-oss-120b-Eagle3-short-context"}
WEIGHTS = "model.safetensors"
STAGING = "tests/lab/staging"


@dataclass
class SharedStore:
    """Two hosts with one folder of this machine as their store."""

    site: Site
    hosts: list[Host]
    export: Path

    def words(self, **settings: Any) -> list[str]:
        """Return what stands before a command, so that it goes by the test's settings."""
        wanted = {"image": IMAGE, "model": SMALL, "downloads": {"stall_timeout": 10}, **settings}
        names = " ".join(host.name for host in self.hosts)
        return ["env", f"STAGING_HOST={names}", f"STAGING_SETTINGS={json.dumps(wanted)}", f"PYTHONPATH={ROOT}"]

    def stage(self, **settings: Any) -> Run:
        command: tuple[str | Path, ...] = (BIN / "pyinfra", f"{STAGING}/inventory.py", f"{STAGING}/deploy.py", "-y")
        return self.site.command(*self.words(**settings), *command)

    def cache(self, verb: str, *options: str, **settings: Any) -> Run:
        command: tuple[str | Path, ...] = (BIN / "rackwright", "cache", verb, f"{STAGING}/inventory.py", *options)
        return self.site.command(*self.words(**settings), *command)

    def fetched(self) -> int:
        """Return how often the weights were asked for since the last look."""
        rows = faults.requests(self.site.lab.paths.web)
        faults.forget_requests(self.site.lab.paths.web)
        return len([row for row in rows if row["method"] == "GET" and row["path"].endswith(WEIGHTS)])

    def model(self) -> Path:
        (folder,) = self.export.glob("nvidia--*")
        return folder

    def flip(self) -> None:
        """Change one byte, and leave size and time."""
        path = self.model() / WEIGHTS
        before = path.stat()
        with path.open("r+b") as file:
            file.seek(4096)
            byte = file.read(1)
            file.seek(4096)
            file.write(bytes([byte[0] ^ 1]))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def store(fleet: Site, tmp_path: Path) -> Iterator[SharedStore]:
    """Return the store, empty; the hosts have the image."""
    hosts, export = fleet.lab.hosts[:2], tmp_path / "export"
    export.mkdir()
    tmp_path.chmod(0o755)
    for host in hosts:
        host.run("rm -f /var/lib/rackwright/manifests/nvidia--*")
        share.mount_in(host, export, "/srv/models")
    faults.clear(fleet.lab.paths.web)
    faults.forget_requests(fleet.lab.paths.web)
    yield SharedStore(fleet, hosts, export)
    for host in hosts:
        host.run("umount --lazy /srv/models; rm -f /var/lib/rackwright/manifests/nvidia--*")
    shutil.rmtree(export)


@in_proof("tests/unit/test_caches.py decides it; here are real mounts")
def test_a_store_is_filled_once_and_repaired_by_one_host(store: SharedStore) -> None:
    run = store.stage()
    assert run.status == 0, run.output
    assert store.fetched() == 1, "the second host waits for the first"
    assert store.stage().changed == []

    listing = store.cache("ls", "--json")
    values = json.loads(listing.output[listing.output.index("{") :])
    found = [entry for host in values["hosts"] for entry in host["entries"] if "Eagle3" in entry["path"]]
    assert [entry["shared"] for entry in found] == [True, True]

    right = (store.model() / WEIGHTS).read_bytes()
    store.flip()
    verify = store.cache("verify")
    assert verify.status == 2, verify.output
    assert "RW0854" in verify.output
    repair = store.cache("repair")
    assert repair.status == 0, repair.output
    assert store.fetched() == 1, "one host repairs it, the other one finds it right"
    assert (store.model() / WEIGHTS).read_bytes() == right
    again = store.cache("verify")
    assert again.status == 0, again.output


@in_proof("tests/lab/test_staging.py refuses to fill such a store in the same words")
def test_a_store_that_takes_no_writes_is_verified_and_its_repair_is_refused_in_words(store: SharedStore) -> None:
    assert store.stage().status == 0
    share.refuse_writes(store.export)
    assert store.stage().status == 0, "each host verifies it again: its owner is another one"
    assert store.cache("verify").status == 0
    store.flip()
    verify = store.cache("verify")
    assert verify.status == 2, verify.output
    repair = store.cache("repair")
    assert repair.status == 1, repair.output
    assert texts.READ_ONLY.format(folder="/srv/models") in repair.output
    assert texts.FILL_ELSEWHERE in repair.output
    assert "Traceback" not in repair.output


def is_calm(host: Host, job: str) -> bool:
    """Return True while no such job runs on a host."""
    return bool(host.run(f"systemctl is-active -q 'rackwright-job-{job}-*'", check=False).returncode)


def begin(store: SharedStore, command: list[str]) -> subprocess.Popen[str]:
    """Begin a command, in a session of its own."""
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=store.site.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def wait_for(what: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def interrupt(store: SharedStore, verb: str, job: str) -> None:
    """Begin a verb, and press Ctrl-C once a host works for it."""
    run = begin(store, [*store.words(), str(BIN / "rackwright"), "cache", verb, f"{STAGING}/inventory.py", "--plain"])
    wait_for(lambda: not all(is_calm(host, job) for host in store.hosts))
    os.killpg(run.pid, signal.SIGINT)
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 130, output
    assert "Traceback" not in output


@in_proof("tests/lab/test_staging.py has a download that outlives its run")
def test_ctrl_c_ends_a_repair_and_the_next_one_finishes_it(store: SharedStore) -> None:
    assert store.stage().status == 0
    right = (store.model() / WEIGHTS).read_bytes()
    store.flip()
    assert store.cache("verify").status == 2
    faults.set_fault(store.site.lab.paths.web, "slow", path="*cdn*", value=256 << 10)
    interrupt(store, "repair", "model")
    faults.clear(store.site.lab.paths.web)
    repair = store.cache("repair", "--plain")
    assert repair.status == 0, repair.output
    assert (store.model() / WEIGHTS).read_bytes() == right
    assert {path.name for path in store.export.iterdir()} == {store.model().name}
    verify = store.cache("verify")
    assert verify.status == 0, verify.output


@in_proof("tests/unit/test_teardown.py and tests/unit/test_caches.py decide it; here another host serves, and fills")
def test_a_host_that_goes_leaves_a_share_as_the_others_need_it(store: SharedStore) -> None:
    stays, goes = store.hosts
    web = store.site.lab.paths.web
    assert store.stage(model=GIVEN_UP).status == 0
    whole = store.model()
    right = (whole / WEIGHTS).read_bytes()
    faults.set_fault(web, "slow", path="*cdn*", value=8 << 10)
    deploy = [str(BIN / "pyinfra"), f"{STAGING}/inventory.py", f"{STAGING}/deploy.py", "-y"]
    run = begin(store, [*store.words(model=OTHER), *deploy])
    wait_for(lambda: any(store.export.glob("*short-context*.partial/.parts/*.part")))
    wait_for(lambda: not any(is_calm(host, "model") for host in store.hosts))
    wait_for(lambda: any(map(waits, store.hosts)))
    run.kill()
    run.wait()
    if waits(stays):
        stays, goes = goes, stays

    limit = ("--limit", goes.name)
    inside = f"/srv/models/{whole.name}"
    cut = next(store.export.glob("*short-context*.partial"))
    words = [*store.words(model=OTHER), str(BIN / "rackwright")]
    try:
        pruned = store.site.command(*words, "cache", "prune", f"{STAGING}/inventory.py", *limit, "-y")
        assert pruned.status == 0, pruned.output
        assert f"{inside} {texts.STAYS_ON_SHARE}" in pruned.output
        torn = store.site.command(*words, "teardown", f"{STAGING}/inventory.py", *limit, "-y", "--purge")
        assert torn.status == 0, torn.output
        assert torn.output.count(f"({ON_SHARE})") == 2, torn.output
        assert cut.exists(), "the other host is filling it"
        faults.clear(web)
        wait_for(lambda: is_calm(stays, "model"), 400)
        assert not cut.exists()
        assert (cut.with_suffix("") / ".rackwright.json").exists()
        assert (whole / WEIGHTS).read_bytes() == right
        verify = store.cache("verify", "--limit", stays.name, model=GIVEN_UP)
        assert verify.status == 0, verify.output
    finally:
        goes.run("umount --lazy /srv/models")
        assert store.site.deploy().status == 0


def waits(host: Host) -> bool:
    """Return True while a host's job says that it waits for the host that fills the folder."""
    return not host.run("grep -rqsF 'waiting for it' /run/rackwright/jobs", check=False).returncode
