"""Records of the files that this host has verified: stored by root on the host itself, by the folder's name.

The manifest in a model's folder is only a mark: a user with write access could write one for other bytes, and a
shared folder's is another host's. A record is of one store: another share that is mounted over the same path may
have other bytes with the same names, times and inodes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rackwright.hostside.fetch_model.files import is_closed, is_read_only
from rackwright.hostside.fetch_model.hub import File

MANIFEST = ".rackwright.json"


class Records:
    """The host's records. `folder` is their folder, `stores` the file in which store.sh lists the stores."""

    def __init__(self, folder: Path, stores: Path) -> None:
        self.folder = folder
        words = stores.read_bytes().split(b"\0")
        self.stores: Mapping[str, str] = {
            os.fsdecode(path): store.decode()
            for path, store in zip(words[::2], words[1::2])  # noqa: B905 - Python 3.9 has no `strict`
        }

    def store(self, folder: Path) -> str:
        """Return the store that a folder is on, or will be; empty where its name cannot be trusted."""
        return self.stores.get(str(folder), self.stores.get(str(folder.parent), ""))

    def read(self, folder: Path) -> dict[str, Any] | None:
        """Return a folder's record; None when it is missing, of another store, or a change could be unnoticed."""
        found, store = _json(self.folder / f"{folder.name}.json"), self.store(folder)
        of_this = [found.get(key) for key in ("version", "folder", "store")] == [1, str(folder), store]
        if not (of_this and store and folder.is_dir()):
            return None
        return found if is_closed(folder) or not _needs_closing(found) else None

    def write(self, folder: Path, manifest: dict[str, Any]) -> None:
        """Record the verified files; in the folder too, as a mark, when it has none of these bytes yet."""
        mark = _json(folder / MANIFEST)
        same = all(mark.get(key) == manifest[key] for key in ("repository", "commit", "files", "include", "exclude"))
        # Another host that shares the folder has its own record, and need not verify again.
        if not same and not is_read_only(folder):
            with suppress(PermissionError):
                _write(folder / MANIFEST, manifest)
        noted = {**manifest, "folder": str(folder), "store": self.store(folder)}
        _write(self.folder / f"{folder.name}.json", noted)

    # -- a folder in which a model is assembled

    def done(self, partial: Path) -> list[File]:
        """Return the files that this host has verified in it."""
        notes = self._notes(partial)
        lines = notes.read_text().splitlines() if notes.exists() else []
        found = [note for row in lines if (note := _note(row))]
        return [note["file"] for note in found if note["store"] == self.store(partial)]

    def note(self, partial: Path, found: File) -> None:
        """Record one more file of it."""
        with self._notes(partial).open("a") as handle:
            handle.write("\n" + json.dumps({"store": self.store(partial), "file": found}))

    def forget(self, partial: Path) -> None:
        """Remove its record: the folder was moved to its path."""
        self._notes(partial).unlink(missing_ok=True)

    def _notes(self, partial: Path) -> Path:
        return self.folder / partial.name


def _needs_closing(manifest: Mapping[str, Any]) -> bool:
    """Return True if a record counts only as long as only root may write to the folder."""
    files: Iterable[File] = manifest["files"]
    return any(file["ctime_ns"] is None for file in files)


def _note(row: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(row)
        return found
    except ValueError:
        return None  # the last row of an interrupted run


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: Path, values: dict[str, Any]) -> None:
    """Replace a file so that after a power cut either the old one or the new one exists."""
    new = path.with_name(f"{path.name}.new")
    with new.open("w") as handle:
        json.dump(values, handle, indent=1)
        handle.flush()
        os.fsync(handle.fileno())
    new.chmod(0o644)
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
