"""The lease: what is read of it, whom it names, and the scripts that take, check and give it back, run for real."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.lease import SeenLease, parse_lease, parse_seen, span, whose

FILE = """\
id=7.3fa9c1d2
user=alice
machine=ctl-1
purpose=pyinfra deploy.py
place=ctl-1 boot 4026531836
pid=4711
started=99
taken=1000
expires=1120
"""


def seen(uptime: int, text: str = FILE) -> SeenLease:
    return parse_seen(["fence=7", f"lease={base64.b64encode(text.encode()).decode()}", f"uptime={uptime}", ""])


def test_a_lease_is_read_with_its_owner_and_its_times() -> None:
    read = seen(1090)
    assert read.live is not None
    assert (read.fence, read.live.number, read.live.id) == (7, 7, "7.3fa9c1d2")
    assert (read.age, read.left) == (90, 30)
    told = whose(read, datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC))
    assert told == "alice@ctl-1 (pyinfra deploy.py) since 11:58:30, 1 min 30 s ago"


@pytest.mark.parametrize("uptime", [1120, 5000, 999])
def test_a_lease_ends_by_the_hosts_own_clock_and_after_its_restart(uptime: int) -> None:
    read = seen(uptime)
    assert read.lease is not None
    assert read.live is None
    assert read.left == 0


def test_a_host_without_a_lease() -> None:
    read = parse_seen(["fence=", "uptime=12"])
    assert read == SeenLease(0, 12, None)
    assert whose(read, datetime.now(UTC)) == "nobody"


@given(st.text())
def test_a_lease_that_makes_no_sense_has_ended(text: str) -> None:
    lease = parse_lease(text)
    assert lease is None or SeenLease(0, 10**12, lease).live is None


@pytest.mark.parametrize(("seconds", "text"), [(59, "59 s"), (185, "3 min 5 s"), (7800, "2 h 10 min")])
def test_spans_are_for_people(seconds: int, text: str) -> None:
    assert span(seconds) == text
