"""A bare host without any route out, and a control machine without one: everything comes from a bundle, over SSH."""

from __future__ import annotations

import json
from collections.abc import Iterator
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


@pytest.fixture
def walled(site: Site) -> Iterator[Host]:
    """Return a bare host that resolves no name, and whose packets reach this machine alone."""
    host = site.lab.host("bare1")
    host.reset()
    host.run(f"sed -i -E '/{SERVERS}/d' /etc/hosts && echo 'nameserver 127.0.0.1' >/etc/resolv.conf")
    faults.forget_requests(site.lab.paths.web)
    network.wall_in(site.lab.paths, host.address, "127.0.0.1", 9)
    yield host
    host.let_out()
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


def stage(site: Site, host: Host, folder: Path, **settings: Any) -> Run:
    """Fetch everything that the host needs, with no way out."""
    closed = {"bundle": {"folder": str(folder)}, "control_proxy": NOWHERE, **settings}
    command = (str(BIN / "pyinfra"), "tests/lab/staging/inventory.py", "tests/lab/deploys/stage.py", "-y")
    return site.command(*words(site, host, **closed), *command)


@in_proof("tests/unit/test_bundle.py has what is written, refused and served")
def test_a_host_without_a_route_gets_packages_image_models_and_encodings_from_a_bundle(
    site: Site, walled: Host, tmp_path: Path
) -> None:
    folder = tmp_path / "bundle"
    assert rackwright(site, walled, "pin").status == 0
    made = rackwright(
        site, walled, "bundle", "--out", str(folder), "--part-size", "100M", "--system", "debian-12-amd64"
    )
    assert made.status == 0, made.output
    assert len(list(folder.glob("part-*"))) > 1
    assert rackwright(site, walled, "bundle", "--verify", str(folder)).status == 0
    faults.forget_requests(site.lab.paths.web)
    before = len(site.lab.proxy.requests())

    run = stage(site, walled, folder)
    assert run.status == 0, run.output
    assert [row for row in faults.requests(site.lab.paths.web) if row["client"] == walled.address] == []
    assert len(site.lab.proxy.requests()) == before, "the control machine asks no server"
    assert "rackwright-bundle" not in walled.run("cat /etc/hosts").stdout
    assert walled.run("ls /etc/apt/sources.list.d").stdout.strip() == ""
    assert walled.run("ss -Hltn 'sport = :7460'").stdout == "", "the port is gone with the run"
    assert stage(site, walled, folder).changed == []
