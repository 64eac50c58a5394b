"""The folder in which a model is assembled. Its verified files are recorded, and not read again."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from rackwright.hostside.fetch_model.cache import cached, caches, copy
from rackwright.hostside.fetch_model.failures import REFUSED, DownloadError
from rackwright.hostside.fetch_model.files import after_rename, close, unchanged, verified
from rackwright.hostside.fetch_model.hub import File, Hub
from rackwright.hostside.fetch_model.records import Records

AT_ONCE = 4
"""Files that are fetched, or read, at the same time."""
HEARTBEAT = "beat"
"""File beside the parts whose time is that of the last work; other versions of Rackwright use this name."""


class Partial:
    """TARGET.partial: verified files at their paths, others in .parts."""

    def __init__(self, target: Path, records: Records) -> None:
        self.folder = target.with_name(target.name + ".partial")
        self.parts = self.folder / ".parts"
        self.records = records
        self.lock = threading.Lock()

    def make(self) -> bool:
        """Make the folder. Return whether this host may: a server may refuse a write that the mount allows to root."""
        try:
            self.parts.mkdir(parents=True, exist_ok=True)
            self.handle = (self.parts / "lock").open("w")
        except OSError as error:
            if error.errno in REFUSED:
                return False
            raise
        for path in (self.folder, self.parts):
            with suppress(PermissionError):
                path.chmod(0o755)
        return True

    def open(self, wait: Callable[[], None]) -> bool:
        """Lock out other writers as long as this process lives.

        wait: called repeatedly while another one has it, as on a store that several hosts fill. Returns whether there
        was another: it may have moved the folder into place since. Raises DownloadError where it cannot lock.
        """
        waited = False
        while True:
            try:
                fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return waited
            except BlockingIOError:
                waited = True
                wait()
            except OSError as error:
                if waited and error.errno == errno.ESTALE:
                    return True  # another host has finished, and removed the lock from its server
                raise DownloadError("busy", f"{self.folder}: {error}") from None

    def close(self) -> None:
        """Release the lock."""
        self.handle.close()

    def note_work(self) -> None:
        """Record that work continues although no byte arrives: a large file is being hashed."""
        (self.parts / HEARTBEAT).touch()

    def last_work(self) -> int:
        """Return the time of the last work, as a number that changes."""
        noted = self.parts / HEARTBEAT
        return noted.stat().st_mtime_ns if noted.exists() else 0

    def bytes(self) -> int:
        """Return the bytes on disk, of all files."""
        return sum(_size(path) for path in self.folder.rglob("*"))

    def unfinished(self) -> int:
        """Return the bytes on disk of files that are not verified yet."""
        return sum(_size(part) for part in self.parts.glob("*.part"))

    def done(self) -> dict[str, File]:
        """Return the manifest entries, by path, of the files that are verified and unchanged since."""
        noted = self.records.done(self.folder)
        return {found["path"]: found for found in noted if unchanged(found, self.folder / found["path"])}

    def accept(self, file: File, part: Path) -> bool:
        """Move a file to its path and record it, if its bytes are the published ones; otherwise remove it."""
        close(part)
        found = verified(file, part, self.note_work)
        if found is None:
            part.unlink()
            return False
        target = self.folder / file["path"]
        target.parent.mkdir(parents=True, exist_ok=True)
        part.replace(target)
        with self.lock:
            self.records.note(self.folder, after_rename(found, target))
        return True

    def link(self, found: File, source: Path) -> None:
        """Take a verified file from another folder of the same disk without copying it."""
        target = self.folder / found["path"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        os.link(source, target)

    def fetch(self, hub: Hub, commit: str, file: File) -> None:
        """Fetch and verify one file; wrong bytes are fetched once more, from the start. Raises DownloadError."""
        part = self._part(file)
        if not part.exists() and self._copied(hub.repository, commit, file, part):
            return
        for _ in range(2):
            hub.append(commit, file, part)
            if self.accept(file, part):
                return
        raise DownloadError("bytes", file["path"])

    def copy_cached(self, repository: str, commit: str, files: Iterable[File]) -> None:
        """Take files that a cache of the host has, where none of their bytes is here yet."""
        for file in files:
            part = self._part(file)
            if not part.exists() and not (self.folder / file["path"]).exists():
                self._copied(repository, commit, file, part)

    def adopt_all(self, files: Sequence[File]) -> None:
        """Record the files at their paths whose bytes are the published ones."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self._adopt, files))

    def _adopt(self, file: File) -> None:
        path = self.folder / file["path"]
        if not path.is_file() or path.is_symlink() or file["path"] in self.done():
            return
        close(path)
        found = verified(file, path, self.note_work)
        if found is not None:
            with self.lock:
                self.records.note(self.folder, found)

    def _part(self, file: File) -> Path:
        return self.parts / f"{hashlib.sha256(file['path'].encode()).hexdigest()[:24]}.part"

    def _copied(self, repository: str, commit: str, file: File, part: Path) -> bool:
        """Take a file from the host's cache; a wrong one there is fetched."""
        source = cached(caches(), repository, commit, file)
        if source is None:
            return False
        copy(source, part, self.note_work)
        return self.accept(file, part)

    def move_in(self, target: Path) -> Path | None:
        """Move the folder to its path in one step. An existing folder there is renamed, and its new path returned."""
        os.sync()
        moved = None
        if target.exists():
            moved = _free_name(target)
            target.rename(moved)
        self.folder.rename(target)
        self._remove(target / self.parts.name)
        return moved

    def drop(self) -> None:
        """Remove the folder: its files were moved to their paths."""
        gone = self.folder.with_name(f"{self.folder.name}.gone")
        shutil.rmtree(gone, ignore_errors=True)
        self.folder.rename(gone)
        self._remove(gone)

    def _remove(self, folder: Path) -> None:
        """Remove a folder that is no longer needed. On a share, an open file would stay under another name."""
        self.close()
        shutil.rmtree(folder, ignore_errors=True)
        self.records.forget(self.folder)


def _free_name(target: Path) -> Path:
    number = 1
    while (moved := target.with_name(f"{target.name}.before-rackwright-{number}")).exists():
        number += 1
    return moved


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0
