"""Commands on this machine, and the one error type of the lab."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from rackwright.messages import RackwrightError

LONGEST = 600.0


class LabError(RackwrightError):
    """The lab could not do what was asked: which command, its output, what to type next."""


def run(
    *argv: str | Path,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = LONGEST,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run one command and return it with its output as text.

    Args: argv, text for its standard input, variables added to the environment, seconds until it is ended.
    Raises LabError with the command's last lines when it fails and `check` is on, or when it takes too long.
    """
    words = [str(argument) for argument in argv]
    try:
        done = subprocess.run(
            words,
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, **(env or {})},
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as missing:
        raise LabError(f"{words[0]} is not on this machine. Run: rackwright lab up (as root)") from missing
    except subprocess.TimeoutExpired as late:
        raise LabError(f"{' '.join(words[:6])} did not end within {timeout:.0f} s") from late
    if check and done.returncode != 0:
        raise LabError(failure(words, done.returncode, done.stderr or done.stdout))
    return done


def failure(words: list[str], code: int, output: str) -> str:
    """Return one sentence and the last lines of a failed command's output."""
    tail = "\n".join(output.strip().splitlines()[-12:])
    return f"`{' '.join(words[:8])}` ended with status {code} on this machine:\n{tail}"
