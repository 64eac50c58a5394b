"""The list of what a bundle holds, `bundle.json`: names on the left, SHA-256 of the bytes on the right."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rackwright.messages import RackwrightError
from rackwright.settings.sections import SHA256

FILE = "bundle.json"
TOOL = "tool"
"""Folder of Rackwright's own wheels."""
LARGEST = 256 << 20
"""Bytes of the list: a hundred thousand files have a tenth of it."""
Sha256 = Annotated[str, Field(pattern=SHA256)]
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~%:@-]*")
"""One step of a path in a bundle."""


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class StoredPiece(_Row):
    """A file of the bundle; its name is its SHA-256."""

    sha256: Sha256
    size: int = Field(ge=0)
    part: int = Field(ge=1, le=9999)

    @property
    def path(self) -> str:
        """Return its path below the bundle's folder."""
        return f"{part_name(self.part)}/{self.sha256}"


class Stored(_Row):
    """Some bytes: one piece, or several where they are too large for one file."""

    size: int = Field(ge=0)
    pieces: list[StoredPiece]


class Image(_Row):
    """An image of one digest: its index or manifest, and what that leads to, each with its kind layers without."""

    reference: str
    digest: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    kinds: dict[Sha256, str]
    """Media types of its manifests."""
    layers: list[Sha256]
    """Layers and configurations."""


class ModelFile(_Row):
    """One file of a model as the hub publishes it, and the SHA-256 of what came."""

    size: int
    sha256: Sha256
    blob: str | None = None
    """git's hash, of a small file whose SHA-256 is not published."""


class Catalog(_Row):
    """All of it."""

    version: int = 1
    rackwright: str = ""
    images: list[Image] = []
    models: dict[str, dict[str, ModelFile]] = {}
    """By `REPOSITORY@COMMIT`."""
    encodings: dict[str, Sha256] = {}
    packages: dict[str, dict[str, Sha256]] = {}
    """By system, as `debian-12-amd64`: package files, and `Packages`, apt's list of them."""
    tool: dict[str, Sha256] = {}
    """Rackwright's own wheels, in a folder of their own under their names."""
    stored: dict[Sha256, Stored] = {}

    def missing(self) -> list[str]:
        """Return the names whose bytes are not in the bundle."""
        return [name for name, sha256 in self.names() if sha256 not in self.stored]

    def names(self) -> list[tuple[str, str]]:
        """Return every name with its SHA-256, for messages."""
        found = [(f"image {one.reference}", sha256) for one in self.images for sha256 in (*one.kinds, *one.layers)]
        found += [
            (f"{name}: {path}", file.sha256) for name, files in self.models.items() for path, file in files.items()
        ]
        found += [(f"encoding {name}", sha256) for name, sha256 in self.encodings.items()]
        return found + [
            (f"{system}: {name}", one) for system, files in self.packages.items() for name, one in files.items()
        ]

    def image(self, reference: str) -> Image | None:
        """Return the image of a reference."""
        return next((one for one in self.images if one.reference == reference), None)

    def files(self) -> dict[str, str]:
        """Return the SHA-256 of all files of the bundle but this list, by their path."""
        pieces = {path: piece.sha256 for path, piece in self.pieces().items()}
        return {**pieces, **{f"{TOOL}/{name}": sha256 for name, sha256 in self.tool.items()}}

    def pieces(self) -> Mapping[str, StoredPiece]:
        """Return all files of the bundle by their path."""
        return {piece.path: piece for one in self.stored.values() for piece in one.pieces}


def part_name(number: int) -> str:
    """Return the folder of a part."""
    return f"part-{number:02d}"


def is_plain(path: str) -> bool:
    """Return True for a relative path of plain names."""
    steps = path.split("/")
    return all(_PLAIN.fullmatch(step) for step in steps) and PurePosixPath(path).as_posix() == path


def read_catalog(folder: Path, name: str = FILE) -> Catalog:
    """Return a bundle's list. Raises RackwrightError where it is missing."""
    path = folder / name
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"it is larger than {LARGEST >> 20} MiB")
        found = Catalog.model_validate_json(path.read_bytes())
        if found.version != 1:
            raise ValueError(f"version {found.version} is unknown")
    except FileNotFoundError:
        text = f"{folder} holds no {name}: it is not a bundle, or an unfinished one"
        next_step = f"next: rackwright bundle INVENTORY --out {folder}"
        raise RackwrightError(f"{text}; {next_step}", code="RW3803") from None
    except (OSError, ValidationError, ValueError) as error:
        why = " ".join(str(error).split())[:300]
        raise RackwrightError(f"{path} cannot be read: {why}; next: copy it again", code="RW3803") from None
    return found


def text_of(catalog: Catalog) -> str:
    """Return the list as it is written: equal bundles have equal lists."""
    return json.dumps(catalog.model_dump(mode="json", exclude_none=True), indent=1, sort_keys=True) + "\n"
