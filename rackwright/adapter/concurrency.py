"""Threads, events, conditions and pauses. Under pyinfra they are gevent's, which replaces the standard library's names.

So none is made before a run begins, and no other module makes one: a move to another library of concurrency changes
this module (DECISIONS 56).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    # Types alone: a name bound before gevent patches stays the standard library's.
    Condition = threading.Condition
    Event = threading.Event
    Lock = threading.Lock
    Thread = threading.Thread

Item = TypeVar("Item")
Result = TypeVar("Result")


def spawn(work: Callable[[], object], name: str | None = None) -> Thread:
    """Begin work in a thread of its own, which ends with the process at the latest."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def new_event() -> Event:
    """Return an event that is not set."""
    return threading.Event()


def new_condition() -> Condition:
    """Return a condition variable with a lock of its own."""
    return threading.Condition()


def new_lock() -> Lock:
    """Return a free lock."""
    return threading.Lock()


def sleep(seconds: float) -> None:
    """Pause this thread, and no other."""
    time.sleep(seconds)


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item], at_once: int) -> list[Result]:
    """Do the same work for several items, `at_once` of them at a time; results in the items' order.

    Raises what the work for the first of them raises.
    """
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(work, items))


def in_main_thread() -> bool:
    """Return True in the process's first thread, the only one that may handle signals."""
    return threading.current_thread() is threading.main_thread()
