"""The operations in another pyinfra deploy: a plain inventory, arguments and defaults, no host data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.inventory import ssh_data
from tests.lab.conftest import BIN, Run, Site
from tests.refused import refusal

pytestmark = pytest.mark.lab

DEPLOY = """
from pathlib import Path
from pyinfra.facts.server import LinuxName
from pyinfra import config, host
from pyinfra.operations import server
from rackwright.operations import docker, encodings, endpoint, firewall, models, registry, site

config.SUDO = True
server.shell(name="Tune the kernel", commands=["touch /run/tuned"])
assert host.get_fact(LinuxName)

site(paths={{"private_ca": "{authority}"}}, control_proxy={{"http": "{proxy}"}}, mirrors={mirrors})
docker(users=["ops"])
firewall(confirm_timeout=10)
registry(key=Path("{key}").read_text())
encodings(folder="/srv/tiktoken")
models(folder="/srv/weights"{hub})
endpoint(
    image="nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0",
    model={{"repository": "openai/gpt-oss-120b", "mount": "/config/models/base", "exclude": ["original/*", "metal/*"]}},
    engine={{"tensor_parallel_size": 8}},
    allow_from=["10.79.0.0/16"],
    port=8123,
    load_timeout=120,
    stop_timeout=20,
    drain_timeout=5,{more}
)
"""


@pytest.fixture
def run(site: Site, tmp_path: Path) -> Callable[..., Run]:
    """Run `pyinfra hosts.py deploy.py` in a folder without a site; host data has keys that are settings elsewhere."""
    host = site.lab.host("lived2")
    host.reset()
    secrets = site.lab.secrets()
    (tmp_path / "key").write_text(secrets["registry-key"])
    data = {**ssh_data(host), "port": 22, "docker": "theirs", "model": "a car"}
    (tmp_path / "hosts.py").write_text(f"hosts = [({host.name!r}, {data!r})]\n")

    def pyinfra(*options: str, hub: str = "", more: str = "") -> Run:
        keys = {f"{name}_keys": list(repository_keys) for name, repository_keys in site.lab.apt_keys().items()}
        words = {
            "mirrors": keys,
            "authority": site.lab.paths.pki / "ca.crt",
            "proxy": site.lab.proxy.url,
            "key": tmp_path / "key",
        }
        (tmp_path / "deploy.py").write_text(DEPLOY.format(**words, hub=hub, more=more))
        return site.command(BIN / "pyinfra", "hosts.py", "deploy.py", "-y", *options, cwd=tmp_path)

    return pyinfra


def test_a_deploy_of_somebody_elses_serves_what_its_arguments_say(site: Site, run: Callable[..., Run]) -> None:
    host = site.lab.host("lived2")
    wrong = run(more="\n    gpu=[0],")
    assert wrong.status == 1
    refusal(wrong.output, "RW0210", "gpu: ", "gpus?")
    assert not made(host)
    assert "Traceback" not in wrong.output

    first = run()
    assert first.status == 0, first.output
    assert "proved: a chat answer" in first.output
    host.run(
        "test -e /run/tuned; ls /srv/weights/openai--gpt-oss-120b--*/config.json /srv/tiktoken/o200k_base.tiktoken"
    )
    assert "8123" in json.dumps(json.loads(host.run("cat /var/lib/rackwright/endpoints/llm/current/spec.json").stdout))
    assert "ops" in host.run("getent group docker").stdout

    again = run()
    assert again.status == 0, again.output
    assert again.changed == ["Tune the kernel"]


def made(host: Host) -> bool:
    return host.run("test -e /var/lib/rackwright", check=False).returncode == 0
