"""A command on a terminal of its own, as an operator types at it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

CTRL_C, CTRL_D = "\x03", "\x04"
PATIENCE = 60.0
"""Seconds until what is waited for is shown."""


def _as_a_login() -> None:
    """Get the terminal, and the hang-up that a runner of tests may ignore (nohup)."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Typed:
    """A command that leads a session on a pseudo-terminal, so that Ctrl-C reaches it as it does for users."""

    def __init__(self, words: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> None:
        self._ours, theirs = pty.openpty()
        environment = {**os.environ, "PYINFRA_PROGRESS": "off", "TERM": "dumb", **(env or {})}
        self.process = subprocess.Popen(
            words, cwd=cwd, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=_as_a_login,  # noqa: PLW1509 - no thread runs here
        )  # fmt: skip
        os.close(theirs)
        self.shown = ""

    def __enter__(self) -> Typed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._ours)

    def type(self, text: str) -> None:
        """Press these keys."""
        os.write(self._ours, text.encode())

    def until(self, text: str) -> None:
        """Wait until a text is shown."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            assert self._read(0.2) or self.process.poll() is None, self.shown

    def ends(self, within: float) -> int:
        """Its exit status. Raises subprocess.TimeoutExpired."""
        deadline = time.monotonic() + within
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.shown, within)
            self._read(0.1)
        while self._read(0.1):
            pass
        return self.process.returncode

    def answers(self, questions: Mapping[str, str], within: float) -> int:
        """Its exit status; each of these questions gets its answer whenever it is asked. Raises TimeoutExpired."""
        deadline, position = time.monotonic() + within, 0
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.shown, within)
            self._read(0.1)
            wanted = [question for question in questions if self.shown[position:].rstrip().endswith(question)]
            if wanted:
                position = len(self.shown)
                self.type(questions[wanted[0]])
        while self._read(0.1):
            pass
        return self.process.returncode

    def _read(self, seconds: float) -> bool:
        if not select.select([self._ours], [], [], seconds)[0]:
            return False
        try:
            text = os.read(self._ours, 65536).decode(errors="replace")
        except OSError:  # no process has its other end open
            return False
        self.shown += text.replace("\r\n", "\n")
        return bool(text)


def rackwright(*words: str) -> list[str]:
    """Return a command line of `rackwright`, started as users start it."""
    return [str(Path(sys.executable).with_name("rackwright")), *words]


def pyinfra(*words: str) -> list[str]:
    """Return a command line of pyinfra."""
    return [str(Path(sys.executable).with_name("pyinfra")), *words]
