"""The folder in which a model comes together. What is verified in it is noted, and not read again."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from rackwright.hostside.fetch_model.cache import cached, caches, copy
from rackwright.hostside.fetch_model.failures import Failure
from rackwright.hostside.fetch_model.files import entry, roots_own, unchanged, verified
from rackwright.hostside.fetch_model.hub import File, Hub


class Partial:
    """TARGET.partial: verified files in their places, others in .parts."""

    def __init__(self, target: Path) -> None:
        self.folder = target.with_name(target.name + ".partial")
        self.parts = self.folder / ".parts"
        self.notes = self.parts / "verified"
        self.lock = threading.Lock()

    def open(self, wait: Callable[[], None]) -> bool:
        """Make the folder, and keep any other writer out as long as this process lives.

        wait: called again and again while another one has it, as on a store that several hosts fill. Returns whether
        there was another: the folder may have gone to its place meanwhile. Raises Failure where nothing can be locked.
        """
        self.parts.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self.handle = (self.parts / "lock").open("w")
        waited = False
        while True:
            try:
                fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return waited
            except BlockingIOError:
                waited = True
                wait()
            except OSError as error:
                raise Failure("busy", f"{self.folder}: {error}") from None

    def close(self) -> None:
        """Let others in."""
        self.handle.close()

    def beat(self) -> None:
        """Say that work goes on although no byte arrives: a large file is being hashed."""
        (self.parts / "beat").touch()

    def beaten(self) -> int:
        """When work last went on, as a number that changes."""
        beat = self.parts / "beat"
        return beat.stat().st_mtime_ns if beat.exists() else 0

    def bytes(self) -> int:
        """Bytes that are here, of all files."""
        return sum(_size(path) for path in self.folder.rglob("*"))

    def unfinished(self) -> int:
        """Bytes that are here of files that are not verified yet."""
        return sum(_size(part) for part in self.parts.glob("*.part"))

    def done(self) -> dict[str, File]:
        """Manifest entries, by path, of the files that are verified and unchanged since."""
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        noted = [found for line in lines if (found := _note(line))]
        trusted = roots_own(self.folder) and self.notes.exists() and roots_own(self.notes)
        return {found["path"]: found for found in noted if trusted and self._is_verified(found)}

    def _is_verified(self, found: File) -> bool:
        place = self.folder / found["path"]
        return unchanged(found, place) and roots_own(place)

    def accept(self, file: File, source: Path, sha256: str) -> None:
        """Move a verified file into its place and note it."""
        place = self.folder / file["path"]
        place.parent.mkdir(parents=True, exist_ok=True)
        source.chmod(0o644)
        source.replace(place)
        self.note(file, place, sha256)

    def link(self, found: File, source: Path) -> None:
        """Take a verified file from another folder of the same disk without copying it."""
        place = self.folder / found["path"]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        os.link(source, place)

    def note(self, file: File, place: Path, sha256: str) -> None:
        """Write down that a file is verified."""
        with self.lock, self.notes.open("a") as handle:
            handle.write("\n" + json.dumps(entry(file, place, sha256)))

    def fetch(self, hub: Hub, commit: str, file: File) -> None:
        """Fetch and verify one file; wrong bytes are fetched once more, from the start. Raises Failure."""
        part = self.parts / f"{hashlib.sha256(file['path'].encode()).hexdigest()[:24]}.part"
        if not part.exists() and self._copied(hub.repository, commit, file, part):
            return
        for _ in range(2):
            hub.append(commit, file, part)
            sha256 = verified(file, part, self.beat)
            if sha256:
                self.accept(file, part, sha256)
                return
            part.unlink()
        raise Failure("bytes", file["path"])

    def _copied(self, repository: str, commit: str, file: File, part: Path) -> bool:
        """Take a file from a cache of the host's; what is wrong there is fetched."""
        source = cached(caches(), repository, commit, file)
        if source is None:
            return False
        copy(source, part, self.beat)
        sha256 = verified(file, part, self.beat)
        if sha256:
            self.accept(file, part, sha256)
        else:
            part.unlink()
        return sha256 is not None

    def move_in(self, target: Path) -> Path | None:
        """Put the folder into its place in one step. A folder that was there is moved aside, and returned."""
        shutil.rmtree(self.parts)
        os.sync()
        aside = None
        if target.exists():
            aside = _free_name(target)
            target.rename(aside)
        self.folder.rename(target)
        return aside

    def drop(self) -> None:
        """Remove the folder: its files have gone to their places."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _free_name(target: Path) -> Path:
    number = 1
    while (aside := target.with_name(f"{target.name}.before-rackwright-{number}")).exists():
        number += 1
    return aside


def _note(line: str) -> File | None:
    try:
        found: File = json.loads(line)
        return found
    except ValueError:
        return None  # the last line of a run that was cut off


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0
