"""The pure parts of hand-on: who is served, which source is slow, what is signed, which arguments are refused."""

from __future__ import annotations

import json
import socket
from typing import Any
from urllib.error import URLError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.hostside.hand_on.failures import HandOnError
from rackwright.hostside.hand_on.pieces import PIECE, Keys, count, length, same
from rackwright.hostside.hand_on.rate_limit import RateLimit
from rackwright.hostside.hand_on.receive import words
from rackwright.hostside.hand_on.request import offset, parse
from rackwright.hostside.hand_on.server import PieceServer
from rackwright.hostside.hand_on.slot import IDLE, LAG, ServingSlot
from rackwright.hostside.hand_on.spec import HandOnSpec, Listen, is_plain, read
from rackwright.hostside.hand_on.watch import Sample, SourceWatch
from tests import texts

TOKEN = "a-token-of-this-run-with-enough-characters"
GIVEN: dict[str, Any] = {
    "files": [{"path": "a/b", "size": 1, "sha256": "0" * 64}],
    "folder": "/models/X.partial",
    "listen": {"address": "10.0.0.3", "port": 7461, "allow": ["10.0.0.4"]},
    "sources": [{"name": "host-a", "address": "10.0.0.2", "port": 7461}],
    "origin": None,
    "secrets": "/run/secrets",
}


class Clock:
    """A time that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def slot() -> tuple[ServingSlot, Clock]:
    clock = Clock()
    return ServingSlot(["a", "b", "c"], clock), clock


# -- whom a host serves


def test_one_host_is_served_at_a_time_and_the_next_one_when_it_leaves() -> None:
    here, _ = slot()
    assert here.ask("b", 0) == ""
    assert here.ask("c", 0) == "busy"
    assert here.ask("b", PIECE) == ""
    here.leave("b")
    assert here.ask("c", 0) == ""


def test_a_host_that_asks_nothing_loses_its_turn() -> None:
    here, clock = slot()
    here.ask("b", 0)
    clock.now += IDLE - 1
    here.still("b")
    clock.now += IDLE - 1
    assert here.ask("c", 0) == "busy"
    clock.now += 2
    assert here.ask("c", 0) == ""


def test_an_earlier_host_comes_first_unless_it_would_hold_the_other_up() -> None:
    here, _ = slot()
    here.ask("c", 10 * PIECE)
    assert here.ask("a", 10 * PIECE - LAG - 1) == "busy"
    assert here.ask("a", 10 * PIECE - LAG) == ""
    assert here.ask("c", 10 * PIECE) == "busy"


def test_a_passed_host_waits_until_no_one_else_wants_its_turn() -> None:
    here, _ = slot()
    here.ask("a", 0)
    assert here.ask("b", 0, passing="a") == ""
    assert here.ask("a", 5 * PIECE) == "passed"
    assert here.ask("c", 0) == "busy"
    here.leave("b")
    assert here.ask("a", 5 * PIECE) == ""
    assert here.ask("c", 0) == ""


# -- which source is slow


def looked(*rows: tuple[int, int], whole: bool = False, tried: bool = False) -> list[bool]:
    """Return the decisions of looks: MiB that the source has, and that the host before it has."""
    watch = SourceWatch(0)
    return [
        watch.add(Sample(3.0 * number, source * PIECE, before * PIECE, whole), tried)
        for number, (source, before) in enumerate(rows)
    ]


def test_a_source_of_half_the_rate_is_passed_after_two_windows() -> None:
    assert looked((3, 6), (6, 12), (9, 18)) == [False, False, True]


def test_a_source_that_keeps_up_is_not_passed_however_far_it_is_behind() -> None:
    assert looked((3, 60), (9, 66), (15, 72), (21, 78)) == [False] * 4


def test_a_piece_or_two_behind_is_how_a_chain_runs() -> None:
    assert looked((0, 1), (0, 3), (1, 4), (1, 4)) == [False] * 4


def test_one_slow_window_is_not_enough() -> None:
    assert looked((3, 20), (4, 26), (10, 32), (11, 38), (17, 44)) == [False] * 5


def test_looks_at_different_hosts_are_not_compared() -> None:
    watch = SourceWatch(0)
    looks = [("near", 3, 20), ("far", 3, 40), ("far", 4, 46), ("far", 5, 52)]
    samples = [
        Sample(3.0 * at, source * PIECE, before * PIECE, False, of) for at, (of, source, before) in enumerate(looks)
    ]
    assert [watch.add(sample, tried=False) for sample in samples] == [False, False, False, True]


def test_behind_a_host_that_has_all_one_try_tells() -> None:
    assert looked((3, 90), (9, 90), (15, 90), whole=True) == [False, False, True]
    assert looked((3, 90), (9, 90), (15, 90), whole=True, tried=True) == [False] * 3


# -- signatures and requests


def test_a_signature_is_of_one_connection_one_request_and_one_token() -> None:
    keys = Keys(TOKEN)
    signed = keys.sign_request("nonce", 1, ["GET", "/files/a", "bytes=0-"])
    others = [
        keys.sign_request("other", 1, ["GET", "/files/a", "bytes=0-"]),
        keys.sign_request("nonce", 2, ["GET", "/files/a", "bytes=0-"]),
        keys.sign_request("nonce", 1, ["GET", "/files/b", "bytes=0-"]),
        Keys(TOKEN + "x").sign_request("nonce", 1, ["GET", "/files/a", "bytes=0-"]),
        keys.sign_list("nonce", 1, ["GET", "/files/a", "bytes=0-"]),
    ]
    assert not any(same(signed, other) for other in others)
    assert TOKEN not in signed
    with pytest.raises(ValueError, match="fewer than 32"):
        Keys("short")


@given(st.integers(min_value=0, max_value=50 * PIECE))
def test_pieces_add_up_to_the_file(size: int) -> None:
    assert sum(length(size, number) for number in range(count(size))) == size


@given(st.binary(max_size=300))
def test_any_bytes_are_a_request_or_refused(head: bytes) -> None:
    try:
        request = parse(head)
    except ValueError:
        return
    assert request.method in ("GET", "HEAD", "POST")


def test_a_request_with_a_body_or_a_header_twice_is_refused() -> None:
    assert parse(b"GET /a HTTP/1.1\r\nRange: bytes=0-").headers == {"range": "bytes=0-"}
    for wrong in ("Content-Length: 5", "Transfer-Encoding: chunked", "Range: bytes=5-", "no colon"):
        with pytest.raises(ValueError, match=r".+"):
            parse(b"GET /a HTTP/1.1\r\nRange: bytes=0-\r\n" + wrong.encode())


@given(st.text(max_size=30))
def test_only_a_range_from_a_piece_on_is_one(text: str) -> None:
    found = offset(text, 3 * PIECE, PIECE)
    assert found in (None, 0, PIECE, 2 * PIECE)
    assert found is None or text.startswith("bytes=")


def test_ranges_that_end_or_begin_elsewhere_are_refused() -> None:
    assert offset(f"bytes={PIECE}-", 2 * PIECE, PIECE) == PIECE
    for wrong in ("bytes=1-", "bytes=0-5", "bytes=-5", f"bytes={2 * PIECE}-", "bytes=٣-", "bytes=0-,5-", "0-"):
        assert offset(wrong, 2 * PIECE, PIECE) is None, wrong


# -- arguments


def spec(**changed: Any) -> HandOnSpec:
    return read(json.dumps({**GIVEN, **changed}))


def test_the_arguments_are_read() -> None:
    found = spec(rate_mib=2, origin={"url": "https://hub/x", "authorised": True})
    assert (found.rate, found.serve, found.origin, found.authorised) == (2.0 * (1 << 20), None, "https://hub/x/", True)
    assert (found.after, spec(stall=7).after, spec(origin={"url": "https://hub/x", "after": 9}).after) == (
        60.0,
        7.0,
        9.0,
    )
    assert found.name("10.0.0.2") == "host-a"
    assert not found.reads_only
    assert spec(sources=[]).reads_only


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "a//b", "a/./b", "a/..", "", ".parts/x", "a\\b", "a\nb", ".rackwright.json"]
)
def test_a_path_that_leads_elsewhere_is_refused(path: str) -> None:
    assert not is_plain(path)
    with pytest.raises(HandOnError, match="leads elsewhere"):
        spec(files=[{"path": path, "size": 1, "sha256": "0" * 64}])


@pytest.mark.parametrize(
    "changed",
    [
        {"files": GIVEN["files"] * 2},
        {"files": [{"path": "a", "size": -1, "sha256": "0" * 64}]},
        {"files": [{"path": "a", "size": 1, "sha256": "x"}]},
        {"folder": "models"},
        {"listen": {"address": "example.org", "port": 1, "allow": []}},
        {"listen": {"address": "10.0.0.1", "port": 1, "allow": ["10.0.0.0/8"]}},
        {"origin": {"url": "file:///etc/passwd"}},
        {"rate_mib": -1},
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(HandOnError) as refused:
        spec(**changed)
    assert refused.value.status == 78


# -- what it says while it waits


def test_a_line_names_the_hosts_that_are_waited_for_and_how_long() -> None:
    listen = Listen("10.0.0.1", 7461, tuple(f"10.0.0.{number}" for number in range(2, 9)))
    server = PieceServer(listen, (), Keys(TOKEN), RateLimit(None), 60, None)
    server.came |= {"10.0.0.2", "10.0.0.3"}
    server.done.add("10.0.0.2")
    begin = texts.WAITS_TO_BEGIN.format(names="10.0.0.4, 10.0.0.5, 10.0.0.6 and 2 more")
    ask = texts.WAITS_TO_ASK.format(names="10.0.0.3")
    assert server.waits_for(299.6) == texts.WAITS.format(rows=f"{ask} and {begin}", seconds=300)
    server.done |= set(listen.allow[2:])
    assert server.waits_for(59) == texts.WAITS.format(rows=ask, seconds=59)


def test_a_host_that_does_not_listen_yet_is_no_error_of_the_system() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(OSError, match="efused") as refused:
            socket.create_connection(taken.getsockname())
    assert words(refused.value) == words(URLError(refused.value)) == "nothing listens there yet"
