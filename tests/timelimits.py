"""Time limits of tests: what hangs is ended with its name and all stacks, and fails.

At its limit a test fails where it stands (pytest-timeout, by a signal), and its fixtures take down what they set up.
What that does not reach, since it catches everything or waits in C, ends with its whole process at the hard limit:
xdist then names the test, and another worker takes the rest.
"""

from __future__ import annotations

import faulthandler
import io
import math
import os
import sys
import threading
import traceback
from collections.abc import Generator

import pytest

QUICK, LAB = 600.0, 3600.0
"""Seconds for a test and its fixtures: on this machine alone, and on lab hosts. Even a crowded machine is faster."""
HARD = 1.5
"""The hard limit as a multiple: time for the fixtures of a lab."""

_limit = pytest.StashKey[float]()
_spent = pytest.StashKey[float]()
_stderr = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep the standard error that nothing captures, for the hard limit's stacks."""
    with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        config.stash[_stderr] = os.dup(2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its limit, unless it has one of its own."""
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LAB if item.get_closest_marker("lab") else QUICK))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End the process at the hard limit: faulthandler's thread needs neither the interpreter nor a signal."""
    marker = item.get_closest_marker("timeout")
    assert marker is not None
    item.stash[_spent], item.stash[_limit] = 0.0, float(marker.args[0])
    faulthandler.dump_traceback_later(HARD * item.stash[_limit], exit=True, file=item.config.stash[_stderr])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_enter_pdb() -> None:
    """Suspend the limit: a debugging session takes the time that it takes."""
    faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show all stacks of a test that hung; it has failed also where the signal ended nothing but a greenlet."""
    report = yield
    item.stash[_spent] += report.duration
    limit = item.stash[_limit]
    if item.stash[_spent] > limit:
        item.stash[_limit] = math.inf  # once a test: its teardown is not a second failure
        report.sections.append(("stacks at the time limit", stacks()))
        if report.passed:
            report.outcome, report.longrepr = "failed", f"{item.nodeid} took longer than its limit of {limit:g} s"
    return report


def stacks() -> str:
    """Return the stacks of all threads, and of all greenlets where something runs in them."""
    if "gevent" in sys.modules:
        from gevent.util import print_run_info  # noqa: PLC0415 - only then

        text = io.StringIO()
        print_run_info(file=text)
        return text.getvalue()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames().items()
    return "\n".join(f"{names.get(ident)}:\n{''.join(traceback.format_stack(frame))}" for ident, frame in frames)
