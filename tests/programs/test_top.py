"""`rackwright top` in a terminal: some hosts hang or flood, the others stay drawn; a key or Ctrl-C leaves it clean."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.programs.test_hosts_that_hang import Standin

CODE = """\
import sys
from rackwright.cli.main import main
from rackwright.adapter.run import readings
from rackwright.adapter.ssh import bounded_commands, client
readings.LONGEST, readings.PAUSE, client.LOGIN, bounded_commands.SLOW, bounded_commands.DEAD = 3, 2, 4, 1, 2
sys.exit(main(sys.argv[1:]))
"""
ALTERNATE, MAIN, SHOW_CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standin]:
    found = Standin(tmp_path_factory.mktemp("ssh"))
    yield found
    found.process.kill()
    found.process.wait()


@dataclass
class Terminal:
    """A process in a terminal of a fake size."""

    pid: int
    descriptor: int
    output: str = ""

    @classmethod
    def open(cls, site: Path, *words: str, lines: int = 24, columns: int = 80, **variables: str) -> Terminal:
        pid, descriptor = pty.fork()
        if pid == 0:
            os.chdir(site)
            environment = {**os.environ, "PYINFRA_PROGRESS": "off", "TERM": "xterm", **variables}
            environment.pop("COLUMNS", None)
            os.execve(sys.executable, [sys.executable, "-c", CODE, *words], environment)
        fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        return cls(pid, descriptor)

    def until(self, *texts: str, seconds: float = 40) -> str:
        """Return the last picture that has all these texts."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._take()
            for picture in reversed(self.output.split("\x1b[H")[:-1]):
                if all(text in picture for text in texts):
                    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", picture)
        raise AssertionError(self.output[-3000:])

    def press(self, key: bytes) -> int:
        """Press a key; return the exit status of the process."""
        os.write(self.descriptor, key)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            self._take()
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self._take()
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(self.output[-3000:])

    @property
    def waits_for_lines(self) -> bool:
        """True in the usual mode, in which a key counts only with Enter."""
        return bool(termios.tcgetattr(self.descriptor)[3] & termios.ICANON)

    def _take(self) -> None:
        while select.select([self.descriptor], [], [], 0.2)[0]:
            try:
                received = os.read(self.descriptor, 65536)
            except OSError:
                return
            self.output += received.decode(errors="replace")


def test_others_stay_drawn_while_hosts_hang_or_flood_and_q_leaves_the_terminal_clean(
    standin: Standin, tmp_path: Path
) -> None:
    site = standin.site(tmp_path, "hang", "no-start", "flood", "reads")
    terminal = Terminal.open(site, "top", "inventory/fleet.py")
    picture = terminal.until("3 lost", "absent")
    rows = [row.rstrip() for row in picture.splitlines()]
    assert all(len(row) <= 80 for row in rows)
    states = {row.split()[0]: row.split(None, 1)[1] for row in rows if row.startswith(("hang", "no-", "fl", "re"))}
    assert states == {"hang": "lost", "no-start": "lost", "flood": "lost", "reads": "absent"}
    assert terminal.press(b"q") == 0
    assert terminal.waits_for_lines
    assert terminal.output.count(ALTERNATE) == terminal.output.count(MAIN) == 1
    assert terminal.output.rstrip().endswith((MAIN, SHOW_CURSOR))
    assert "Traceback" not in terminal.output


def test_a_host_that_stops_answering_is_lost_and_read_again_later(standin: Standin, tmp_path: Path) -> None:
    terminal = Terminal.open(standin.site(tmp_path, "stops"), "top", "inventory/fleet.py")
    terminal.until("absent")
    terminal.until("1 lost")
    terminal.output = ""
    terminal.until("absent")
    assert terminal.press(b"q") == 0


def test_ctrl_c_ends_it_as_every_command(standin: Standin, tmp_path: Path) -> None:
    terminal = Terminal.open(standin.site(tmp_path, "reads"), "top", "inventory/fleet.py")
    terminal.until("absent")
    assert not terminal.waits_for_lines
    assert terminal.press(b"\x03") == 130
    assert terminal.waits_for_lines
    assert MAIN in terminal.output
    assert "Traceback" not in terminal.output


def test_without_colours_the_picture_has_none(standin: Standin, tmp_path: Path) -> None:
    terminal = Terminal.open(standin.site(tmp_path, "reads", "hang"), "top", "inventory/fleet.py", NO_COLOR="1")
    terminal.until("1 lost")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", terminal.output)
    assert terminal.press(b"q") == 0
