"""An image between a graph driver and containerd's store: Debian's Docker hands it to Ubuntu's, and takes it back."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from rackwright_lab.lab import Lab
from tests.lab.conftest import ROOT, Site, end_labs_of_killed_runs
from tests.lab.products import in_proof
from tests.lab.three_hosts.test_handed_images import IMAGE, REPOSITORY, STAGING, blobs, forget, pin, stage

pytestmark = pytest.mark.lab
STORE = "docker info --format '{{.DriverStatus}}' | grep -c io.containerd.snapshotter"


@pytest.fixture
def site() -> Iterator[Site]:
    """Return a site of a bare Debian host and a bare Ubuntu one."""
    end_labs_of_killed_runs()
    lab = Lab.open(f"t{os.getpid()}u")
    try:
        lab.up(hosts=2, bare=1, ubuntu=1, short_lists=True)
        yield Site(lab)
    finally:
        lab.down()
        (ROOT / STAGING / f"rackwright.lock.{lab.paths.id}.yml").unlink(missing_ok=True)


@in_proof("three_hosts hands images on between hosts whose Docker has a graph driver")
def test_a_host_with_containerds_store_takes_an_image_and_hands_it_on_without_kept_files(site: Site) -> None:
    debian, ubuntu = site.lab.hosts
    pin(site)
    before = len(blobs(site))
    run = stage(site)
    assert run.status == 0, run.output
    assert {address for address, _ in blobs(site)[before:]} == {debian.address}
    assert debian.run(STORE, check=False).stdout.strip() == "0"
    assert ubuntu.run(STORE).stdout.strip() == "1"
    found = "docker image inspect --format '{{join .RepoDigests \" \"}}' " + IMAGE
    [digest] = debian.run(found).stdout.split()
    assert digest.startswith(f"{REPOSITORY}@sha256:")
    for host in (debian, ubuntu):
        assert digest in host.run(found).stdout.split()
        assert host.run("ls /var/lib/rackwright/image-files", check=False).returncode != 0
        assert "127.83.87" not in host.run("docker image ls --digests").stdout
    assert stage(site).changed == []

    forget(debian)
    site.lab.registry.answer(503)
    try:
        run = stage(site, "--limit", debian.name)
    finally:
        site.lab.registry.heal()
    assert run.status == 0, run.output
    assert f"asking {ubuntu.name}" in run.output
    assert debian.run(found).stdout.split() == [digest]
    for host in (debian, ubuntu):
        assert ":746" not in host.run("ss -Hltn").stdout
    assert stage(site).changed == []
