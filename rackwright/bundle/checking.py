"""The check of a bundle: whole, unchanged, signed by the right key, and of this lock.

Its files' bytes are hashed when they are first used, or all of them by `--verify`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rackwright.bundle.catalog import FILE, TOOL, Catalog, StoredPiece, read_catalog
from rackwright.bundle.contents import Contents
from rackwright.bundle.signature import SUMS, refuse_other_signature
from rackwright.bundle.store import hash_file
from rackwright.messages import RackwrightError


def opened(folder: Path, public_key: str | None) -> Catalog:
    """Return a bundle's list once signature, sums and the files' sizes are right. Raises RackwrightError."""
    if not (folder / SUMS).is_file():
        read_catalog(folder)
        raise _broken(folder, f"{SUMS} is missing")
    if public_key:
        refuse_other_signature(folder, public_key)
    sums = _sums(folder)
    if sums.get(FILE) != hash_file(folder / FILE) if (folder / FILE).is_file() else True:
        raise _broken(folder, f"{FILE} is not what {SUMS} says")
    catalog = read_catalog(folder)
    pieces = catalog.pieces()
    if catalog.files() != {path: sums[path] for path in sums if path != FILE}:
        raise _broken(folder, f"{FILE} and {SUMS} name different files")
    missing = [path for path, piece in pieces.items() if not _is_there(folder / path, piece)]
    if missing:
        raise _broken(folder, _missing(folder, missing, catalog))
    return catalog


def _is_there(path: Path, piece: StoredPiece) -> bool:
    return not path.is_symlink() and path.is_file() and path.stat().st_size == piece.size


def _missing(folder: Path, missing: list[str], catalog: Catalog) -> str:
    """Return what is missing: a whole part by its name, else the first file."""
    parts = {path.partition("/")[0] for path in missing}
    gone = sorted(part for part in parts if not (folder / part).is_dir())
    if gone:
        return f"{', '.join(gone)} {'is' if len(gone) == 1 else 'are'} missing"
    return f"{missing[0]} ({used_by(catalog, missing[0])}) is missing, or of another size"


def used_by(catalog: Catalog, path: str) -> str:
    """Return the name of what a file of the bundle belongs to."""
    if path.startswith(f"{TOOL}/"):
        return "a wheel of Rackwright's own"
    owners = {sha256 for sha256, one in catalog.stored.items() if any(piece.path == path for piece in one.pieces)}
    return next((name for name, sha256 in catalog.names() if sha256 in owners), "nothing")


def _sums(folder: Path) -> Mapping[str, str]:
    rows = [row.partition("  ") for row in (folder / SUMS).read_text().splitlines()]
    return {path: sha256 for sha256, _, path in rows}


def changed_files(folder: Path, catalog: Catalog, progress: Callable[[str], None]) -> Iterator[str]:
    """Hash all files, and yield those whose bytes are others, each with what it belongs to."""
    for path, sha256 in sorted(catalog.files().items()):
        progress(path)
        if hash_of(folder / path) != sha256:
            yield f"{folder / path} ({used_by(catalog, path)})"


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file of the bundle; empty where it cannot be read."""
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError:
        return ""


def refuse_other_lock(folder: Path, catalog: Catalog, contents: Contents) -> None:
    """Raise RackwrightError for what the lock names and the bundle does not hold."""
    lacking = [*_lacking(catalog, contents)]
    if lacking:
        more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
        text = f"the bundle in {folder} is of another lock file: it does not hold {', '.join(lacking[:3])}{more}"
        raise RackwrightError(
            f"{text}; next: rackwright bundle INVENTORY --out {folder}, where there is a way out", code="RW3873"
        )


def _lacking(catalog: Catalog, contents: Contents) -> Iterator[str]:
    yield from (f"{name}, which the lock file does not name either" for name in contents.unpinned)
    held = {one.digest for one in catalog.images}
    yield from (f"{reference} at {digest[:19]}" for reference, digest in contents.images if digest not in held)
    for key, model in contents.models.items():
        files = catalog.models.get(key, {})
        for pin in model.source.pins.values():
            file = files.get(pin.path)
            if file is None or file.size != pin.size or (pin.sha256 and pin.sha256 != file.sha256):
                yield f"{model.source.repository} at {model.source.revision[:12]}: {pin.path}"
    for name, (one, _, _) in contents.encodings.items():
        if catalog.encodings.get(name) != one.sha256:
            yield name


def _broken(folder: Path, why: str) -> RackwrightError:
    return RackwrightError(f"the bundle in {folder} is not whole: {why}; next: copy it again", code="RW3883")
