"""Faults of the hand-on program: after any of them no wrong byte counts, the others get all, and no listener stays."""

from __future__ import annotations

import http.client
import random
import signal
import socket
import subprocess
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from rackwright.hostside.hand_on import origin
from rackwright.hostside.hand_on.failures import NoPiecesError
from rackwright.hostside.hand_on.holding import Holding
from rackwright.hostside.hand_on.pieces import Keys
from rackwright.hostside.hand_on.rate_limit import RateLimit
from rackwright.hostside.hand_on.report import PullReport
from rackwright.hostside.hand_on.spec import File
from tests import texts
from tests.lab.products import in_proof, with_proof
from tests.programs.hand_on_hosts import (
    HUB_TOKEN,
    MIB,
    TOKEN,
    Fleet,
    Fleets,
    Host,
    Hub,
    content,
    fleets,
    program,
    sha256,
)
from tests.programs.hand_on_liar import KINDS, Liar

__all__ = ["fleets", "program"]
FILES = {"a/first": content(3 * MIB + 5, 1), "b": content(MIB, 2), "c/last": content(2 * MIB + 1, 3)}
TOTAL = sum(map(len, FILES.values()))


def all_whole(fleet: Fleet) -> None:
    for host in fleet.hosts:
        assert host.wait() == 0, host.text()
        assert host.is_whole(), host.text()
        assert not host.wrong()
    assert not fleet.listening()


KILLS = [[3, 51, 99], *(list(range(first, 100, 10)) for first in range(10))]
"""Percents of all bytes at which a host is killed: a few, and then every one."""


@pytest.mark.parametrize("percents", with_proof(KILLS, KILLS[:1], "kills at three of the percents are tried"), ids=str)
def test_kills_at_every_percent_leave_nothing_wrong(fleets: Fleets, percents: list[int]) -> None:
    fleet = fleets(3, FILES, rate=8 * MIB)
    chance = random.Random(sum(percents))
    for percent in percents:
        for host in fleet.hosts:
            host.clear()
            host.start(linger=12, start=20)
        victim = chance.choice(fleet.hosts)
        victim.wait_for_bytes(max(1, TOTAL * percent // 100))
        victim.kill()
        assert not victim.wrong()
        victim.start(linger=10, start=20)
        all_whole(fleet)


@pytest.mark.parametrize("kind", KINDS)
def test_a_host_that_sends_wrong_bytes_is_named_and_another_one_gives(fleets: Fleets, kind: str) -> None:
    fleet = fleets(3, FILES)
    first, liar, host = fleet.hosts
    lying = Liar(liar, kind, [host])
    first.start(allow=[host], linger=30)
    first.wait_for("whole:")
    host.start(sources=[liar, first], allow=[])
    assert host.wait() == 0, host.text()
    assert host.is_whole()
    lying.close()
    words = {"piece": "is not what its list says", "list": "is not signed by this run", "whole": "not the published"}
    warned = next(row for row in host.text().splitlines() if row.startswith("warning: ") and words[kind] in row)
    assert liar.name in warned
    assert "MiB from host-0" in host.text().rpartition("whole:")[2]


def test_a_host_that_was_deceived_is_asked_again_once_it_is_right(fleets: Fleets) -> None:
    fleet = fleets(4, {"model": content(4 * MIB)})
    first, liar, middle, last = fleet.hosts
    lying = Liar(liar, "whole", [middle])
    first.start(allow=[middle], linger=30)
    first.wait_for("whole:")
    last.start(sources=[middle], allow=[], stall=20)
    middle.start(sources=[liar, first], allow=[last], rate_mib=4.0)
    for host in (middle, last):
        assert host.wait() == 0, host.text()
        assert host.is_whole()
    lying.close()
    assert f"from: {liar.name}" in middle.text()


def test_wrong_bytes_of_the_hub_are_never_whole_on_any_host(fleets: Fleets) -> None:
    fleet = fleets(2, FILES)
    fleet.hub.files = FILES | {"b": content(MIB, 9)}
    first, second = fleet.hosts
    first.start()
    second.start(stall=3)
    assert first.wait() == 1
    assert second.wait() == 1
    for host in fleet.hosts:
        assert not host.wrong()
        assert not (host.folder / "b").exists()
    assert texts.THROWN_AWAY.format(path="b", names="the hub") in first.text()
    assert not fleet.listening()


@pytest.mark.parametrize(("status", "words"), [(404, "has no such file (404)"), (401, "refuses the token (401)")])
def test_what_the_hub_refuses_ends_the_run_with_its_reason(fleets: Fleets, status: int, words: str) -> None:
    fleet = fleets(1, FILES)
    fleet.hub.status = status
    fleet.hosts[0].start(listen=None)
    assert fleet.hosts[0].wait() == 1
    assert words in fleet.hosts[0].text()


def test_a_redirect_to_another_server_gets_no_token(fleets: Fleets) -> None:
    fleet = fleets(1, FILES)
    store = Hub(FILES)
    fleet.hub.elsewhere = store.url
    fleet.hosts[0].start(listen=None)
    all_whole(fleet)
    store.close()
    assert {token for _, _, token in fleet.hub.asked} == {f"Bearer {HUB_TOKEN}"}
    assert {token for _, _, token in store.asked} == {""}


def test_a_port_that_is_taken_is_named(fleets: Fleets) -> None:
    fleet = fleets(1, FILES)
    (host,) = fleet.hosts
    with socket.create_server((host.address, fleet.port)):
        host.start()
        assert host.wait() == 1
    assert f"cannot listen on {host.address} port {fleet.port}" in host.text()


@pytest.fixture
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origin, "SEGMENT", 2 * MIB)
    monkeypatch.setattr(origin, "FAST", 0)


def filled(hub: Hub, data: bytes, folder: Path, tries: int = 1) -> Holding:
    """Fill a folder by the hub's part of the program, in as many tries."""
    file = File("model", len(data), sha256(data))
    (folder / ".parts").mkdir()
    here, files = Holding(file, folder), origin.HubFiles(hub.url, HUB_TOKEN, 5)
    here.resume(lambda _: None)
    for number in range(tries):
        with suppress(NoPiecesError) if number < tries - 1 else nullcontext():
            files.fill(here, RateLimit(None), PullReport(len(data)))
    assert here.close_whole_or_discard()
    return here


@pytest.mark.usefixtures("short_segments")
def test_a_fast_hub_is_asked_by_several_connections_for_one_copy(tmp_path: Path) -> None:
    data = content(23 * MIB + 5)
    hub = Hub({"model": data})
    filled(hub, data, tmp_path)
    assert (tmp_path / "model").read_bytes() == data
    ranges = [row[1] for row in hub.asked]
    assert ranges[0] == "bytes=0-"
    starts = sorted(int(text[len("bytes=") :].split("-")[0]) for text in ranges[1:])
    assert starts == list(range(starts[0], len(data), 2 * MIB))
    assert starts[0] <= 3 * MIB
    hub.close()


@pytest.mark.usefixtures("short_segments")
def test_a_fast_hub_that_breaks_or_knows_no_ranges_gives_all_the_same(tmp_path: Path) -> None:
    data = content(23 * MIB + 5)
    for name, ranges, break_at in (("breaks", True, 13 * MIB), ("whole", False, -1)):
        (tmp_path / name).mkdir()
        hub = Hub({"model": data})
        hub.ranges, hub.break_at = ranges, break_at
        filled(hub, data, tmp_path / name, tries=2)
        assert (tmp_path / name / "model").read_bytes() == data
        hub.close()


def test_a_hub_that_breaks_the_connection_is_asked_for_the_rest(fleets: Fleets) -> None:
    fleet = fleets(1, FILES)
    fleet.hub.break_at = 2 * MIB + 3
    fleet.hosts[0].start(listen=None)
    all_whole(fleet)
    assert [wanted for path, wanted, _ in fleet.hub.asked if path == "a/first"][1] == f"bytes={2 * MIB}-"


class ByHand:
    """A connection by hand, signed or not."""

    def __init__(self, host: Host, address: str, token: str = TOKEN) -> None:
        self.http = http.client.HTTPConnection(host.address, host.fleet.port, timeout=15, source_address=(address, 0))
        self.keys, self.number, self.nonce = Keys(token), 0, ""

    def ask(self, method: str, path: str, wanted: str = "bytes=0-", signed: bool = True) -> int:
        """Return the status of an answer."""
        if not self.nonce:
            self.http.request("GET", "/")
            answer = self.http.getresponse()
            answer.read()
            self.nonce = answer.headers.get("X-Nonce", "")
        self.number += 1
        signature = self.keys.sign_request(self.nonce, self.number, [method, path, wanted])
        headers = {"Range": wanted, **({"Authorization": f"Run {signature}"} if signed else {})}
        self.http.request(method, path, headers=headers)
        answer = self.http.getresponse()
        answer.read()
        return answer.status


def test_a_hostile_host_of_the_run_gets_the_runs_files_only(fleets: Fleets) -> None:
    fleet = fleets(2, FILES)
    first, other = fleet.hosts
    (first.folder / "secret").write_text("not of the run")
    first.start(linger=20)
    first.wait_for("whole:")
    assert ByHand(first, other.address).ask("GET", "/files/b") == 206
    for path in ("/files/secret", "/files/../secret", "/files//etc/passwd", "/files/%2e%2e/secret", "/etc/passwd", "/"):
        assert ByHand(first, other.address).ask("GET", path) == 404, path
    assert ByHand(first, other.address).ask("GET", "/files/a/../b") == 404
    assert ByHand(first, other.address).ask("GET", "/files/%62") == 404
    assert ByHand(first, other.address).ask("POST", "/files/b") == 404
    for wanted in ("bytes=5-", "bytes=0-10", "bytes=-5", f"bytes={MIB}-", "bytes=99999999999999999999999-", ""):
        assert ByHand(first, other.address).ask("GET", "/files/b", wanted) == 416, wanted
    first.kill()


def test_who_has_no_token_or_another_address_gets_nothing(fleets: Fleets) -> None:
    fleet = fleets(2, FILES)
    first, other = fleet.hosts
    first.start(linger=20)
    first.wait_for("whole:")
    assert ByHand(first, other.address).ask("GET", "/files/b", signed=False) == 401
    assert ByHand(first, other.address, TOKEN + "x").ask("GET", "/files/b") == 401
    replayed = ByHand(first, other.address)
    assert replayed.ask("GET", "/files/b") == 206
    replayed.number -= 1
    assert replayed.ask("GET", "/files/b") == 401
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        ByHand(first, "127.0.0.99").ask("GET", "/files/b")
    first.kill()


def test_a_hundred_silent_connections_of_a_non_member_stop_no_one(fleets: Fleets) -> None:
    fleet = fleets(2, FILES)
    first, second = fleet.hosts
    first.start()
    first.wait_for("listening")
    links = [_link(first, "127.0.0.99", b"") for _ in range(100)]
    links += [_link(first, "127.0.0.77", b"GET / HTTP/1.1\r\nX: ") for _ in range(100)]
    second.start()
    all_whole(fleet)
    for link in links:
        link.close()


def _link(host: Host, address: str, text: bytes) -> socket.socket:
    link = socket.create_connection((host.address, host.fleet.port), 5, (address, 0))
    with suppress(OSError):
        link.sendall(text)
    return link


@in_proof("a hundred connections of a non-member are tried; these end by a time limit of ten seconds")
def test_half_a_request_of_a_host_of_the_run_ends_by_time(fleets: Fleets) -> None:
    fleet = fleets(2, FILES)
    first, second = fleet.hosts
    first.start(linger=30)
    first.wait_for("listening")
    links = [_link(first, second.address, b"GET / HTTP/1.1\r\nX: ") for _ in range(4)]
    start = time.monotonic()
    for link in links:
        link.settimeout(30)
        assert link.recv(1) == b""
    assert 5 < time.monotonic() - start < 15
    second.start()
    all_whole(fleet)


def test_a_full_disk_is_named_and_what_arrived_is_kept(fleets: Fleets) -> None:
    fleet = fleets(1, {"model": content(4 * MIB)})
    (host,) = fleet.hosts
    host.start(limit=2 * MIB + 100, listen=None)
    assert host.wait() == 1
    assert "no room is left" in host.text()
    assert not host.wrong()
    host.start(listen=None)
    all_whole(fleet)
    assert fleet.hub.asked[-1][1] == f"bytes={2 * MIB}-"


def test_hosts_that_only_wait_for_each_other_end(fleets: Fleets) -> None:
    fleet = fleets(4, {"model": content(12 * MIB)}, rate=3 * MIB)
    for host in fleet.hosts:
        host.start(stall=4)
    fleet.hosts[3].wait_for_bytes(3 * MIB)
    fleet.hosts[0].kill()
    start = time.monotonic()
    for host in fleet.hosts[1:]:
        assert host.wait() == 1
        assert "no source gives it" in host.text()
    assert time.monotonic() - start < 30
    assert not fleet.listening()
    for host in fleet.hosts:
        host.start()
    all_whole(fleet)


def test_where_no_source_gives_the_first_asks_the_hub_and_the_others_take_from_it(fleets: Fleets) -> None:
    fleet = fleets(4, {"model": content(6 * MIB)}, rate=3 * MIB)
    for host in fleet.hosts[1:]:
        turn = fleet.hosts.index(host) - 1
        host.start(stall=2, start=30, origin={"url": fleet.hub.url, "authorised": True, "after": 2 + 20 * turn})
    for host in fleet.hosts[1:]:
        assert host.wait() == 0, host.text()
        assert host.is_whole()
    assert sum(fleet.hub.sent.values()) == 6 * MIB


def test_a_disk_without_the_room_is_named_before_a_byte_is_fetched(fleets: Fleets) -> None:
    fleet = fleets(1, FILES)
    (host,) = fleet.hosts
    host.start(listen=None, files=[{"path": "model", "size": 1 << 60, "sha256": "0" * 64}])
    assert host.wait() == 1
    assert f"{1 << 30}.0 GiB are missing" in host.text()
    assert fleet.hub.asked == []


def test_a_source_that_dies_half_way_is_left_and_one_that_comes_back_is_filled(fleets: Fleets) -> None:
    fleet = fleets(4, {"model": content(12 * MIB)}, rate=3 * MIB)
    for host in fleet.hosts:
        host.start()
    middle, after = fleet.hosts[1], fleet.hosts[2]
    middle.wait_for_bytes(4 * MIB)
    middle.kill()
    after.wait_for_bytes(8 * MIB)
    middle.start()
    all_whole(fleet)
    assert sum(fleet.hub.sent.values()) == 12 * MIB
    assert "from host-0" in after.text().rpartition("whole:")[2]
    assert "MiB from this host's disk" in middle.text().rpartition("whole:")[2]


@in_proof("a source that dies is left by a test here; this one ends by a time limit")
def test_a_source_that_says_nothing_is_left_too(fleets: Fleets) -> None:
    fleet = fleets(3, {"model": content(12 * MIB)}, rate=3 * MIB)
    for host in fleet.hosts:
        host.start(stall=3)
    _, middle, last = fleet.hosts
    middle.wait_for_bytes(3 * MIB)
    middle.kill(signal.SIGSTOP, wait=False)
    assert last.wait() == 0, last.text()
    assert last.is_whole()
    middle.kill(signal.SIGCONT, wait=False)
    all_whole(fleet)


def late_keeper(fleet: Fleet) -> Host:
    """Start a host that has all, and whose taker, which took it from another one, is gone."""
    keeper, taker = fleet.hosts
    for path, data in FILES.items():
        (keeper.folder / path).parent.mkdir(exist_ok=True)
        (keeper.folder / path).write_bytes(data)
    keeper.start(sources=[], origin=None, allow=[taker], linger=1, start=300)
    keeper.wait_for("whole:")
    return keeper


def test_a_host_that_begins_when_no_one_will_take_from_it_ends_once_it_is_released(fleets: Fleets) -> None:
    fleet = fleets(2, FILES)
    keeper = late_keeper(fleet)
    with pytest.raises(subprocess.TimeoutExpired):
        keeper.wait(3)  # beyond `linger`: it waits for one that has not begun
    (fleet.secrets / "released").touch()
    assert keeper.wait(5) == 0, keeper.text()
    assert not fleet.listening()


@in_proof("tests/unit/test_hand_on.py has the words; ten seconds of silence")
def test_a_host_that_waits_for_others_says_for_whom_and_how_long(fleets: Fleets) -> None:
    fleet = fleets(2, FILES)
    keeper = late_keeper(fleet)
    keeper.wait_for(texts.WAITS_TO_BEGIN.format(names=fleet.hosts[1].address), 20)


def ends_of(fleet: Fleet, slow: tuple[str, ...], within: float) -> dict[str, float]:
    """Start all hosts, the slow ones at 1 MiB/s, and return the seconds until each had everything."""
    ends: dict[str, float] = {}
    start = time.monotonic()
    for host in fleet.hosts:
        limits: dict[str, Any] = {"rate_mib": 1.0, "serve_mib": 1.0} if host.name in slow else {}
        host.start(**limits)
    while len(ends) < len(fleet.hosts):
        ends |= {
            one.name: time.monotonic() - start for one in fleet.hosts if one.name not in ends and "whole:" in one.text()
        }
        assert time.monotonic() - start < within, ends
        time.sleep(0.1)
    return ends


@in_proof("tests/unit/test_hand_on_choice.py decides by the same rules; a chain that fills for 8 s")
def test_a_host_at_the_end_of_a_chain_that_fills_leaves_and_passes_no_one(fleets: Fleets) -> None:
    fleet = fleets(8, {"model": content(4 * MIB)}, rate=MIB)
    for host in fleet.hosts:
        host.start(serve_mib=1.0, start=60, stall=60)
    all_whole(fleet)
    assert not any("another source" in host.text() for host in fleet.hosts)


@in_proof("tests/unit/test_hand_on.py decides by the same figures; a minute at a rate")
def test_of_two_slow_hosts_that_follow_each_other_both_are_passed(fleets: Fleets) -> None:
    fleet = fleets(7, {"model": content(64 * MIB)}, rate=2 * MIB)
    ends = ends_of(fleet, slow=("host-1", "host-2"), within=120)
    others = [seconds for name, seconds in ends.items() if name not in ("host-0", "host-1", "host-2")]
    assert max(others) < 1.6 * ends["host-0"], ends
    all_whole(fleet)


@in_proof("tests/unit/test_hand_on.py decides by the same figures; half a minute at a rate")
def test_a_slow_host_is_passed_and_gets_its_bytes_at_the_end_of_the_chain(fleets: Fleets) -> None:
    fleet = fleets(5, {"model": content(40 * MIB)}, rate=2 * MIB)
    ends = ends_of(fleet, slow=("host-1",), within=90)
    others = [seconds for name, seconds in ends.items() if name not in ("host-0", "host-1")]
    assert max(others) < 1.5 * ends["host-0"]
    assert ends["host-1"] < 1.25 * 40
    assert sum(fleet.hub.sent.values()) == 40 * MIB
    all_whole(fleet)
