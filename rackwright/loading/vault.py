"""Decrypts ansible-vault values: all of a run by one `ansible-vault view`, with no plaintext on disk or in argv.

Every ciphertext is a named pipe. The command opens a pipe only after it has printed the plaintext of the one
before, so the moment of opening tells where one plaintext ends and the next begins.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from rackwright.adapter.concurrency import sleep
from rackwright.loading.ansible import bounded
from rackwright.loading.ansible.command import command, environment, first_error
from rackwright.loading.yaml_file import Ciphertext
from rackwright.messages import SettingsError
from rackwright.settings.secret import Secret

VAULT = "ansible-vault"
VAULT_FILE = "an encrypted file"
"""Sources of these secrets, as users know them: values, and whole files."""
PATIENCE = 300
"""Seconds for each value where no terminal asks: the program that prints the password may itself ask a user."""
PRINTED = 4 << 20
"""Bytes of one plaintext at most; a file of settings has a quarter of it."""
POLL = 0.002
"""Seconds between two looks whether the command has come to the next pipe."""


IN_A_ROW = 3
"""Values of different files that fail one after the other: then it is the password."""
STARTS = 20
"""Of the command at most: each value that fails takes one more."""
NEXT = "next: export ANSIBLE_VAULT_PASSWORD_FILE=FILE (a file with the password, or a program that prints it)"


class UndecryptableError(SettingsError):
    """A value that could not be decrypted, and why: the refusal of the hosts that it is for."""

    code = "RW0204"

    def __init__(self, ciphertext: Ciphertext, why: str, is_last: bool = False) -> None:
        """is_last: another try would end as this one did."""
        self.where = ciphertext.where
        self.why = f"ansible-vault could not decrypt this: {why}"
        self.is_last = is_last
        super().__init__(f"{ciphertext.where}: {self.why}\n{NEXT}")


Plaintext = str | UndecryptableError
"""The text of one ciphertext, or the reason for which it is not known."""


def decrypt(ciphertexts: Sequence[Ciphertext], site: Path) -> list[Plaintext]:
    """Plaintexts in the given order, each without one newline at its end; an error in the place of one that fails.

    The password comes from where Ansible takes it: ANSIBLE_VAULT_PASSWORD_FILE (a file or a program, relative to the
    site), ansible.cfg, or a prompt.
    """
    found: dict[int, Plaintext] = {}
    waiting, failed, in_a_row = list(range(len(ciphertexts))), set[str](), 0
    for start in range(STARTS):
        # A host's file may have several values of another password: those of other files come first.
        waiting.sort(key=lambda index: ciphertexts[index].where.file in failed)
        plain, error = _viewed([ciphertexts[index] for index in waiting], site)
        found |= zip(waiting, plain, strict=False)
        waiting = waiting[len(plain) :]
        if error is None:
            break
        wrong, *waiting = waiting
        found[wrong] = error
        failed.add(ciphertexts[wrong].where.file)
        in_a_row = 1 if plain else in_a_row + 1
        if error.is_last or in_a_row == IN_A_ROW or start == STARTS - 1:
            found |= {index: _not_tried(ciphertexts[index], error) for index in waiting}
            break
    return [found[index] for index in range(len(ciphertexts))]


def opened(value: Any, plain_of: Callable[[Any], Plaintext | None]) -> Any:
    """Return a value with a Secret for each ciphertext below it; one that could not be decrypted is left out.

    plain_of: what a value says if it is a ciphertext, else None.
    """
    plain = plain_of(value)
    if plain is not None:
        return _MISSING if isinstance(plain, UndecryptableError) else Secret(plain, VAULT)
    if isinstance(value, dict):
        below = {key: opened(one, plain_of) for key, one in value.items()}
        return {key: one for key, one in below.items() if one is not _MISSING}
    if isinstance(value, list):
        return [new for one in value if (new := opened(one, plain_of)) is not _MISSING]
    return value


_MISSING = object()


def _not_tried(ciphertext: Ciphertext, error: UndecryptableError) -> UndecryptableError:
    why = error.why.partition(": ")[2]
    return UndecryptableError(ciphertext, why if error.is_last else f"it was not tried, after others failed: {why}")


def _viewed(ciphertexts: Sequence[Ciphertext], site: Path) -> tuple[list[str], UndecryptableError | None]:
    """Return the plaintexts up to the first that fails, and its error."""
    if not ciphertexts:
        return [], None
    with tempfile.TemporaryDirectory(prefix="rackwright-vault-") as folder:
        pipes = [Path(folder) / str(number) for number in range(len(ciphertexts))]
        for pipe in pipes:
            os.mkfifo(pipe, 0o600)
        with _View(pipes, site, ciphertexts) as view:
            return view.all()


_PIPE = re.compile(r"^Failed to view '[^']*': | (for|on) /.*$")


NO_PASSWORD = "no vault password is set, and no terminal to ask for one"


class _View:
    """One running `ansible-vault view PIPE...`."""

    def __init__(self, pipes: Sequence[Path], site: Path, ciphertexts: Sequence[Ciphertext]) -> None:
        self._pipes = pipes
        self._ciphertexts = ciphertexts
        self._plain: list[bytes] = []
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._output, ours = os.pipe()
        os.set_blocking(self._output, False)
        asks = sys.stdin is not None and sys.stdin.isatty()
        self._process = subprocess.Popen(
            [command("ansible-vault"), "view", *map(str, pipes)],
            stdin=None if asks else subprocess.DEVNULL,
            stdout=ours,
            stderr=self._errors,
            cwd=site,
            env=environment(site),
            start_new_session=not asks,
        )
        os.close(ours)
        self._group = not asks
        self._until = float("inf") if asks else time.monotonic() + PATIENCE
        bounded.limit(self._process.pid)

    def __enter__(self) -> _View:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._process.poll() is None:
            if self._group:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()
        self._errors.close()
        os.close(self._output)

    def all(self) -> tuple[list[str], UndecryptableError | None]:
        """Return the plaintexts, up to the first that fails, and its error."""
        error = None
        try:
            for number, (pipe, ciphertext) in enumerate(zip(self._pipes, self._ciphertexts, strict=True)):
                text = self._feed(pipe, ciphertext)
                self._plain += [text] if number else []
            self._plain.append(self._remaining())
        except UndecryptableError as refused:
            error = refused
        return [text.decode().removesuffix("\n") for text in self._plain], error

    def _feed(self, pipe: Path, ciphertext: Ciphertext) -> bytes:
        """Hand over one ciphertext; returns what was printed since the one before."""
        printed = b""
        while (writer := _open(pipe)) is None:
            printed += self._drain()
            if self._process.poll() is not None:
                raise self._refusal()
            self._wait(len(printed))
        printed += self._drain()
        with open(writer, "wb") as stream:  # noqa: PTH123
            os.set_blocking(writer, True)
            stream.write(ciphertext.text.encode() + b"\n")
        return printed

    def _wait(self, printed: int) -> None:
        """Wait a moment. Raises UndecryptableError when the command takes too long, or prints too much."""
        if time.monotonic() > self._until:
            why = f"it has not answered within {PATIENCE} s; does the program that prints the password wait?"
            raise UndecryptableError(self._current, why, is_last=True)
        if printed > PRINTED:
            raise UndecryptableError(self._current, f"more than {PRINTED >> 20} MiB were printed")
        sleep(POLL)

    def _remaining(self) -> bytes:
        printed = b""
        while self._process.poll() is None:
            printed += self._drain()
            self._wait(len(printed))
        if self._process.returncode != 0:
            raise self._refusal()
        return printed + self._drain()

    @property
    def _current(self) -> Ciphertext:
        """The first whose plaintext is not known."""
        return self._ciphertexts[len(self._plain)]

    def _drain(self) -> bytes:
        printed = b""
        try:
            while chunk := os.read(self._output, 65536):
                printed += chunk
        except BlockingIOError:
            pass
        return printed

    def _refusal(self) -> UndecryptableError:
        self._errors.seek(0)
        reason = reason_of(self._errors.read(1 << 16).decode(errors="replace"))
        # A password that was wrong at the first value is not asked for twice.
        is_last = reason == NO_PASSWORD or (not self._group and not self._plain)
        return UndecryptableError(self._current, reason, is_last)


def reason_of(printed: str) -> str:
    """Return the reason, without the names of our pipes, which each version of ansible-core puts elsewhere."""
    if "EOFError" in printed:
        return NO_PASSWORD
    return _PIPE.sub("", first_error(printed)).rstrip(".")


def _open(pipe: Path) -> int | None:
    """Open a named pipe for writing; None without a reader."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return None
