"""A bare host without any route out, and a control machine without one: everything comes from a bundle, over SSH."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rackwright_lab import faults
from rackwright_lab.hosts.host import Host
from rackwright_lab.machine import network
from rackwright_lab.servers.registry import HOST
from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.lab.products import in_proof

pytestmark = pytest.mark.lab

MODEL = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/base", "exclude": ["original/*", "metal/*"]}
NOWHERE = {"http": "http://127.0.0.1:9"}
"""A proxy that does not answer: the control machine's way out is gone."""
SERVERS = r"^10\.79\.[0-9]+\.[2-5]\s"


@contextmanager
def walled(site: Site, host: Host) -> Iterator[None]:
    """Let a host resolve no name, and its packets reach this machine's sshd clients alone."""
    host.run("cp /etc/hosts /etc/resolv.conf /root")
    host.run(f"sed -i -E '/{SERVERS}/d' /etc/hosts && echo 'nameserver 127.0.0.1' >/etc/resolv.conf")
    faults.forget_requests(site.lab.paths.web)
    network.wall_in(site.lab.paths, host.address, "127.0.0.1", 9)
    try:
        yield
    finally:
        host.let_out()
        host.run("cp /root/hosts /root/resolv.conf /etc")


@pytest.fixture(autouse=True)
def no_lock_is_left(site: Site) -> Iterator[None]:
    """Remove the lock file that a test has pinned."""
    yield
    (ROOT / f"tests/lab/staging/rackwright.lock.{site.lab.paths.id}.yml").unlink(missing_ok=True)


@pytest.fixture
def bare(site: Site) -> Iterator[Host]:
    """Return a bare host, and reset it afterwards."""
    host = site.lab.host("bare1")
    host.reset()
    yield host
    host.reset()


def words(site: Site, host: Host, **settings: Any) -> tuple[str, ...]:
    """Return what stands before each command, so that it goes by the test's inventory."""
    key = site.lab.secrets()["registry-key"]
    lock = {"lock_file": f"rackwright.lock.{site.lab.paths.id}.yml", "private_ca": str(site.lab.paths.pki / "ca.crt")}
    wanted = {"model": MODEL, "image": f"{HOST}/nvidia/tensorrt-llm/release:1.1.0rc0", "paths": lock, **settings}
    values = json.dumps({"registry_key": key, "hardware": {"architecture": "x86_64"}, **wanted})
    return "env", f"STAGING_HOST={host.name}", f"STAGING_SETTINGS={values}", f"PYTHONPATH={ROOT}"


def rackwright(site: Site, host: Host, verb: str, *options: str) -> Run:
    """Run a verb on the test's inventory, with the way out of the lab's control machine."""
    return site.command(*words(site, host), str(BIN / "rackwright"), verb, "tests/lab/staging/inventory.py", *options)


def deploy(site: Site, host: Host, folder: Path, steps: str) -> Run:
    """Fetch what the steps of a deploy fetch, with no way out."""
    closed = {"bundle": {"folder": str(folder)}, "control_proxy": NOWHERE}
    command = (str(BIN / "pyinfra"), "tests/lab/staging/inventory.py", f"tests/lab/deploys/{steps}.py", "-y")
    return site.command(*words(site, host, **closed), *command)


def bundled(site: Site, host: Host, folder: Path, *options: str) -> None:
    """Write a bundle of what a host needs."""
    assert rackwright(site, host, "pin").status == 0
    made = rackwright(site, host, "bundle", "--out", str(folder), "--without-tool", *options)
    assert made.status == 0, made.output


def test_a_file_comes_from_a_bundle_over_the_runs_own_connection(site: Site, tmp_path: Path) -> None:
    host = site.lab.host("lived2")
    bundled(site, host, tmp_path)
    host.run("rm -rf /srv/encodings")
    with walled(site, host):
        run = deploy(site, host, tmp_path, "encodings")
        assert run.status == 0, run.output
        assert host.run("ls /srv/encodings").stdout.split() == ["cl100k_base.tiktoken", "o200k_base.tiktoken"]
        assert host.run("ss -Hltn 'sport = :7460'").stdout == "", "the port is gone with the run"


@in_proof("the test above has one file, and tests/unit/test_bundle.py what is written, refused and served")
def test_a_host_without_a_route_gets_packages_image_models_and_encodings_from_a_bundle(
    site: Site, bare: Host, tmp_path: Path
) -> None:
    bundled(site, bare, tmp_path, "--part-size", "100M", "--system", "debian-12-amd64")
    assert len(list(tmp_path.glob("part-*"))) > 1
    assert rackwright(site, bare, "bundle", "--verify", str(tmp_path)).status == 0
    with walled(site, bare):
        # As a pull leaves it that was killed.
        killed = ("# rackwright-bundle: 10.1.2.3 nvcr.io", "127.83.87.1 nvcr.io # rackwright-bundle")
        bare.run(f"printf '%s\\n' '{killed[0]}' '{killed[1]}' >>/etc/hosts")
        before = len(site.lab.proxy.requests())
        run = deploy(site, bare, tmp_path, "stage")
        assert run.status == 0, run.output
        assert [row for row in faults.requests(site.lab.paths.web) if row["client"] == bare.address] == []
        assert len(site.lab.proxy.requests()) == before, "the control machine asks no server"
        names = bare.run("cat /etc/hosts").stdout
        assert "bundle" not in names
        assert "10.1.2.3 nvcr.io" in names
        assert bare.run("ls /etc/apt/sources.list.d").stdout.strip() == ""
        assert deploy(site, bare, tmp_path, "stage").changed == []
