"""Four hosts behind the gate: a canary, then the rest; later one serving host at a time; a bad change stops early."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests.lab.calm import settle
from tests.lab.conftest import Run, Site

pytestmark = pytest.mark.lab

UNIT = "rackwright-llm"


@pytest.fixture(scope="module")
def fleet(worker_lab: Lab) -> Iterator[Site]:
    """Four lived-in hosts, in a lab of their own because the worker's has two."""
    lab = Lab.open(f"{worker_lab.paths.id}b")
    lab.down()
    lab.up(hosts=4, bare=0)
    yield Site(lab)
    lab.down()


@pytest.fixture(autouse=True)
def _settled(fleet: Site) -> None:
    settle(fleet.lab)


def deploy(site: Site, *options: str, **data: Any) -> Run:
    given = [word for key, value in data.items() for word in ("--data", f"{key}={json.dumps(value)}")]
    return site.deploy("-y", *given, *options)


def times(host: Host, message: str) -> list[float]:
    """When systemd said something of the endpoint: seconds since the epoch."""
    journal = host.run(f"journalctl --sync; journalctl -u {UNIT} --no-pager -o short-unix").stdout
    return [float(line.split(" ")[0]) for line in journal.splitlines() if re.search(rf": {message} ", line)]


def starts(host: Host) -> list[float]:
    return times(host, "Starting")


def ready(host: Host) -> list[float]:
    return times(host, "Started")


def test_the_first_host_of_the_inventory_goes_first_and_the_rest_together(fleet: Site) -> None:
    for host in fleet.lab.hosts:
        host.set_engine_faults({"fault": "load_seconds", "value": 8})
    run = deploy(fleet)
    assert run.status == 0, run.output
    canary, *rest = fleet.lab.hosts
    assert max(ready(canary)) < min(starts(host)[-1] for host in rest), "nobody starts before the canary is ready"
    assert max(starts(host)[-1] for host in rest) < min(ready(host)[-1] for host in rest), "the rest load together"
    assert len(re.findall("proved: a chat answer", run.output)) == 4


def test_serving_hosts_switch_one_at_a_time_in_inventory_order(fleet: Site) -> None:
    run = deploy(fleet, engine={"stream_interval": 2})
    assert run.status == 0, run.output
    spans = [(times(host, "Stopping")[-1], ready(host)[-1]) for host in fleet.lab.hosts]
    for (_, done), (begun, _) in pairwise(spans):
        assert done < begun


def test_a_bad_change_stops_at_the_canary(fleet: Site) -> None:
    canary, *rest = fleet.lab.hosts
    before = [starts(host) for host in rest]
    for host in fleet.lab.hosts:
        host.set_engine_faults({"fault": "repeat_bang", "when": {"option.stream_interval": 3}})
    run = deploy(fleet, engine={"stream_interval": 3})
    assert run.status != 0
    assert f"[{canary.name}] endpoint llm serves its last proven release again" in run.output
    assert len(re.findall(f"not switched: {canary.name} failed before it; it serves what it served", run.output)) == 3
    assert [starts(host) for host in rest] == before
    for host in fleet.lab.hosts:
        assert host.run("curl -fs http://127.0.0.1:8000/health").returncode == 0


def test_a_limit_leaves_the_others(fleet: Site) -> None:
    *others, last = fleet.lab.hosts
    before = [starts(host) for host in others]
    run = deploy(fleet, "--limit", last.name, engine={"stream_interval": 4})
    assert run.status == 0, run.output
    assert [starts(host) for host in others] == before
    assert "stream_interval: 4" in last.run("cat /var/lib/rackwright/endpoints/llm/current/eagle.yaml").stdout
