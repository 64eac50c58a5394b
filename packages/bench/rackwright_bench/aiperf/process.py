"""aiperf as a process: begun with the key by a pipe, ended with all of its workers, also when we are killed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rackwright.masks import MASK

LOG = "aiperf.log"
TERM, KILL = 15, 9


@contextmanager
def begun(
    words: Sequence[str], key: str, environment: Mapping[str, str], out: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the process, with its log in the folder `out`. After the block it has ended, and no file has the key."""
    with (out / LOG).open("wb") as log:
        process = subprocess.Popen(
            words,
            env=environment,
            cwd=out,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _hand_over(process, key)
        yield process
    finally:
        _end(process)
        _without(key, out)


def _hand_over(process: subprocess.Popen[bytes], key: str) -> None:
    """Send the launcher's first line. The pipe stays open: at its end the launcher ends everything."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it has ended already, and its status says why
        process.stdin.write(f"{key}\n".encode())
        process.stdin.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it and all of its workers, if they still run."""
    assert process.stdin is not None
    for number in (TERM, KILL):
        if process.poll() is not None:
            break
        os.killpg(process.pid, number)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            continue
    with suppress(BrokenPipeError):
        process.stdin.close()


def _without(key: str, out: Path) -> None:
    """Mask the key in all files of a folder: an engine may repeat it in what it answers."""
    for path in out.rglob("*") if key else ():
        if path.is_file() and key.encode() in (content := path.read_bytes()):
            path.write_bytes(content.replace(key.encode(), MASK.encode()))
