"""Two gateways in front of many hosts, under the load of the real client: no work on the hosts cuts a request.

RACKWRIGHT_GATEWAY_HOSTS says how many hosts serve (6), and RACKWRIGHT_GATEWAY_LAB=ID keeps the lab from one try to the
next, as for a fleet.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackwright.paths import act_unit
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.servers.driver import NEW, OLD, install_line
from tests.lab.conftest import BIN, ROOT, Run, Site, own_lab
from tests.lab.products import in_proof
from tests.lab.running import Running
from tests.lab.test_rebuild import fingerprint

LONG_REASON = "eight hosts, streams of a minute and of five; tests/lab/test_gateway_drain.py has the drain's parts"
pytestmark = [pytest.mark.lab, in_proof(LONG_REASON), pytest.mark.timeout(3600)]
HOSTS = int(os.environ.get("RACKWRIGHT_GATEWAY_HOSTS", "6"))
KEPT = os.environ.get("RACKWRIGHT_GATEWAY_LAB")
INVENTORY = "inventory/lab_gateway.py"
SLOW, STREAM, LONG = 50, 550, 2800
"""The engines' factor, with which a stream of so many tokens takes a minute, and a long one five."""
ANOTHER = "engine: {stream_interval: 1}\n"
"""Settings of another release, as fast as the one before: of a larger interval the drafts win more."""
WAVES = ("--max-unavailable", "50%", "--wave", "50%", "--bake", "2", "--gate", "basic")
RESTARTING = "watch: {act: restart}\n"
STATE, LOOK = "/var/lib/rackwright", "/run/rackwright/watch/llm"
NOTES = "/run/rackwright-word/gateway-*@llm"


@dataclass
class Front:
    """The hosts, the site that deploys them, and a client's key."""

    site: Site
    folder: Path
    key: str

    @property
    def hosts(self) -> list[Host]:
        """Return the hosts that serve."""
        return self.site.lab.hosts[:-2]

    @property
    def gateways(self) -> list[Host]:
        return self.site.lab.hosts[-2:]

    def rackwright(self, verb: str, *words: str) -> Run:
        return self.site.command(BIN / "rackwright", verb, INVENTORY, "-y", *words, cwd=self.folder, timeout=1800)

    def drains(self) -> list[tuple[int | None, list[str]]]:
        """Return what the stops of the last run cut, and the gateways that were not waited for."""
        newest = max((self.site.lab.paths.root / "runs").glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
        events: list[dict[str, Any]] = [json.loads(row) for row in newest.read_text().splitlines()]
        return [(event["cut"], event["gone"]) for event in events if event["kind"] == "drained"]

    def served_by(self, requests: Sequence[dict[str, Any]]) -> set[str]:
        """Return the hosts that the gateways' logs name for these requests."""
        read = "journalctl --sync; journalctl -t rackwright-gateway -o cat"
        log = [row for gateway in self.gateways for row in gateway.run(read).stdout.splitlines()]
        ids = {one["id"] for one in requests}
        return {row["host"] for row in (json.loads(row) for row in log if row.startswith("{")) if row["id"] in ids}


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """Deploy the hosts and both gateways from bare, with engines that are slow."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "deploy.py", folder)
    for name in ("tasks", "inventory", "group_vars", "templates"):
        shutil.copytree(ROOT / name, folder / name)
    lab_settings = folder / "group_vars/lab.yml"
    text = "".join(row for row in lab_settings.read_text().splitlines(True) if not row.startswith("drain_timeout"))
    lab_settings.write_text(text + RESTARTING)
    with lab_of(HOSTS + 2) as lab:
        found = Front(Site(lab), folder, "")
        added = found.site.command(BIN / "rackwright", "keys", "add", INVENTORY, "alice", cwd=folder)
        found.key = next(row for row in added.output.splitlines() if row.startswith("rk-"))
        for host in found.hosts:
            host.set_engine_faults({"fault": "slow_factor", "value": SLOW})
        run = found.site.command(BIN / "pyinfra", INVENTORY, "deploy.py", "-y", cwd=folder, timeout=1800)
        assert run.status == 0, run.output
        yield found


@contextmanager
def lab_of(hosts: int) -> Iterator[Lab]:
    """Boot a lab; one that is kept stays as it is."""
    if KEPT is None:
        with own_lab("z", hosts=hosts, bare=hosts) as lab:
            yield lab
        return
    lab = Lab.open(KEPT)
    if not lab.is_up or len(lab.hosts) != hosts:
        lab.up(hosts=hosts, bare=hosts, short_lists=True, in_memory=True)
    yield lab


@contextmanager
def loading(front: Front, path: Path, long: int = 0, through: int = 2) -> Iterator[list[dict[str, Any]]]:
    """Ask through the first one or two gateways during a block; the requests are in the list after it."""
    urls = [f"http://{gateway.address}" for gateway in front.gateways[:through]]
    numbers = [str(number) for number in (STREAM, long, len(front.hosts))]
    words = [sys.executable, "-m", "tests.lab.gateway_load", str(path), *numbers, *urls]
    process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, text=True)
    assert process.stdin
    process.stdin.write(front.key + "\n")
    process.stdin.close()
    requests: list[dict[str, Any]] = []
    try:
        time.sleep(10)
        yield requests
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(900) == 0
        requests += [json.loads(row) for row in path.read_text().splitlines()]


def wrong(requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in requests if one["wrong"]]


def seconds(requests: Sequence[dict[str, Any]], kind: str) -> list[float]:
    return [one["end"] - one["start"] for one in requests if one["kind"] == kind]


def test_a_rollout_cuts_nothing(front: Front, tmp_path: Path) -> None:
    with (front.folder / "group_vars/lab.yml").open("a") as settings:
        settings.write(ANOTHER)
    with loading(front, tmp_path / "load") as requests:
        run = front.rackwright("rollout", "--plain", *WAVES)
    assert run.status == 0, run.output
    assert front.drains() == [(0, [])] * len(front.hosts)
    assert wrong(requests) == []
    assert (len(seconds(requests, "short")) > 50, max(seconds(requests, "stream")) > 50) == (True, True)


def test_a_reboot_in_waves_cuts_no_stream_of_five_minutes(front: Front, tmp_path: Path) -> None:
    with loading(front, tmp_path / "load", LONG) as requests:
        run = front.rackwright("reboot", "--limit", "lab", *WAVES)
    assert run.status == 0, run.output
    assert wrong(requests) == []
    long = [one for one in requests if one["kind"] == "long"]
    assert min(seconds(requests, "long")) > 290
    assert front.served_by(long) == {host.name for host in front.hosts}


def test_a_driver_switch_in_waves_cuts_nothing(front: Front, tmp_path: Path) -> None:
    for host in front.hosts:
        host.run(install_line(OLD), timeout=300)
    words = ("--limit", "lab", "--data", f"driver.version={NEW}", "--data", "driver.console=serial")
    deploy = (BIN / "pyinfra", INVENTORY, "deploy.py", "-y", *words)
    staged = front.site.command(*deploy, cwd=front.folder, timeout=1800)
    assert staged.status == 0, staged.output
    with loading(front, tmp_path / "load") as requests:
        run = front.rackwright("rollout", "--drivers", "--plain", *words, *WAVES)
    assert run.status == 0, run.output
    modules = {host.run("cat /sys/module/nvidia/version").stdout.strip() for host in front.hosts}
    assert modules == {NEW}
    assert wrong(requests) == []
    assert front.served_by(requests) == {host.name for host in front.hosts}


def test_a_host_that_is_drained_reinstalled_and_rebuilt_cuts_nothing(front: Front, tmp_path: Path) -> None:
    host = front.hosts[-1]
    with loading(front, tmp_path / "load") as requests:
        drained = front.rackwright("drain", "--limit", host.name, "--reason", "a new disk")
        host.reset()
        host.new_host_key()
        host.set_engine_faults({"fault": "slow_factor", "value": SLOW})
        rebuilt = front.rackwright("rebuild", "--limit", host.name, "--fingerprint", fingerprint(host))
    assert (drained.status, rebuilt.status) == (0, 0), rebuilt.output
    assert wrong(requests) == []


def test_a_reload_in_the_middle_of_a_drain_cuts_nothing(front: Front, tmp_path: Path) -> None:
    host = front.hosts[1]
    with loading(front, tmp_path / "load", 2 * STREAM) as requests:
        words = (str(BIN / "rackwright"), "drain", INVENTORY, "-y", "--limit", host.name, "--reason", "a test")
        draining = Running(front.site, *words, cwd=front.folder)
        host.run(f"until [ $(grep -l ^word=drain {NOTES} | wc -l) = 2 ]; do sleep 0.2; done", timeout=60)
        heard = time.time()
        for gateway in [*front.gateways, *front.gateways]:
            gateway.run("systemctl reload rackwright-gateway")
            time.sleep(4)
        state = host.run("systemctl is-active rackwright-llm").stdout.strip()
        drained = draining.end()
        undrained = time.time()
        back = front.rackwright("undrain", "--limit", host.name)
    assert (drained.status, state, back.status) == (0, "active", 0), drained.output + back.output
    assert wrong(requests) == []
    between = [one for one in requests if heard < one["start"] < undrained]
    assert (len(between) > 20, host.name in front.served_by(between)) == (True, False)


def restarted(front: Front, host: Host) -> tuple[float, float]:
    """Let a host's engine hang, and its watch restart it in its minute; return when it hung and when it was proven."""
    host.run(f"systemctl stop rackwright-watch.timer; rm -f {STATE}/watch/acts-llm")
    # The first host's minute among four, as rackwright/concerns/watch/host/act_peers.sh has them.
    slots = min(4, len(front.hosts))
    its_minute = f"[ $(($(date +%s) / 60 % {slots})) = 0 ] && [ $(($(date +%s) % 60)) -lt 40 ]"
    host.run(f"until {its_minute}; do sleep 1; done", timeout=400)
    hung = time.time()
    host.run("kill -STOP $(docker inspect --format '{{.State.Pid}}' rackwright-llm)")
    found = f"read -r up _ </proc/uptime; printf 'looked=%s\\nstate=hung\\nsigns=x\\n' ${{up%.*}} >{LOOK}"
    host.run(f"{found}; systemctl start {act_unit('llm')}", timeout=400)
    proven = time.time()
    host.run("systemctl start rackwright-watch.timer")
    return hung, proven


def assert_it_cut(host: Host, requests: Sequence[dict[str, Any]], hung: float, proven: float) -> str:
    """Assert that the watch has counted what failed, and that no other request did; return what its row says more."""
    row = host.run(f"cat {STATE}/watch/acts-llm").stdout.split(" ", 4)
    assert row[1:3] == ["restart", "proven"]
    failed = wrong(requests)
    assert int(row[3]) == len(failed) > 0, failed
    assert [one for one in failed if one["start"] > proven or one["end"] < hung] == []
    return row[4]


@pytest.mark.hangs
def test_a_restart_by_the_watch_cuts_and_counts_what_hangs_on_its_host(front: Front, tmp_path: Path) -> None:
    with loading(front, tmp_path / "load") as requests:
        times = restarted(front, front.hosts[0])
    assert "gateway" not in assert_it_cut(front.hosts[0], requests, *times)


@pytest.mark.hangs
def test_a_restart_by_the_watch_goes_on_without_a_gateway_that_is_gone(front: Front, tmp_path: Path) -> None:
    silent = front.gateways[1]
    silent.run("systemctl stop rackwright-gateway")
    try:
        with loading(front, tmp_path / "load", through=1) as requests:
            hung, proven = restarted(front, front.hosts[0])
    finally:
        silent.run("systemctl start rackwright-gateway")
    message = assert_it_cut(front.hosts[0], requests, hung, proven)
    assert f"not waited for: gateway {silent.name}, which no longer asks" in message
