"""Profiles in a site's lock file: their text counts, whatever the installed version ships.

Settings are loaded before the lock file is judged, and the profile is a part of them. So this reads its profiles alone
and takes only what is whole: a broken file is refused where it is read whole (rackwright/sources/lockfile.py), by
whatever changes a host.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rackwright.profiles.content import Files, sha256_of
from rackwright_engines.quick_yaml import load_foreign_yaml

LOCK_FILE = "rackwright.lock.yml"
LARGEST = 4 << 20
"""Bytes of a lock file at most: a model of a thousand files has a tenth of a MiB."""
PROFILES = "profiles"
FILE_NAME = re.compile(r"[A-Za-z0-9_-]+\.yml")
NAME = re.compile(r"[A-Za-z0-9_-]+")


class LockedProfile(BaseModel):
    """A profile's files, the weakest first, and the hash of their names and texts."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    files: dict[str, str]

    @classmethod
    def of(cls, files: Files) -> LockedProfile:
        """Return what the lock file is to have of these files."""
        return cls(sha256=sha256_of(files), files=dict(files))

    @property
    def is_whole(self) -> bool:
        """True if it has files by plain names, and the text is the one that the hash was made of."""
        plain = bool(self.files) and all(map(FILE_NAME.fullmatch, self.files))
        return plain and self.sha256 == sha256_of(self.files)


def locked_profiles(path: Path) -> Mapping[str, LockedProfile]:
    """Return the whole profiles of a lock file, by name; none where it cannot be read."""
    try:
        status = path.stat()
    except OSError:
        return {}
    if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
        return {}
    return _read(path, (status.st_mtime_ns, status.st_size, status.st_ino))


@cache
def _read(path: Path, _: tuple[int, ...]) -> Mapping[str, LockedProfile]:
    try:
        document = load_foreign_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return {}
    rows = document.get(PROFILES) if isinstance(document, dict) else None
    found = {name: _profile(row) for name, row in rows.items()} if isinstance(rows, dict) else {}
    return {name: one for name, one in found.items() if one is not None and one.is_whole and NAME.fullmatch(str(name))}


def _profile(row: Any) -> LockedProfile | None:
    try:
        return LockedProfile.model_validate(row)
    except ValidationError:
        return None
