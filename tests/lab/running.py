"""A deploy that is followed line by line while it runs, so that a test can do something to it at a given point."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import warm
from tests.lab.conftest import BIN, PATIENCE, ROOT, Run, Site


class Running:
    """A command of the site that runs now, and its output up to now."""

    def __init__(self, site: Site, *words: str, cwd: Path = ROOT) -> None:
        self.site = site
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._ended = False
        self._run: Run | None = None
        printed, output = os.pipe()
        self.process = warm.start(words, cwd, site.environment(), output)
        os.close(output)
        self._printed = os.fdopen(printed, errors="replace")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._printed as printed:
            for output_line in printed:
                with self._news:
                    self.lines.append(output_line.rstrip("\n"))
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    @property
    def output(self) -> str:
        """Return everything that it has printed up to now."""
        return "\n".join(self.lines) + "\n"

    def until(self, wanted: Callable[[str], bool] | str, seconds: float = PATIENCE) -> str | None:
        """Return the first line that is wanted, or has this text, as soon as it is printed; None: it ended without."""
        matches = wanted if callable(wanted) else lambda output_line: str(wanted) in output_line
        deadline = time.monotonic() + seconds
        position = 0
        with self._news:
            while True:
                for output_line in self.lines[position:]:
                    position += 1
                    if matches(output_line):
                        return output_line
                if self._ended:
                    return None
                in_time = self._news.wait(deadline - time.monotonic())
                assert in_time, f"nothing of the kind in {seconds} s:\n{self.output}"

    def stop(self, number: signal.Signals = signal.SIGKILL) -> Run:
        """Send its process group a signal and wait for its end."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)
        return self.end()

    def end(self, seconds: float = PATIENCE) -> Run:
        """Wait until it has ended."""
        if self._run is not None:
            return self._run
        try:
            status = self.process.wait(seconds)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self._reader.join(10)
        self._run = Run(status, self.output)
        self.site.runs.append(self._run)
        return self._run


@contextmanager
def deploying(site: Site, limit: str, *options: str, program: Path | str = "deploy.py") -> Iterator[Running]:
    """Deploy onto one host; whatever happens, it does not outlive the block."""
    running = Running(site, str(BIN / "pyinfra"), "inventory/lab.py", str(program), "-y", "--limit", limit, *options)
    try:
        yield running
    finally:
        running.stop()
