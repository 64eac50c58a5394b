"""Two gateways with one address: what clients see when it moves, and what an operator sees of it."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import openai
import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests.lab.behind import MODEL, PATH, bridge
from tests.lab.conftest import BIN, ROOT, Run, Site, own_lab
from tests.lab.products import in_proof
from tests.refused import refusal

REASON = "three hosts from bare, and moves that are waited for; test_gateway.py has one gateway, tests/unit the rules"
pytestmark = [pytest.mark.lab, in_proof(REASON)]
LIMIT = 15
"""Seconds within which new requests must be answered by the other gateway."""
ROUTER = 77
INVENTORY = """
from rackwright.inventory import build
from rackwright_lab.inventory import hosts

first, *gateways = hosts()
globals().update(
    build(__file__, {"lab": [first], "lab_gateway": gateways}, children={"b200": ["lab"], "gateway": ["lab_gateway"]})
)
"""
PATHS = "inventory/pair.py"
SHORT = json.dumps({"model": MODEL, "max_tokens": 4, "messages": [{"role": "user", "content": "Hello"}]})


@dataclass
class Pair:
    """The two gateways, the host behind them, and a client's key."""

    site: Site
    folder: Path
    gateways: list[Host]
    behind: Host
    address: str
    key: str = ""

    def rackwright(self, verb: str, *words: str) -> Run:
        return self.site.command(BIN / "rackwright", verb, PATHS, *words, cwd=self.folder)

    def deploy(self, *words: str) -> Run:
        return self.site.command(BIN / "pyinfra", PATHS, "deploy.py", "-y", *words, cwd=self.folder, timeout=1800)

    def owners(self) -> list[Host]:
        """Return the gateways that have the address."""
        shown = f"ip -4 -o address show to {self.address}/32"
        return [one for one in self.gateways if one.is_on and one.run(shown, check=False).stdout]

    def owner(self) -> Host:
        """Return the one that has the address, once exactly one has it."""
        self.wait(lambda: len(self.owners()) == 1)
        [host] = self.owners()
        return host

    def other(self, host: Host) -> Host:
        return next(one for one in self.gateways if one != host)

    def wait(self, true: Callable[[], bool], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, f"{[host.name for host in self.owners()]} have the address"
            time.sleep(0.2)

    def write(self, section: str) -> None:
        text = (ROOT / "group_vars/lab_gateway.yml").read_text()
        (self.folder / "group_vars/lab_gateway.yml").write_text(text + section)

    def request(self, timeout: float, body: str = SHORT) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(self.address, 80, timeout=timeout)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        connection.request("POST", f"/{MODEL}{PATH}", body, headers)
        return connection.getresponse()


@pytest.fixture(scope="module")
def worker_lab() -> Iterator[Lab]:
    with own_lab("gp", hosts=3, bare=3) as lab:
        yield lab


@pytest.fixture(scope="module")
def pair(worker_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Deploy a host and two gateways with one address, and make a key."""
    folder = tmp_path_factory.mktemp("pair")
    shutil.copy(ROOT / "deploy.py", folder)
    for name in ("tasks", "group_vars", "templates"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "inventory").mkdir()
    (folder / PATHS).write_text(INVENTORY)
    behind, *gateways = worker_lab.hosts
    found = Pair(Site(worker_lab), folder, gateways, behind, f"{behind.address.rpartition('.')[0]}.200")
    found.write(section(found))
    first = found.deploy()
    assert first.status == 0, first.output
    found.key = add_key(found)
    assert found.deploy().changed == []
    return found


def section(pair: Pair) -> str:
    return f"  address: {pair.address}/24\n  virtual_router_id: {ROUTER}\n"


def add_key(pair: Pair) -> str:
    words = (BIN / "rackwright", "keys", "add", PATHS, "alice")
    made = pair.site.command(*words, cwd=pair.folder)
    return next(row for row in made.output.splitlines() if row.startswith("rk-"))


@dataclass
class Asking:
    """A client that sends a short request over a new connection again and again."""

    pair: Pair
    timeout: float
    failed: list[str] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)
    """When each answer came."""
    over: threading.Event = field(default_factory=threading.Event)

    def go_on(self) -> None:
        while not self.over.is_set():
            try:
                answer = self.pair.request(self.timeout)
                assert answer.status == 200, answer.status
                answer.read()
                self.answered.append(time.monotonic())
            except (OSError, AssertionError, http.client.HTTPException) as error:
                self.failed.append(repr(error))
            self.over.wait(0.1)

    def first_after(self, began: float) -> float:
        """Return the seconds until an answer after which there was a pause, or that came at all."""
        times = [one for one in self.answered if one > began]
        gaps = [(later - one, later) for one, later in zip([began, *times], times, strict=False)]
        return max(gaps)[1] - began if gaps else float("inf")


@contextmanager
def asking(pair: Pair, timeout: float = 2) -> Iterator[Asking]:
    client = Asking(pair, timeout)
    thread = threading.Thread(target=client.go_on)
    thread.start()
    try:
        yield client
    finally:
        client.over.set()
        thread.join()


@contextmanager
def stream(pair: Pair) -> Iterator[list[float]]:
    """Open a stream that takes minutes; yields the time at which it has ended, once it has."""
    pair.behind.set_engine_faults({"fault": "slow_factor", "value": 520})
    body = json.dumps({**json.loads(SHORT), "stream": True, "max_tokens": 1000})
    answer, ended = pair.request(120, body), list[float]()
    answer.readline()
    pair.behind.set_engine_faults()

    def read() -> None:
        with suppress(OSError, http.client.HTTPException):
            answer.read()
        ended.append(time.monotonic())

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    yield ended


BREAKS = {
    "hung": ("pkill -STOP -x haproxy", "pkill -CONT -x haproxy"),
    "keepalived killed": ("systemctl kill --signal=KILL rackwright-keepalived", "true"),
    "stopped": ("systemctl stop rackwright-gateway", "systemctl start rackwright-gateway"),
}


@pytest.mark.parametrize("words", BREAKS.values(), ids=BREAKS)
def test_the_other_gateway_answers_soon_and_keeps_the_address(pair: Pair, words: tuple[str, str]) -> None:
    owner = pair.owner()
    with asking(pair) as client:
        time.sleep(1)
        began = time.monotonic()
        owner.run(words[0])
        pair.wait(lambda: pair.other(owner) in pair.owners(), LIMIT)
        time.sleep(5)
        owner.run(words[1])
        pair.wait(lambda: pair.owners() == [pair.other(owner)])
        time.sleep(5)
    assert client.first_after(began) < LIMIT
    assert pair.owners() == [pair.other(owner)], "the address stays where it is"


def test_a_host_without_power_is_replaced_and_the_last_gateway_is_not_restarted(pair: Pair) -> None:
    owner = pair.owner()
    other = pair.other(owner)
    with asking(pair) as client:
        time.sleep(1)
        began = time.monotonic()
        owner.kill_power()
        pair.wait(lambda: pair.owners() == [other], LIMIT)
        time.sleep(3)
    assert client.first_after(began) < LIMIT
    try:
        refusal(pair.rackwright("reboot", "--limit", other.name, "-y").output, "RW3664")
    finally:
        owner.start()
    pair.wait(lambda: pair.owners() == [other])


def test_a_gateway_that_dies_ends_its_streams_and_answers_again(pair: Pair) -> None:
    owner = pair.owner()
    with asking(pair) as client, stream(pair) as ended:
        began = time.monotonic()
        owner.run("systemctl kill --signal=KILL rackwright-gateway")
        pair.wait(lambda: bool(ended), 5)
        time.sleep(LIMIT)
    assert client.first_after(began) < LIMIT


def test_a_reboot_of_both_in_waves_fails_no_short_request_and_moves_the_address_once(pair: Pair) -> None:
    owner, failed, over = pair.owner(), list[str](), threading.Event()
    library = openai.OpenAI(base_url=f"http://{pair.address}/{MODEL}/v1", api_key=pair.key, timeout=30)

    def by_library() -> None:
        while not over.is_set():
            try:
                library.chat.completions.create(
                    model=MODEL, max_tokens=4, messages=[{"role": "user", "content": "Hello"}]
                )
            except openai.OpenAIError as error:
                failed.append(repr(error))
            over.wait(0.1)

    thread = threading.Thread(target=by_library)
    thread.start()
    with asking(pair, timeout=20) as client:
        run = pair.rackwright("reboot", "--limit", "gateway", "-y", "--plain", "--bake", "2")
    over.set()
    thread.join()
    assert run.status == 0, run.output
    assert (client.failed, failed) == ([], [])
    assert len(client.answered) > 50
    assert pair.owners() == [pair.other(owner)]


@contextmanager
def cut_from_each_other(gateways: list[Host]) -> Iterator[None]:
    table, (first, second) = "inet of_a_test", gateways
    for one, other in ((first, second), (second, first)):
        chain = "chain i { type filter hook input priority -200; ip saddr " + other.address + " drop; }"
        one.run(f"echo 'table {table} {{ {chain}; }}' | nft -f -")
    try:
        yield
    finally:
        for one in gateways:
            one.run(f"nft delete table {table}", check=False)


def test_gateways_that_do_not_hear_each_other_are_reported_and_heal(pair: Pair) -> None:
    pair.owner()
    with asking(pair) as client:
        with cut_from_each_other(pair.gateways):
            pair.wait(lambda: len(pair.owners()) == 2, LIMIT)
            output = pair.rackwright("status", "--json").output
            status = json.loads(output[output.index("{\n") :])
            rows = [row for row in status["endpoints"] if row["endpoint"] == "gateway"]
            assert [(row["address"], bool(row["note"])) for row in rows] == [(pair.address, True)] * 2
            assert pair.rackwright("drift", "--limit", "gateway").status == 2
        pair.wait(lambda: pair.owners() == pair.gateways[:1], LIMIT)
        time.sleep(3)
    assert client.failed == []
    assert pair.rackwright("drift", "--limit", "gateway").status == 0


@contextmanager
def foreign_router(pair: Pair) -> Iterator[None]:
    """Announce another router with the same number on the hosts' network (VRRP 2, multicast)."""
    over, source = threading.Event(), bridge(pair.behind)
    message = struct.pack("!BBBBBBH4s", 0x21, ROUTER, 90, 1, 0, 1, 0, socket.inet_aton("192.0.2.1"))

    def announce() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, 112) as one:
            one.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(source))
            while not over.wait(1):
                one.sendto(message, ("224.0.0.18", 0))

    thread = threading.Thread(target=announce)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_foreign_router_with_the_number_is_heard_before_the_first_announcement(pair: Pair) -> None:
    pair.write("")
    assert pair.deploy("--limit", "gateway").status == 0
    assert pair.owners() == []
    pair.write(section(pair))
    with foreign_router(pair):
        refused = pair.deploy("--limit", "gateway")
    refusal(refused.output, "RW3628")
    assert refused.status != 0
    assert pair.owners() == []
    healed = pair.deploy("--limit", "gateway")
    assert healed.status == 0, healed.output
    pair.owner()


def test_teardown_of_one_leaves_the_other_with_the_address_and_teardown_of_both_leaves_nothing(pair: Pair) -> None:
    owner = pair.owner()
    with asking(pair, timeout=20) as client:
        gone = pair.rackwright("teardown", "--limit", owner.name, "-y")
        assert gone.status == 0, gone.output
        pair.wait(lambda: pair.owners() == [pair.other(owner)], LIMIT)
        time.sleep(2)
    assert client.failed == []
    again = pair.deploy("--limit", "gateway")
    assert again.status == 0, again.output
    both = pair.rackwright("teardown", "--limit", "gateway", "-y")
    assert both.status == 0, both.output
    assert pair.owners() == []
    units = "/etc/systemd/system/rackwright-[gk]*"
    remaining = f"ls -d /etc/rackwright {units} /usr/sbin/keepalived 2>/dev/null | grep -v lab-gpu"
    assert [host.run(remaining, check=False).stdout for host in pair.gateways] == ["", ""]
