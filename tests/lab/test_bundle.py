"""A bare host without any route out, and a control machine without one: everything comes from a bundle, over SSH."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright_lab.hosts.host import Host
from tests.lab.closed_site import ClosedSite
from tests.lab.conftest import Site
from tests.lab.products import in_proof

pytestmark = pytest.mark.lab


@pytest.fixture
def bare(site: Site) -> Iterator[Host]:
    """Return a bare host, and reset it afterwards."""
    host = site.lab.host("bare1")
    host.reset()
    yield host
    host.reset()


def site_of(site: Site, host: Host, folder: Path, request: pytest.FixtureRequest) -> ClosedSite:
    """Return a closed site of one host, whose lock file goes with the test."""
    found = ClosedSite(site, [host], folder)
    request.addfinalizer(lambda: found.lock_file.unlink(missing_ok=True))
    return found


def test_a_file_comes_from_a_bundle_over_the_runs_own_connection(
    site: Site, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    host = site.lab.host("lived2")
    closed = site_of(site, host, tmp_path, request)
    closed.bundled()
    host.run("rm -rf /srv/encodings")
    with closed.without_a_route():
        run = closed.deploy("encodings")
        assert run.status == 0, run.output
        assert host.run("ls /srv/encodings").stdout.split() == ["cl100k_base.tiktoken", "o200k_base.tiktoken"]
        assert host.run("ss -Hltn 'sport = :7460'").stdout == "", "the port is gone with the run"


@in_proof("the test above has one file, and tests/unit/test_bundle.py what is written, refused and served")
def test_a_host_without_a_route_gets_packages_image_models_and_encodings_from_a_bundle(
    site: Site, bare: Host, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    closed = site_of(site, bare, tmp_path, request)
    closed.settings["hardware"] = {"architecture": "x86_64", "system": "debian-12"}
    closed.bundled("--part-size", "100M")
    assert len(list(tmp_path.glob("part-*"))) > 1
    assert closed.rackwright("bundle", "--verify", str(tmp_path)).status == 0
    with closed.without_a_route():
        leave_names(bare)
        before = len(site.lab.proxy.requests())
        run = closed.deploy()
        assert run.status == 0, run.output
        assert closed.requests() == []
        assert len(site.lab.proxy.requests()) == before, "the control machine asks no server"
        names = bare.run("cat /etc/hosts").stdout
        assert "bundle" not in names
        assert "10.1.2.3 nvcr.io" in names
        assert bare.run("ls /etc/apt/sources.list.d").stdout.strip() == ""
        assert closed.deploy().changed == []


def leave_names(host: Host) -> None:
    """Leave what a pull leaves in /etc/hosts that was killed."""
    killed = ("# rackwright-bundle: 10.1.2.3 nvcr.io", "127.83.87.1 nvcr.io # rackwright-bundle")
    host.run(f"printf '%s\\n' '{killed[0]}' '{killed[1]}' >>/etc/hosts")
