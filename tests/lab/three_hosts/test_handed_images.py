"""An image that hosts take from each other: the registry gives one copy, every Docker has the pinned digest."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.servers.registry import HOST
from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.lab.products import in_proof
from tests.refused import refusal

pytestmark = pytest.mark.lab
REPOSITORY = f"{HOST}/nvidia/tensorrt-llm/release"
IMAGE = f"{REPOSITORY}:1.3.0rc27"
"""An index of two architectures, that no host of these has."""
STAGING = "tests/lab/staging"
BLOB = re.compile(r'(\S+) - - \[[^]]*\] "GET /v2/\S+/blobs/sha256:([0-9a-f]{64}) [^"]*" (\d+) (\d+)')


@pytest.fixture
def hosts(fleet: Site) -> Iterator[list[Host]]:
    """Return the hosts, and take the image away afterwards."""
    yield list(fleet.lab.hosts)
    for host in fleet.lab.hosts:
        forget(host)
    (ROOT / STAGING / f"rackwright.lock.{fleet.lab.paths.id}.yml").unlink(missing_ok=True)


def forget(host: Host) -> None:
    """Take away the image and its files."""
    host.run(f"docker rmi {IMAGE} $(docker images -q --filter reference={IMAGE})", check=False)
    host.run("rm -rf /var/lib/rackwright/image-files")


def words(site: Site, rate_mib: int | None = None, **hand_on: bool) -> list[str]:
    """Return what stands before each command: settings by which all hosts hand the image on."""
    handed = {"interface": "host0", "images": True, **hand_on}
    settings = {
        "image": IMAGE,
        "model": {"repository": "nvidia/gpt-oss-120b-Eagle3", "mount": "/config/models/eagle"},
        "downloads": {"stall_timeout": 10, "rate_mib": rate_mib, "hand_on": handed},
    }
    names = " ".join(host.name for host in site.lab.hosts)
    found = {"STAGING_HOST": names, "STAGING_SETTINGS": json.dumps(settings), "PYTHONPATH": str(ROOT)}
    return ["env", *(f"{name}={value}" for name, value in found.items())]


def stage(site: Site, *options: str, **hand_on: bool) -> Run:
    deploy = (BIN / "pyinfra", f"{STAGING}/inventory.py", "tests/lab/deploys/image.py", "-y")
    return site.command(*words(site, **hand_on), *deploy, *options)


def pin(site: Site) -> Run:
    found = site.command(*words(site), BIN / "rackwright", "pin", f"{STAGING}/inventory.py")
    assert found.status == 0, found.output
    return found


def blobs(site: Site) -> list[tuple[str, str]]:
    """Return the layers that the registry has given, each with the address that it gave it to."""
    log = site.lab.registry.server.log
    found = BLOB.findall(log.read_text(errors="replace")) if log.exists() else []
    return [(address, sha256) for address, sha256, status, _ in found if status in ("200", "206")]


def test_the_registry_gives_one_copy_and_every_docker_has_the_pinned_digest(fleet: Site, hosts: list[Host]) -> None:
    pinned = pin(fleet)
    before = len(blobs(fleet))
    run = stage(fleet)
    assert run.status == 0, run.output
    given = blobs(fleet)[before:]
    assert {address for address, _ in given} == {hosts[0].address}, "the registry is asked by the first host alone"
    assert len({sha256 for _, sha256 in given}) == len(given), "for each layer once"
    digest = re.search(rf"{re.escape(IMAGE)}  (sha256:[0-9a-f]{{64}})", pinned.output)
    assert digest
    for host in hosts:
        names = host.run("docker image inspect --format '{{join .RepoDigests \" \"}}' " + IMAGE).stdout.split()
        assert names == [f"{REPOSITORY}@{digest[1]}"]
        assert ":746" not in host.run("ss -Hltn").stdout
        assert "hand_on" not in host.run("nft list tables").stdout
        assert "rackwright" not in host.run("cat /etc/hosts").stdout
        assert host.run("ls /var/lib/rackwright/image-files", check=False).returncode != 0
    assert stage(fleet).changed == []


def test_a_host_takes_an_image_from_hosts_outside_the_run_with_the_registry_cut_off(
    fleet: Site, hosts: list[Host]
) -> None:
    pin(fleet)
    settings = {"keep_images": True, "tls": True}
    run = stage(fleet, **settings)
    assert run.status == 0, run.output
    forget(hosts[1])
    fleet.lab.registry.answer(503)
    try:
        limit = ("--limit", hosts[1].name)
        inventory = f"{STAGING}/inventory.py"
        plan = fleet.command(*words(fleet, **settings), BIN / "rackwright", "plan", inventory, *limit)
        assert plan.status == 2, plan.output
        assert f"for amd64: {hosts[0].name} or {hosts[2].name} > {hosts[1].name}" in plan.output, plan.output
        assert f"; {hosts[0].name} hands it on" in plan.output
        run = stage(fleet, *limit, **settings)
    finally:
        fleet.lab.registry.heal()
    assert run.status == 0, run.output
    assert f"asking {hosts[0].name}, {hosts[2].name}" in run.output
    assert "port 7462, by TLS" in run.output
    digests = {host.run(f"docker image inspect --format '{{{{.RepoDigests}}}}' {IMAGE}").stdout for host in hosts}
    assert len(digests) == 1
    for host in hosts:
        assert ":746" not in host.run("ss -Hltn").stdout
        assert "hand_on" not in host.run("nft list tables").stdout
    assert stage(fleet, **settings).changed == []


def begun(site: Site, *names: str, **settings: bool) -> subprocess.Popen[str]:
    """Begin a run for some hosts."""
    limit = [argument for name in names for argument in ("--limit", name)]
    deploy = [str(BIN / "pyinfra"), f"{STAGING}/inventory.py", "tests/lab/deploys/image.py", "-y", *limit]
    command = [*words(site, rate_mib=8, **settings), *deploy]
    return subprocess.Popen(
        command, cwd=ROOT, env=site.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def ended(*runs: subprocess.Popen[str]) -> list[str]:
    outputs = [run.communicate(timeout=600)[0] for run in runs]
    assert [run.returncode for run in runs] == [0] * len(runs), "\n".join(outputs)
    return outputs


@in_proof("one run takes it from hosts outside it in the test above; here two do at once, and one is refused")
def test_two_runs_at_once_take_an_image_with_the_registry_cut_off_and_one_host_has_one_writer(
    fleet: Site, hosts: list[Host]
) -> None:
    pin(fleet)
    settings = {"keep_images": True}
    giver, *takers = hosts
    assert stage(fleet, **settings).status == 0
    fleet.lab.registry.answer(503)
    try:
        for host in takers:
            forget(host)
        outputs = ended(*(begun(fleet, host.name, **settings) for host in takers))
        assert all(f"asking {giver.name}" in output or f"{giver.name}, " in output for output in outputs), outputs
        for host in takers:
            forget(host)
        first = begun(fleet, *(host.name for host in takers), **settings)
        deadline = time.monotonic() + 120
        while ":746" not in takers[0].run("ss -Htn state established").stdout:
            assert first.poll() is None, first.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.3)
        second = stage(fleet, "--limit", takers[0].name, **settings)
        ended(first)
        assert second.status != 0
        refusal(second.output, "RW0705", takers[0].name)
    finally:
        fleet.lab.registry.heal()
    digests = {host.run(f"docker image inspect --format '{{{{.RepoDigests}}}}' {IMAGE}").stdout for host in hosts}
    assert len(digests) == 1
    for host in hosts:
        assert ":746" not in host.run("ss -Hltn").stdout
    assert stage(fleet, **settings).changed == []
