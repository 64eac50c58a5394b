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
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from rackwright.loading.ansible import bounded
from rackwright.loading.ansible.command import command, environment, first_error
from rackwright.loading.yaml_file import Ciphertext
from rackwright.messages import SettingsError

PATIENCE = 300
"""Seconds for each value where no terminal asks: the program that prints the password may itself ask somebody."""
PRINTED = 4 << 20
"""Bytes of one plaintext at most; a file of settings has a quarter of it."""
POLL = 0.002
"""Seconds between two looks whether the command has come to the next pipe."""


def decrypt(ciphertexts: Sequence[Ciphertext], site: Path) -> list[str]:
    """Plaintexts in the given order, each without one newline at its end.

    The password comes from where Ansible takes it: ANSIBLE_VAULT_PASSWORD_FILE (a file or a program, relative to the
    site), ansible.cfg, or a prompt. Raises SettingsError naming the value that could not be decrypted.
    """
    if not ciphertexts:
        return []
    with tempfile.TemporaryDirectory(prefix="rackwright-vault-") as folder:
        pipes = [Path(folder) / str(number) for number in range(len(ciphertexts))]
        for pipe in pipes:
            os.mkfifo(pipe, 0o600)
        with _View(pipes, site) as view:
            return view.all(ciphertexts)


NEXT = "next: export ANSIBLE_VAULT_PASSWORD_FILE=FILE (a file with the password, or a program that prints it)"
_PIPE = re.compile(r"^Failed to view '[^']*': | (for|on) /.*$")


class _View:
    """One running `ansible-vault view PIPE...`."""

    def __init__(self, pipes: Sequence[Path], site: Path) -> None:
        self._pipes = pipes
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

    def all(self, ciphertexts: Sequence[Ciphertext]) -> list[str]:
        plain: list[bytes] = []
        for number, (pipe, ciphertext) in enumerate(zip(self._pipes, ciphertexts, strict=True)):
            text = self._feed(pipe, ciphertext)
            if text is None:
                self._refuse(ciphertexts[max(number - 1, 0)])
            elif number:
                plain.append(text)
        plain.append(self._rest(ciphertexts[-1]))
        return [text.decode().removesuffix("\n") for text in plain]

    def _feed(self, pipe: Path, ciphertext: Ciphertext) -> bytes | None:
        """Hand over one ciphertext; returns what was printed since the one before, None when the command ended."""
        printed = b""
        while (writer := _open(pipe)) is None:
            printed += self._drain()
            if self._process.poll() is not None:
                return None
            self._wait(ciphertext, len(printed))
        printed += self._drain()
        with open(writer, "wb") as stream:  # noqa: PTH123
            os.set_blocking(writer, True)
            stream.write(ciphertext.text.encode() + b"\n")
        return printed

    def _wait(self, ciphertext: Ciphertext, printed: int) -> None:
        """Wait a moment. Raises SettingsError when the command takes too long, or prints too much."""
        past = f"more than {PRINTED >> 20} MiB were printed" if printed > PRINTED else ""
        if time.monotonic() > self._until:
            past = f"it has not answered within {PATIENCE} s; does the program that prints the password wait?"
        if past:
            raise SettingsError(
                f"{ciphertext.where}: ansible-vault could not decrypt this: {past}\n{NEXT}", code="RW0204"
            )
        time.sleep(POLL)

    def _rest(self, last: Ciphertext) -> bytes:
        printed = b""
        while self._process.poll() is None:
            printed += self._drain()
            self._wait(last, len(printed))
        if self._process.returncode != 0:
            self._refuse(last)
        return printed + self._drain()

    def _drain(self) -> bytes:
        printed = b""
        try:
            while chunk := os.read(self._output, 65536):
                printed += chunk
        except BlockingIOError:
            pass
        return printed

    def _refuse(self, ciphertext: Ciphertext) -> None:
        self._errors.seek(0)
        reason = reason_of(self._errors.read(1 << 16).decode(errors="replace"))
        raise _refusal(ciphertext, reason)


def _refusal(ciphertext: Ciphertext, why: str) -> SettingsError:
    return SettingsError(f"{ciphertext.where}: ansible-vault could not decrypt this: {why}\n{NEXT}", code="RW0204")


def reason_of(printed: str) -> str:
    """Why, without the names of our pipes, which each version of ansible-core puts elsewhere."""
    if "EOFError" in printed:
        return "no vault password is set, and there is no terminal to ask for one"
    return _PIPE.sub("", first_error(printed)).rstrip(".")


def _open(pipe: Path) -> int | None:
    """Open a named pipe for writing; None while nobody reads it."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return None
