"""Three hosts that serve, rollouts on them, and what they then run."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from rackwright_lab.hosts.host import Host
from tests.lab.calm import failed_before, settle
from tests.lab.conftest import Run, Site

HOME = "/var/lib/rackwright/endpoints/llm"


def begin(site: Site, request: pytest.FixtureRequest) -> None:
    """Before a test: hosts at rest, and serving as the settings ask after a failure."""
    settle(site.lab)
    if failed_before(request):
        run = site.deploy()
        assert run.status == 0, run.output


def rollout(site: Site, *options: str, **engine: Any) -> Run:
    return site.rackwright("rollout", "inventory/lab.py", *words(*options, **engine))


def words(*options: str, **engine: Any) -> list[str]:
    """Return the arguments of a rollout of engine options in waves of one host."""
    return ["-y", "--bake", "1", "--wave", "1", "--data", f"engine={json.dumps(engine)}", *options]


def proven(hosts: Sequence[Host]) -> list[str]:
    return [host.run(f"basename $(readlink {HOME}/proven)").stdout.strip() for host in hosts]


def running(hosts: Sequence[Host]) -> list[str]:
    label = '{{index .Config.Labels "rackwright.release"}}'
    return [host.run(f"docker inspect --format '{label}' rackwright-llm").stdout.strip() for host in hosts]


def switches(run: Run) -> list[str]:
    """Hosts in the order in which they began to switch."""
    return re.findall(r"\[(\S+)\] +switching to release", run.output)


def assert_all_serve(site: Site, releases: list[str]) -> None:
    assert running(site.lab.hosts) == proven(site.lab.hosts) == releases
    for host in site.lab.hosts:
        assert host.run("curl -fs http://127.0.0.1:8000/health", check=False).returncode == 0


def engine_of(host: Host) -> dict[str, int]:
    """Return the options with which a rollout asks for what this host serves already."""
    found = re.search(r"^stream_interval: (\d+)$", host.run(f"cat {HOME}/proven/eagle.yaml").stdout, re.MULTILINE)
    return {"stream_interval": int(found[1])} if found else {}
