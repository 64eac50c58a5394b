"""Existing Hugging Face caches on the host: their files are copied and verified, never linked."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from rackwright.hostside.fetch_model.files import PIECE
from rackwright.hostside.fetch_model.hub import File

FICLONE = 0x40049409
"""linux/fs.h: share a file's blocks, on a file system that supports it, until one of the two is written to."""
CACHES = "HUB_CACHES"
"""Environment variable with the folders, separated by colons."""
SHARED = re.compile(r"blobs/([0-9a-f]{2})/\1[0-9a-f]{62}")
"""A file that the models of a cache share: huggingface_hub 1.32 and newer keep downloads by Xet there."""


def caches() -> list[Path]:
    """Return the host's caches."""
    return [Path(folder) for folder in os.environ.get(CACHES, "").split(":") if folder]


def cached(folders: Sequence[Path], repository: str, commit: str, file: File) -> Path | None:
    """Return the path of a commit's file of the right size in a cache; None when no cache has it.

    A snapshot's names are links to its repository's `blobs`, which may be links to the cache's own; one that leads
    elsewhere is not trusted.
    """
    for folder in folders:
        model_folder = folder / f"models--{repository.replace('/', '--')}"
        found = Path(os.path.realpath(model_folder / "snapshots" / commit / file["path"]))
        inside = _belongs(found, model_folder.resolve(), folder.resolve())
        if inside and found.is_file() and found.stat().st_size == file["size"]:
            return found
    return None


def _belongs(path: Path, model_folder: Path, cache: Path) -> bool:
    """Return True if a file is the repository's own, or one that the cache's repositories share."""
    shared = cache in path.parents and SHARED.fullmatch(path.relative_to(cache).as_posix())
    return model_folder in path.parents or bool(shared)


def copy(source: Path, target: Path, still_working: Callable[[], None]) -> None:
    """Copy a file's bytes; where the file system can share blocks, this takes no time and no space."""
    with os.fdopen(os.open(source, os.O_RDONLY | os.O_NOFOLLOW), "rb") as reader, target.open("wb") as writer:
        with suppress(OSError):
            fcntl.ioctl(writer, FICLONE, reader.fileno())
            return
        while piece := reader.read(PIECE):
            writer.write(piece)
            still_working()
