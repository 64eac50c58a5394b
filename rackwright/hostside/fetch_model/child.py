"""One try: a task in a child process that is watched for progress, slowed to a rate, and ended when it stalls."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rackwright.hostside.fetch_model.failures import DownloadError, classify

DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of linux/prctl.h: an orphan would continue to write."""
TICK = 0.2
TELL = 2.0
"""Seconds between two lines of progress."""


class Supervisor:
    """Waits for a child: ends one that stalls, and pauses one that exceeds its rate.

    stall: seconds without progress after which the child is ended. rate: bytes a second, or None.
    amount: bytes on disk. last_work: a number that changes while work continues. tell: prints a line of progress.
    """

    def __init__(
        self,
        stall: float,
        rate: float | None,
        amount: Callable[[], int] = lambda: 0,
        last_work: Callable[[], int] = lambda: 0,
        tell: Callable[[int, float], None] = lambda _bytes, _rate: None,
    ) -> None:
        self.stall, self.rate, self.amount, self.last_work, self.tell = stall, rate, amount, last_work, tell

    def __call__(self, child: int) -> None:
        """Wait until a child ends. Raises DownloadError("stalled")."""
        start = reported = moved = time.monotonic()
        first = before = last = self.amount()
        worked, paused = self.last_work(), False
        while not _ended(child):
            time.sleep(TICK)
            now, here, working = time.monotonic(), self.amount(), self.last_work()
            if here != before or working != worked or paused:
                moved, before, worked = now, here, working
            elif now - moved > self.stall:
                raise DownloadError("stalled", f"{self.stall:.0f} s")
            if now - reported >= TELL:
                # What its rate holds back has not stalled.
                mean = (here - first) / (now - start) if paused else 0.0
                self.tell(here, max(mean, (here - last) / (now - reported)))
                reported, last = now, here
            paused = self._pace(child, here - first, now - start)

    def _pace(self, child: int, arrived: int, seconds: float) -> bool:
        """Pause the child while it is ahead of the rate: this works with any library and HTTP client."""
        ahead = self.rate is not None and arrived > self.rate * seconds
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGSTOP if ahead else signal.SIGCONT)
        return ahead


def in_child(task: Callable[[], Any], supervisor: Supervisor) -> Any:
    """Run a task in a child process and return its result, as JSON values. Raises the child's DownloadError."""
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if child == 0:
            os._exit(_work(task, answer.fileno()))
        try:
            supervisor(child)
        finally:
            _end(child)
        answer.seek(0)
        got = json.loads(answer.read() or b'{"kind": "other", "text": "the download process was killed"}')
    if "kind" in got:
        raise DownloadError(got["kind"], got["text"], got.get("wait", 0))
    return got["result"]


def _work(task: Callable[[], Any], answer: int) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    try:
        got = {"result": task()}
    except BaseException as error:
        failure = classify(error)
        got = {"kind": failure.kind, "text": failure.text, "wait": failure.wait}
    with os.fdopen(answer, "w", closefd=False) as handle:
        handle.write(json.dumps(got))
    return 0


def _ended(child: int) -> bool:
    done = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return done is not None


def _end(child: int) -> None:
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
