"""Secrets that commands print (`pass`, `sops`, `op`, `vault`): each command of a site runs once a run, for all hosts.

What one prints is in no file, argument or log: it travels by a pipe, and to the processes that this run starts by
memory that has no name in any folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rackwright.adapter.concurrency import sleep
from rackwright.masks import LEAST, MASK, keep_hidden
from rackwright.messages import printable, waiting
from rackwright.settings.secret import Secret, without_secrets

SECONDS = 60
"""For each command: a person may have to unlock a password manager."""
AT_ONCE = 8
"""Commands beside each other, once the first has ended: it may be the one that unlocks."""
PRINTED = 64 << 10
"""Bytes of a secret at most: a private key in PEM has a tenth of it."""
ERRORS = 1 << 20
"""Bytes on standard error at most."""
KEPT = 4 << 10
"""Bytes of them that are looked at: the last ones."""
SHOWN = 200
"""Characters of the last line that a message has."""
POLL = 0.005
"""Seconds between two looks at commands that print nothing."""
VARIABLE = "RACKWRIGHT_SECRETS"
"""The variable by which a process finds what the run that started it has read."""
_RANDOM = re.compile(r"(?=[A-Za-z_+=-]*\d)(?=[\d_+=-]*[A-Za-z])[\w+=-]{10,}", re.ASCII)
"""A word that may be the secret itself: letters and digits, as long as a key."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
NO_TERMINAL = "without a terminal and input"


@dataclass(frozen=True)
class SecretCommand:
    """A command of a site, by argv, and the folder that it runs in."""

    argv: tuple[str, ...]
    folder: Path

    @property
    def program(self) -> str:
        """The program, as it is started: a path of it is relative to the site."""
        first = self.argv[0]
        return str(self.folder / Path(first).expanduser()) if "/" in first else first

    @property
    def text(self) -> str:
        """The command as it is typed."""
        return printable(without_secrets(shlex.join(self.argv)), longest=SHOWN)

    @property
    def digest(self) -> str:
        """Return a hash that stands for it where its words would say too much."""
        return hashlib.sha256(json.dumps([*self.argv, str(self.folder)]).encode()).hexdigest()


Answer = Secret | str
"""The output of a command, or the reason for which it cannot be used."""
_answers: dict[SecretCommand, Answer] = {}
_given: list[int] = []
"""The memory that processes of this run read, as its descriptor."""


def answers_of(commands: Iterable[SecretCommand]) -> Mapping[SecretCommand, Answer]:
    """Return the answer of each command; one that this run has asked before is not asked again."""
    wanted = dict.fromkeys(commands)
    new = [command for command in wanted if command not in _answers]
    if new:
        received = _received()
        _answers.update({one: _hidden(received[one.digest]) for one in new if one.digest in received})
        _answers.update(_run([one for one in new if one not in _answers]))
        _hand_down()
    return {command: _answers[command] for command in wanted}


def _hidden(text: str) -> Secret:
    keep_hidden(text)
    return Secret(text)


def _received() -> Mapping[str, str]:
    """Return what the run that started this process has read, by digest; nothing where that run is over."""
    with suppress(OSError, ValueError, KeyError):
        found = json.loads(Path(os.environ[VARIABLE]).read_bytes())
        return found if isinstance(found, dict) else {}
    return {}


def _hand_down() -> None:
    """Let the processes that this one starts read what it has read. Without such memory each asks for itself."""
    if not hasattr(os, "memfd_create"):
        return
    texts = {one.digest: answer.unmask() for one, answer in _answers.items() if isinstance(answer, Secret)}
    memory = os.memfd_create("rackwright-secrets")
    with open(memory, "wb", closefd=False) as stream:
        stream.write(json.dumps({**_received(), **texts}).encode())
    os.environ[VARIABLE] = f"/proc/{os.getpid()}/fd/{memory}"
    for before in _given:
        os.close(before)
    _given[:] = [memory]


def _run(commands: Sequence[SecretCommand]) -> dict[SecretCommand, Answer]:
    """Run the first command alone, then the others side by side; after one that hangs, none that has not begun."""
    found: dict[SecretCommand, Answer] = {}
    queue, running = list(commands), list[_Running]()
    with waiting(lambda: _waited_for(running)):
        try:
            while queue or running:
                while queue and len(running) < (AT_ONCE if found else 1):
                    _begin(queue.pop(0), running, found)
                if not sum(one.advance() for one in running):
                    sleep(POLL)
                _settle(queue, running, found)
        finally:
            for one in running:
                one.end()
    return found


def _settle(queue: list[SecretCommand], running: list[_Running], found: dict[SecretCommand, Answer]) -> None:
    """Take the answers of the commands that have ended."""
    for one in [one for one in running if one.is_over]:
        running.remove(one)
        found[one.command] = one.answer
        if one.is_late:
            found |= dict.fromkeys(queue, f"was not run, since `{one.command.text}` hangs")
            queue.clear()


def _waited_for(running: Sequence[_Running]) -> str:
    texts = [one.command.text for one in running]
    return f"the command of a secret: {', '.join(texts)}; Ctrl-C ends it" if texts else ""


def _begin(command: SecretCommand, running: list[_Running], found: dict[SecretCommand, Answer]) -> None:
    try:
        running.append(_Running(command))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        found[command] = f"cannot be run: {why}"


class _Running:
    """One command that runs, its two outputs read as they come."""

    def __init__(self, command: SecretCommand) -> None:
        self.command = command
        self.answer: Answer = ""
        self.is_over = self.is_late = False
        self._printed, self._errors, self._error_bytes = b"", b"", 0
        self._until = time.monotonic() + SECONDS
        self._output, output = os.pipe()
        self._error_output, error_output = os.pipe()
        try:
            self._process = subprocess.Popen(
                [command.program, *command.argv[1:]],
                cwd=command.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=error_output,
                start_new_session=True,
            )
        except BaseException:
            self._close()
            raise
        finally:
            os.close(output)
            os.close(error_output)
        os.set_blocking(self._output, False)
        os.set_blocking(self._error_output, False)

    def advance(self) -> bool:
        """Read what has come, and find the answer once the command has ended. Returns False when nothing has moved."""
        status = self._process.poll()
        printed, errors = _chunk(self._output), _chunk(self._error_output)
        self._printed += printed
        self._errors = (self._errors + errors)[-KEPT:]
        self._error_bytes += len(errors)
        if len(self._printed) > PRINTED or self._error_bytes > ERRORS:
            self._refuse(f"prints more than {(PRINTED if len(self._printed) > PRINTED else ERRORS) >> 10} KiB")
        elif status is None and time.monotonic() > self._until:
            self.is_late = True
            self._refuse(f"has not ended within {SECONDS} s, {NO_TERMINAL}{self._last_line()}")
        elif status is not None and not printed and not errors:
            self._close()
            self.answer = self._judged(status)
        return bool(printed or errors)

    def end(self) -> None:
        """End the command with all that it has started."""
        if self.is_over:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._close()

    def _refuse(self, why: str) -> None:
        self.end()
        self.answer = why

    def _close(self) -> None:
        self.is_over = True
        for descriptor in (self._output, self._error_output):
            os.close(descriptor)

    def _judged(self, status: int) -> Answer:
        if status:
            how = f"ended with status {status}" if status > 0 else f"was ended by {signal.Signals(-status).name}"
            return f"{how}, {NO_TERMINAL}{self._last_line()}"
        try:
            text = self._printed.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            return "prints bytes that are not UTF-8 text"
        if not text:
            return f"prints nothing{self._last_line()}"
        if odd := _CONTROL.search(text):
            return f"prints a control character (U+{ord(odd[0]):04X}): colours, or a file that is not text"
        return _hidden(text)

    def _last_line(self) -> str:
        """Return what it says last on standard error, without what may be the secret; nothing of an empty one."""
        rows = [row for row in self._errors.decode(errors="replace").splitlines() if row.strip()]
        return f": {self._harmless(rows[-1])}" if rows else ""

    def _harmless(self, row: str) -> str:
        for printed in self._printed.decode(errors="replace").split():
            row = row.replace(printed, MASK) if len(printed) >= LEAST else row
        return printable(_RANDOM.sub(MASK, without_secrets(row)).strip(" ."), longest=SHOWN)


def _chunk(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return b""
