"""A bare host in a closed network: no way out but a proxy, then none but the site's mirrors; and the site's own CA."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rackwright_lab import faults
from rackwright_lab.hosts.host import Host
from rackwright_lab.servers.registry import HOST, MIRROR
from rackwright_lab.servers.web import CDN_HOST, HUB_HOST, MIRROR_HOST
from rackwright_lab.standins.encodings import ENCODINGS_HOST
from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.lab.products import in_proof

pytestmark = pytest.mark.lab

IMAGE = "nvidia/tensorrt-llm/release:1.1.0rc0"
MODEL = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/base", "exclude": ["original/*", "metal/*"]}
SERVERS = r"^10\.79\.[0-9]+\.[2-5]\s"


@pytest.fixture
def closed(site: Site) -> Iterator[Host]:
    """Return a bare host that resolves no public name and does not trust the authority of the lab's servers."""
    host = site.lab.host("bare1")
    host.reset()
    host.run(f"sed -i -E '/{SERVERS}/d' /etc/hosts && echo 'nameserver 127.0.0.1' >/etc/resolv.conf")
    host.run("rm /usr/local/share/ca-certificates/lab-authority-0.crt && update-ca-certificates --fresh")
    faults.forget_requests(site.lab.paths.web)
    host.wall_in(site.lab.proxy)
    yield host
    host.let_out()
    host.reset()


def stage(site: Site, host: Host, **settings: Any) -> Run:
    """Fetch everything, with settings of the test over the lab's."""
    key = site.lab.secrets()["registry-key"]
    wanted = {"model": MODEL, "downloads": {"stall_timeout": 30}, "registry_key": key, **settings}
    words = (f"STAGING_HOST={host.name}", f"STAGING_SETTINGS={json.dumps(wanted)}", f"PYTHONPATH={ROOT}")
    return site.command(
        "env", *words, BIN / "pyinfra", "tests/lab/staging/inventory.py", "tests/lab/deploys/stage.py", "-y"
    )


def asked_by(site: Site, host: Host) -> list[str]:
    """Return the names that the host itself asked the web server for."""
    return [row["host"] for row in faults.requests(site.lab.paths.web) if row["client"] == host.address]


@in_proof("test_host.py has the proxy of dockerd, and packages of Docker's and NVIDIA's from mirrors")
def test_everything_comes_through_a_proxy_and_then_from_mirrors_behind_the_sites_own_authority(
    site: Site, closed: Host
) -> None:
    proxied: dict[str, Any] = {"proxy": {"http": site.lab.proxy.url}, "image": f"{HOST}/{IMAGE}"}
    untrusted = stage(site, closed, paths={"lock_file": "rackwright.lock.lab.yml"}, **proxied)
    assert untrusted.status == 1
    assert "certificate" in untrusted.output

    run = stage(site, closed, **proxied)
    assert run.status == 0, run.output
    through = {address for _, address in site.lab.proxy.requests()}
    assert {f"{name}:443" for name in (HOST, HUB_HOST, CDN_HOST, ENCODINGS_HOST, "nvidia.github.io")} <= through
    assert asked_by(site, closed) == []
    assert stage(site, closed, **proxied).changed == []

    # The same host without the proxy, in a network that has nothing but mirrors.
    closed.let_out()
    registry, web, _, _ = site.lab.servers()
    closed.run(f"printf '%s\\n' '{web} {MIRROR_HOST}' '{registry} {MIRROR}' >>/etc/hosts")
    closed.run("docker image ls -q | sort -u | xargs docker rmi -f; rm -rf /srv/models /srv/encodings")
    closed.run("rm -rf /var/lib/rackwright/images")
    mirrors = {"hub": f"https://{MIRROR_HOST}/hub", "encodings": f"https://{MIRROR_HOST}/encodings"}
    mirrored: dict[str, Any] = {"mirrors": mirrors, "image": f"{MIRROR}/{IMAGE}", "registry": {"host": MIRROR}}
    before = len(site.lab.proxy.requests())
    run = stage(site, closed, **mirrored)
    assert run.status == 0, run.output
    assert "no answer within" not in run.output
    assert set(asked_by(site, closed)) == {MIRROR_HOST}
    addresses = {address for _, address in site.lab.proxy.requests()[before:]}
    assert addresses <= {f"{name}:443" for name in (MIRROR, MIRROR_HOST)}, (
        "the control machine keeps to the mirrors, too"
    )
    assert closed.run("docker info --format '{{.HTTPSProxy}}'").stdout.strip() == ""
    assert stage(site, closed, **mirrored).changed == []
