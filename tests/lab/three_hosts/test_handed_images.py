"""An image that hosts take from each other: the registry gives one copy, every Docker has the pinned digest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.servers.registry import HOST
from tests.lab.conftest import BIN, ROOT, Run, Site

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
        host.run(f"docker rmi {IMAGE} $(docker images -q --filter reference={IMAGE})", check=False)
    (ROOT / STAGING / f"rackwright.lock.{fleet.lab.paths.id}.yml").unlink(missing_ok=True)


def words(site: Site) -> list[str]:
    """Return what stands before each command: settings by which all hosts hand the image on."""
    settings = {
        "image": IMAGE,
        "model": {"repository": "nvidia/gpt-oss-120b-Eagle3", "mount": "/config/models/eagle"},
        "downloads": {"stall_timeout": 10, "hand_on": {"interface": "host0", "images": True}},
    }
    names = " ".join(host.name for host in site.lab.hosts)
    found = {"STAGING_HOST": names, "STAGING_SETTINGS": json.dumps(settings), "PYTHONPATH": str(ROOT)}
    return ["env", *(f"{name}={value}" for name, value in found.items())]


def stage(site: Site) -> Run:
    return site.command(*words(site), BIN / "pyinfra", f"{STAGING}/inventory.py", "tests/lab/deploys/image.py", "-y")


def blobs(site: Site) -> list[tuple[str, str]]:
    """Return the layers that the registry has given, each with the address that it gave it to."""
    log = site.lab.registry.server.log
    found = BLOB.findall(log.read_text(errors="replace")) if log.exists() else []
    return [(address, sha256) for address, sha256, status, _ in found if status in ("200", "206")]


def test_the_registry_gives_one_copy_and_every_docker_has_the_pinned_digest(fleet: Site, hosts: list[Host]) -> None:
    pinned = fleet.command(*words(fleet), BIN / "rackwright", "pin", f"{STAGING}/inventory.py")
    assert pinned.status == 0, pinned.output
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
