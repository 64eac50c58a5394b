"""Never more at it than allowed, no waiter is forgotten, and a failure gives its slot back."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rackwright.remote.download_slots import Slots


def test_never_more_than_allowed_and_all_get_their_turn() -> None:
    slots, lock = Slots(), threading.Lock()
    now = most = 0
    waited: list[int] = []

    def work(number: int) -> bool:
        nonlocal now, most
        with slots.one(f"h{number}", 3, waited.append):
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(0.01)
            with lock:
                now -= 1
        return True

    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(work, range(24)))
    assert most == 3
    assert set(waited) == {3}
    assert slots.busy == 0


def test_without_a_limit_nobody_waits() -> None:
    slots = Slots()
    notices: list[int] = []
    with slots.one("h1", 1, notices.append), slots.one("h2", None, notices.append):
        assert slots.busy == 2
    assert notices == []


def test_a_host_has_one_slot_however_many_jobs_it_runs() -> None:
    slots = Slots()
    notices: list[int] = []
    with slots.one("h1", 1, notices.append):
        with slots.one("h1", 1, notices.append):
            assert slots.busy == 1
        assert slots.busy == 1
    assert (slots.busy, notices) == (0, [])


def test_a_failure_gives_its_slot_back() -> None:
    slots = Slots()
    with pytest.raises(RuntimeError), slots.one("h1", 1, lambda _: None):
        raise RuntimeError
    assert slots.busy == 0
