"""A bare host on which the former version found no nft, and made its drops in iptables' mangle table, is upgraded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests.lab.conftest import ARTEFACTS, BIN, Run, Site
from tests.lab.firewall_scene import Client
from tests.lab.products import in_proof
from tests.lab.test_teardown import assert_purged, state
from tests.lab.upgrade.former import Former

pytestmark = [
    pytest.mark.lab,
    in_proof("test_firewall_among_others.py has its drops by its own script; here that version deploys a bare host"),
]

INVENTORY = "inventory/lab.py"
MANGLE = "(iptables-save -t mangle; ip6tables-save -t mangle) | grep -c RACKWRIGHT"
CONTAINER = "docker inspect --format '{{.Id}}' rackwright-llm"


@pytest.fixture
def site() -> Iterator[Site]:
    """Boot a lab of one bare host."""
    lab = Lab.open(f"t{os.getpid()}m")
    lab.down()
    shutil.rmtree(ARTEFACTS / f"site-{lab.paths.id}", ignore_errors=True)
    try:
        lab.up(hosts=1, bare=1, short_lists=True, in_memory=True)
        yield Site(lab)
    finally:
        lab.down()
        shutil.rmtree(ARTEFACTS / f"site-{lab.paths.id}", ignore_errors=True)


@pytest.fixture
def outsider(site: Site) -> Iterator[Client]:
    """Plug in a machine that is not allowed to reach the port."""
    prefix = site.lab.hosts[0].address.rpartition(".")[0]
    client = Client(f"{site.lab.paths.id}-out", f"{prefix}.202")
    client.plug_in(site.lab.paths.bridge)
    yield client
    client.unplug()


def mangle(host: Host) -> int:
    return int(host.run(MANGLE, check=False).stdout)


def test_it_serves_and_stays_closed_and_a_teardown_leaves_nothing(site: Site, outsider: Client) -> None:
    (host,), folder, former = site.lab.hosts, ARTEFACTS / f"site-{site.lab.paths.id}", Former()
    bare = state(host)
    # Of the host's own network alone, so that both families are asked.
    data = ("--data", 'network="host"', "--data", 'bind="::"', "--data", f'allow_from=["{host.address}/32"]')

    def now(verb: str, *words: str) -> Run:
        return site.command(BIN / verb, *words, cwd=folder)

    folder.parent.mkdir(exist_ok=True)
    assert site.command(*former.words("rackwright", "init", str(folder))).status == 0
    deployed = site.command(*former.words("pyinfra", INVENTORY, "deploy.py", "-y", *data), cwd=folder)
    assert deployed.status == 0, deployed.output
    before = host.run(CONTAINER).stdout
    assert mangle(host) > 0
    with outsider.probing(8000, host.address, host.address6) as probes:
        assert now("rackwright", "init", "--update", ".").status == 0
        assert now("rackwright", "drift", INVENTORY, *data).status == 0
        run = now("pyinfra", INVENTORY, "deploy.py", "-y", *data)
        assert run.status == 0, run.output
        assert (mangle(host), host.run(CONTAINER).stdout) == (0, before)
    tries, made = probes
    assert (tries > 100, made) == (True, 0)
    again = now("pyinfra", INVENTORY, "deploy.py", "-y", *data)
    assert (again.status, again.changed) == (0, []), again.output
    assert now("rackwright", "teardown", INVENTORY, "--all", "-y", "--purge").status == 0
    assert_purged(host)
    after = state(host)
    assert (after["packages"], after["units"]) == (bare["packages"], bare["units"])
