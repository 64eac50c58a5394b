"""Another program, asked with limits: of time, processor, memory and what it prints. It cannot hold this process."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MEMORY = 2 << 30
"""Bytes that each process of it may fill."""
PRINTED = 64 << 20
"""Bytes that it may print, and write into any other file."""
PROCESSOR = 60
"""Seconds of one processor for each process of it."""


@dataclass(frozen=True)
class ProgramEnd:
    """The end of a program, and its output. `past` names the limit that ended it; empty when none did."""

    status: int
    output: bytes
    errors: str
    past: str = ""


def run_bounded(
    words: Sequence[str],
    seconds: float,
    given: bytes = b"",
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    memory: int = MEMORY,
) -> ProgramEnd:
    """Run a program to its end, or to the first limit that it passes: then it is ended with all that it started."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        source.write(given)
        source.seek(0)
        # Files, not pipes: what it has started may outlive it, and would keep a pipe open.
        process = subprocess.Popen(
            words, stdin=source, stdout=output, stderr=errors, cwd=folder, env=environment, start_new_session=True
        )
        limit(process.pid, memory)
        past = "" if _ended(process, seconds) else f"{seconds:g} s"
        _kill_group(process.pid)
        status = process.wait()
        printed, error_output = _content(output, PRINTED), _content(errors, 1 << 16).decode(errors="replace")
    if not past and status == -signal.SIGXCPU:
        past = f"{PROCESSOR} s of a processor"
    if not past and (status == -signal.SIGXFSZ or len(printed) >= PRINTED):
        past = f"{PRINTED >> 20} MiB of output"
    if not past and status and "MemoryError" in error_output:
        past = f"{memory >> 20} MiB of memory"
    return ProgramEnd(status, printed, error_output, past)


def limit(pid: int, memory: int = MEMORY) -> None:
    """Bound a process and what it starts, where the system can (Linux)."""
    if not hasattr(resource, "prlimit"):
        return
    limits = {
        resource.RLIMIT_DATA: memory,
        resource.RLIMIT_CPU: PROCESSOR,
        resource.RLIMIT_FSIZE: PRINTED,
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in limits.items():
        try:
            _, hard = resource.prlimit(pid, kind)
            lower = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.prlimit(pid, kind, (lower, hard))
        except (ProcessLookupError, PermissionError, ValueError):
            return


def _ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    except BaseException:
        _kill_group(process.pid)
        raise
    return True


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _content(file: IO[bytes], most: int) -> bytes:
    file.seek(0)
    return file.read(most)
