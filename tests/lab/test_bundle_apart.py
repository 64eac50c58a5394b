"""Three bare hosts of two systems at once, from a control machine that reaches them alone; and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rackwright.bundle.catalog import Catalog, read_catalog
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.machine import network
from rackwright_lab.machine.shell import LabError
from tests import texts
from tests.lab.closed_site import FETCHES, IMAGE, ClosedSite
from tests.lab.conftest import Site, end_labs_of_killed_runs
from tests.lab.products import in_proof
from tests.lab.running import Running
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


def begin(closed: ClosedSite, public_key: str, steps: str = "stage") -> Running:
    """Begin a deploy."""
    return Running(closed.site, *closed.deploying(steps, public_key=public_key))


def wait_for(host: Host, condition: str, seconds: float = 120) -> str:
    """Return what a command prints once it succeeds on a host."""
    deadline = time.monotonic() + seconds
    while (done := host.run(condition, check=False)).returncode or not done.stdout:
        assert time.monotonic() < deadline, f"not within {seconds} s on {host.name}: {condition}"
        time.sleep(0.1)
    return done.stdout.strip()


JOB = "systemctl list-units --plain --no-legend --state=running 'rackwright-job-model-*' | cut -d' ' -f1 | grep ."
"""Prints the job that fetches a model."""


@in_proof("tests/unit/test_hostrun.py decides it; here two runs want one host's port")
def test_a_second_run_is_refused_by_the_lease_where_the_first_one_works_and_not_elsewhere(
    closed: ClosedSite, signer: Signer
) -> None:
    host, other = closed.hosts[:2]
    for each in (host, other):
        each.run("rm -rf /srv/models/openai--*")
    first = begin(replace(closed, hosts=[host]), signer.public)
    job = wait_for(host, JOB)
    host.run(f"systemctl freeze {job}")
    try:
        second = replace(closed, hosts=[host]).deploy(public_key=signer.public)
        elsewhere = replace(closed, hosts=[other]).deploy(public_key=signer.public)
    finally:
        host.run(f"systemctl thaw {job}")
    run = first.end()
    assert second.status != 0
    assert "RW0705" in second.output, "the message is who is at work there"
    assert elsewhere.status == 0, elsewhere.output
    assert run.status == 0, run.output
    for each in (host, other):
        assert each.run("ss -Hltn 'sport = :7460'").stdout == ""


def stores(closed: ClosedSite) -> list[tuple[Host, str]]:
    """Return a host of each system, and the folder of its Docker's images."""
    debian, last = closed.hosts[0], closed.hosts[-1]
    newer = [(last, "/var/lib/containerd")] if last.kind == "ubuntu" else []
    return [(debian, "/var/lib/docker"), *newer]


DOCKERS = "docker.socket docker containerd"


@in_proof("tests/lab/test_staging.py has the pull's own words for a full disk")
@pytest.mark.parametrize("number", [0, 1])
def test_a_disk_that_fills_in_a_pull_is_named_and_leaves_no_name(
    closed: ClosedSite, signer: Signer, number: int
) -> None:
    host, root = host_of(closed, number)
    forget_image(host)
    host.run(f"systemctl stop {DOCKERS}")
    host.fill_disk(root, 8)
    host.run("systemctl start containerd docker")
    one = replace(closed, hosts=[host])
    try:
        run = one.deploy(FETCHES, public_key=signer.public)
        assert images_by_address(host) == ""
    finally:
        host.run(f"systemctl stop {DOCKERS}")
        host.free_disk(root)
        host.run("systemctl start containerd docker")
    assert run.status != 0
    assert "the disk is full" in run.output, run.output
    assert f"df -h {root}" in run.output
    assert "bundle" not in host.run("cat /etc/hosts").stdout
    assert host.run("ss -Hltn src 127.83.87.1").stdout == ""
    again = one.deploy(FETCHES, public_key=signer.public)
    assert again.status == 0, again.output


def host_of(closed: ClosedSite, number: int) -> tuple[Host, str]:
    """Return a host and the folder of its Docker's images. number: of its system."""
    found = stores(closed)
    if number >= len(found):
        pytest.skip("Ubuntu's archive cannot be had here")
    return found[number]


def images_by_address(host: Host) -> str:
    """Return the images whose name is the address from which they came."""
    return host.run("docker image ls --digests | grep ^127", check=False).stdout


def drop_mirror(host: Host) -> None:
    path = host.root / "etc/docker/daemon.json"
    values = json.loads(path.read_text())
    values.pop("registry-mirrors", None)
    path.write_text(json.dumps(values))
    host.run("systemctl restart docker")


@in_proof("tests/programs/test_pull_from_bundle.py has a Docker of its own; here it is a real one")
@pytest.mark.parametrize("number", [0, 1])
def test_an_image_comes_without_a_mirror_by_its_digest_and_beside_a_tag_of_another(
    closed: ClosedSite, signer: Signer, number: int
) -> None:
    host, _ = host_of(closed, number)
    one = replace(closed, hosts=[host])
    repository = IMAGE.rpartition(":")[0]
    [image] = catalog_of(closed).images
    pinned = f"{repository}@{image.digest}"
    drop_mirror(host)
    forget_image(host)
    host.run(f"tar -c -T /dev/null | docker import - {IMAGE}")
    other = host.run(f"docker image inspect --format '{{{{.Id}}}}' {IMAGE}").stdout
    run = one.deploy(FETCHES, public_key=signer.public)
    assert run.status == 0, run.output
    assert host.run(f"docker image inspect --format '{{{{.Id}}}}' {IMAGE}").stdout == other
    assert pinned in host.run(f"docker image inspect --format '{{{{.RepoDigests}}}}' {pinned}").stdout
    assert host.run(f"docker run --rm --entrypoint /bin/true {pinned}").returncode == 0
    assert images_by_address(host) == ""
    assert one.deploy(FETCHES, public_key=signer.public).changed == []
    host.run(f"docker rmi {IMAGE}")
    assert one.deploy(public_key=signer.public).status == 0, "with the mirror again"


@in_proof("tests/programs/test_pull_from_bundle.py and tests/unit/test_teardown.py have the script and the plan")
@pytest.mark.parametrize("number", [0, 1])
def test_a_killed_pull_and_a_teardown_leave_no_name_no_listener_and_no_image(
    closed: ClosedSite, signer: Signer, number: int
) -> None:
    host, _ = host_of(closed, number)
    one = replace(closed, hosts=[host])
    names = host.run("cat /etc/hosts").stdout
    forget_image(host)
    host.limit_line(10)
    first = begin(one, signer.public, FETCHES)
    try:
        wait_for(host, "ss -Hltn src 127.83.87.1")
        wait_for(host, "pgrep -f 'docker pull'")
        time.sleep(2)
        host.run("systemctl kill -s KILL 'rackwright-job-pull-*'")
        first.stop()
    finally:
        host.limit_line(10_000)
    assert host.run("ss -Hltn src 127.83.87.1").stdout == ""
    gone = one.rackwright("teardown", "--limit", host.name, "-y", "--purge")
    assert gone.status == 0, gone.output
    assert host.run("cat /etc/hosts").stdout == names
    remains = "ls -d /run/rackwright/* /var/lib/rackwright /srv/models/* /var/lib/docker/tmp/GetImageBlob* 2>/dev/null"
    assert host.run(remains, check=False).stdout == ""
    assert host.run("ss -Hltn").stdout.count(":7460") == 0
    again = one.deploy(public_key=signer.public)
    assert again.status == 0, again.output
