"""Two hosts behind a gateway: what its clients see of a rollout, and what a run does when the gateway is gone."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rackwright_lab.lab import Lab
from tests.lab.behind import Clients, bridge, end_all, in_front, inventory
from tests.lab.conftest import BIN, Run, Site, own_lab
from tests.lab.products import in_proof
from tests.lab.scene import interval
from tests.refused import refusal

pytestmark = pytest.mark.lab
GATEWAY, NEVER = "gw", "gw2"
STREAM, EACH = 1000, 10
"""Tokens of a stream, which then takes more than a minute, and seconds from one to the next."""
SLOW = 520
REASON = "a lab of its own, and streams of a minute: test_switch.py has one through a gateway"


@pytest.fixture(scope="module")
def worker_lab() -> Iterator[Lab]:
    with own_lab("gw", hosts=2) as lab:
        yield lab


@pytest.fixture
def gateways(site: Site, tmp_path: Path) -> str:
    """Return the inventory of hosts that serve, with this machine as their gateway and with one that never asks."""
    host = site.lab.hosts[0]
    path = inventory(tmp_path, {GATEWAY: bridge(host), NEVER: f"{host.address.rpartition('.')[0]}.250"})
    run = site.command(BIN / "pyinfra", path, "deploy.py", "-y", "--limit", "lab", *data(engine=interval(40)))
    assert run.status == 0, run.output
    return path


def data(**values: Any) -> list[str]:
    return [argument for key, value in values.items() for argument in ("--data", f"{key}={json.dumps(value)}")]


def rollout(site: Site, path: str, number: int) -> Run:
    words = ("-y", "--plain", "--limit", "lab", "--bake", "5", "--gate", "basic")
    return site.rackwright("rollout", path, *words, *data(engine=interval(number), drain_timeout=600))


def events(site: Site, kind: str) -> list[Mapping[str, Any]]:
    newest = max((site.lab.paths.root / "runs").glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    return [event for event in map(json.loads, newest.read_text().splitlines()) if event["kind"] == kind]


@contextmanager
def streaming(clients: Clients) -> Iterator[None]:
    """Begin a stream again and again, so that a host which is drained has some."""
    over = threading.Event()

    def again() -> None:
        while not over.is_set():
            clients.stream(STREAM)
            over.wait(EACH)

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@in_proof(REASON)
def test_no_stream_is_cut_by_a_rollout(site: Site, gateways: str, tmp_path: Path) -> None:
    hosts = list(site.lab.hosts)
    for host in hosts:
        host.set_engine_faults({"fault": "slow_factor", "value": SLOW, "when": {"option.stream_interval": 40}})
    try:
        with in_front(tmp_path / "gw", hosts, GATEWAY) as gateway:
            clients = Clients(gateway)
            clients.ask_on()
            with streaming(clients):
                run = rollout(site, gateways, 41)
            clients.end()
    finally:
        for host in hosts:
            host.set_engine_faults()
    assert run.status == 0, run.output
    assert [why for why in clients.short + clients.streams if why] == []
    assert (len(clients.short) > 50, len(clients.streams) > 5, max(clients.seconds) > 50) == (True, True, True)
    drains = events(site, "drained")
    assert [(event["cut"], event["gone"]) for event in drains] == [(0, []), (0, [])]
    assert max(event["seconds"] for event in drains) > 20


@in_proof(REASON)
def test_a_gateway_that_is_gone_stops_a_rollout_and_no_drain(site: Site, gateways: str, tmp_path: Path) -> None:
    hosts = list(site.lab.hosts)
    with in_front(tmp_path / "gw", hosts, GATEWAY) as gateway:
        for one in hosts:
            one.run(f"until ls /run/rackwright-word/gateway-{GATEWAY}@*; do sleep 0.2; done", timeout=30)
        end_all(gateway)
    time.sleep(8)
    refused = rollout(site, gateways, 42).output
    refusal(refused, "RW0827")
    assert f"gateway {GATEWAY} no longer asks {hosts[0].name}" in refused
    limit = ("--limit", hosts[0].name, "-y")
    drained = site.rackwright("drain", gateways, *limit, "--reason", "a test")
    assert drained.status == 0, drained.output
    assert [(event["host"], event["gone"]) for event in events(site, "drained")] == [(hosts[0].name, [GATEWAY])]
    back = site.rackwright("undrain", gateways, *limit)
    assert back.status == 0, back.output
