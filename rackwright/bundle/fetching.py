"""One large file from a server, continued where an earlier attempt ended, and whole only by its hash."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from rackwright.adapter.concurrency import sleep
from rackwright.bundle.store import CHUNK, hash_file
from rackwright.messages import RackwrightError
from rackwright.settings.secret import Secret
from rackwright.sources.errors import SourceError
from rackwright.sources.http import Client
from rackwright.sources.opener import host_of

ATTEMPTS = 5
OF_THE_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO})
"""Errors of the disk that is written to, against which no further attempt helps."""
PAUSE = 2.0
"""Seconds before the second attempt, twice as many before each later one."""


@dataclass(frozen=True)
class Wanted:
    """One file: its name in messages, its address, and what is known of its bytes."""

    name: str
    url: str
    size: int | None
    sha256: str = ""
    blob: str = ""
    login: Callable[[], Secret | None] = lambda: None
    """The login, asked for at each attempt: a registry's ends within minutes."""


Progress = Callable[[int], None]


def fetch(client: Client, wanted: Wanted, path: Path, progress: Progress) -> str:
    """Have a file at a path, and return its SHA-256. Raises RackwrightError saying why it cannot be had."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _append(client, wanted, path, progress)
            break
        except (OSError, HTTPException, SourceError) as error:
            if isinstance(error, OSError) and error.errno in OF_THE_DISK:
                text = f"{path.parent} cannot be written: {error.strerror}; what is in the bundle stays"
                raise RackwrightError(f"{text}; next: free space there, then the same command", code="RW1408") from None
            if (isinstance(error, SourceError) and error.code != "RW0903") or attempt == ATTEMPTS:
                raise _failed(wanted, getattr(error, "text", None) or str(error)) from None
            sleep(PAUSE * 2 ** (attempt - 1))
    return _verified(wanted, path)


def _append(client: Client, wanted: Wanted, path: Path, progress: Progress) -> None:
    here = path.stat().st_size if path.exists() else 0
    if wanted.size is not None and here > wanted.size:
        path.unlink()
        here = 0
    if here == wanted.size:
        progress(here)
        return
    headers: Mapping[str, str] = {"Accept-Encoding": "identity", **({"Range": f"bytes={here}-"} if here else {})}
    with client.opened(wanted.url, headers, wanted.login()) as answer:
        if answer.status not in (200, 206):
            raise _status(wanted, answer.status)
        progress(here if answer.status == 206 else 0)
        with path.open("ab" if answer.status == 206 else "wb") as target:
            while chunk := answer.read(CHUNK):
                target.write(chunk)
                progress(len(chunk))
                _refuse_more(wanted, target.tell())
    if wanted.size is not None and path.stat().st_size != wanted.size:
        raise OSError(f"the answer ended after {path.stat().st_size} of {wanted.size} bytes")


def _status(wanted: Wanted, status: int) -> Exception:
    if status == 429 or status >= 500:
        return OSError(f"{host_of(wanted.url)} answers {status}")
    return SourceError(f"{host_of(wanted.url)} answers {status}", code="RW3823")


def _refuse_more(wanted: Wanted, size: int) -> None:
    if wanted.size is not None and size > wanted.size:
        raise SourceError(f"{host_of(wanted.url)} sends more than {wanted.size} bytes", code="RW3823")


def _verified(wanted: Wanted, path: Path) -> str:
    sha256 = hash_file(path)
    right = sha256 == wanted.sha256 if wanted.sha256 else not wanted.blob or _blob(path) == wanted.blob
    if right:
        return sha256
    path.unlink()
    raise _failed(wanted, f"{host_of(wanted.url)} sent other bytes than the lock file names; they were thrown away")


def _blob(path: Path) -> str:
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _failed(wanted: Wanted, why: str) -> RackwrightError:
    text = f"{wanted.name}: {why}; what is in the bundle stays; next: the same command again"
    return RackwrightError(text, code="RW3823")
