"""Three bare hosts of two systems at once, from a control machine that reaches them alone; and what is refused."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rackwright.bundle.catalog import Catalog, read_catalog
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.machine import network
from rackwright_lab.machine.shell import LabError
from tests import texts
from tests.lab.closed_site import IMAGE, ClosedSite
from tests.lab.conftest import Site, end_labs_of_killed_runs
from tests.lab.products import in_proof
from tests.refused import refusal
from tests.unit.test_bundle import Signer

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Start a lab of two bare Debian hosts, and a bare Ubuntu where its archive can be had."""
    end_labs_of_killed_runs()
    found = Lab.open(f"t{os.getpid()}c")
    try:
        try:
            found.up(hosts=3, bare=2, ubuntu=1, short_lists=True)
        except LabError as error:
            if "ubuntu" not in str(error).lower():
                raise
            found.down()
            found.up(hosts=2, bare=2, short_lists=True)
        yield found
    finally:
        found.down()


@pytest.fixture(scope="module")
def signer() -> Signer:
    return Signer()


@pytest.fixture(scope="module")
def closed(lab: Lab, signer: Signer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClosedSite]:
    """Return the site with its bundle, whose hosts have said which systems they have, in their closed network."""
    found = ClosedSite(Site(lab), lab.hosts, tmp_path_factory.mktemp("bundle"))
    made = found.bundled("--ask-hosts", "--part-size", "100M")
    assert "debian-12-amd64: " in made.output
    assert len(read_catalog(found.folder).packages) == len({host.kind for host in lab.hosts})
    signer.sign(found.folder)
    address = lab.servers()[0].rpartition(".")[0] + ".10"
    with (
        found.without_a_route(),
        network.machine_apart(lab.paths, address, [host.address for host in lab.hosts]) as before,
    ):
        found.before = before
        yield found
    found.lock_file.unlink(missing_ok=True)


def catalog_of(closed: ClosedSite) -> Catalog:
    return read_catalog(closed.folder)


@in_proof("test_bundle.py has one host, and a proxy that does not answer in the place of no route")
def test_hosts_of_two_systems_get_everything_at_once_from_a_machine_that_reaches_only_them(
    closed: ClosedSite, signer: Signer
) -> None:
    alone = subprocess.run([*closed.before, "ip", "route"], capture_output=True, text=True, check=True)
    assert len(alone.stdout.splitlines()) == len(closed.hosts), alone.stdout
    run = closed.deploy(public_key=signer.public)
    assert run.status == 0, run.output
    assert closed.requests() == []
    for host in closed.hosts:
        assert host.run(f"docker image ls -q {IMAGE.rpartition(':')[0]}").stdout.strip() != ""
        assert host.run("ls /srv/models/openai--*/.rackwright.json").returncode == 0
        assert "bundle" not in host.run("cat /etc/hosts").stdout
        assert host.run("ss -Hltn 'sport = :7460'").stdout == ""
    assert closed.deploy(public_key=signer.public).changed == []


def changed_layer(closed: ClosedSite) -> Path:
    """Change one byte of the image's largest layer, and return its file."""
    catalog = catalog_of(closed)
    layers = {one for image in catalog.images for one in image.layers}
    largest = max(layers, key=lambda one: catalog.stored[one].size)
    path = closed.folder / catalog.stored[largest].pieces[-1].path
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    return path


def forget_image(host: Host) -> None:
    host.run("docker image ls -q | sort -u | xargs -r docker rmi -f")


@in_proof("tests/unit/test_bundle.py refuses it as served; here a host's Docker is what is refused")
def test_a_layer_with_one_changed_byte_reaches_no_host_and_is_named(closed: ClosedSite, signer: Signer) -> None:
    host = closed.hosts[0]
    forget_image(host)
    path = changed_layer(closed)
    try:
        run = closed.deploy(public_key=signer.public)
        assert run.status != 0
        refusal(run.output, "RW3893", str(path))
        assert texts.NOT_FROM_BUNDLE in run.output
        assert host.run("docker image ls -q").stdout.strip() == ""
        assert "bundle" not in host.run("cat /etc/hosts").stdout
    finally:
        changed_layer(closed)
    assert closed.deploy(public_key=signer.public).status == 0


def with_a_part_missing(closed: ClosedSite) -> None:
    (closed.folder / "part-01").rename(closed.folder / "elsewhere")


def whole_again(closed: ClosedSite) -> None:
    (closed.folder / "elsewhere").rename(closed.folder / "part-01")


def as_it_is(_: ClosedSite) -> None:
    pass


@in_proof("tests/unit/test_bundle.py has each refusal; here no host is written to after it")
@pytest.mark.parametrize(
    ("code", "spoil", "mend", "other_key"),
    [("RW3883", with_a_part_missing, whole_again, False), ("RW3863", as_it_is, as_it_is, True)],
)
def test_a_missing_part_and_anothers_signature_are_refused_before_a_host_is_written_to(
    closed: ClosedSite,
    signer: Signer,
    code: str,
    spoil: Callable[[ClosedSite], None],
    mend: Callable[[ClosedSite], None],
    other_key: bool,
) -> None:
    for host in closed.hosts:
        host.run("rm -f /srv/encodings/*")
    spoil(closed)
    try:
        run = closed.deploy("encodings", public_key=Signer().public if other_key else signer.public)
    finally:
        mend(closed)
    assert run.status != 0
    assert code in run.output
    assert {host.run("ls /srv/encodings").stdout for host in closed.hosts} == {""}
    assert closed.deploy("encodings", public_key=signer.public).status == 0
