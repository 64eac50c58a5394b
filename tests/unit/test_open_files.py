"""A fleet's connections have room among the files that this process may open, or nothing is connected."""

from __future__ import annotations

import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.adapter.ssh.open_files import A_HOST, OTHERS, UNLIMITED, allow_open_files, room_for
from rackwright.messages import RackwrightError

LIMITS = st.integers(64, 10**6)


@given(soft=LIMITS, more=st.integers(0, 10**6), hosts=st.integers(1, 5000))
def test_there_is_room_for_all_or_nothing_is_connected(soft: int, more: int, hosts: int) -> None:
    hard = soft + more
    if hard < hosts * A_HOST + OTHERS:
        with pytest.raises(RackwrightError, match=f"connections to {hosts} hosts .* ulimit -Hn"):
            room_for(soft, hard, hosts)
    else:
        assert soft <= room_for(soft, hard, hosts) <= hard
        assert room_for(soft, hard, hosts) > hosts * A_HOST


def test_what_is_unlimited_stays_so() -> None:
    assert room_for(UNLIMITED, UNLIMITED, 5000) == UNLIMITED
    assert room_for(1024, UNLIMITED, 5000) > 5000 * A_HOST


def test_this_process_gets_the_room() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        allow_open_files(400)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 400 * A_HOST
        with pytest.raises(RackwrightError, match="nothing was connected"):
            allow_open_files(10**9)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
