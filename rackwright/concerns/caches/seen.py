"""The part of a host's caches that no concern reads: hub caches, unfinished downloads, and times of verification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rackwright.concerns.models.concern import HASHED
from rackwright.hostside import host_script
from rackwright.paths import ENCODING_MARKS, MANIFESTS
from rackwright.plan.reading import lines_of
from rackwright.settings.host_settings import HostSettings

SECTION = "caches"
"""Its name beside the sections of the concerns."""


@dataclass(frozen=True)
class HubModel:
    """One model in a Hugging Face cache of the host."""

    path: str
    size: int | None
    """Bytes; None where counting took too long."""
    commits: frozenset[str]

    @property
    def repository(self) -> str:
        """Its name at the hub."""
        return self.path.rpartition("/")[2].removeprefix("models--").replace("--", "/", 1)


@dataclass(frozen=True)
class SeenCaches:
    """Hub caches, folders of bytes by path, and times in seconds since 1970."""

    hashed: Mapping[str, int] = field(default_factory=dict)
    """By the name of a model's folder: when all of its files were last read and right."""
    marked: Mapping[str, int] = field(default_factory=dict)
    """By the name of an encoding: when it was last verified."""
    unfinished: Mapping[str, int | None] = field(default_factory=dict)
    """Bytes of folders in which a model was assembled."""
    folders: Mapping[str, int | None] = field(default_factory=dict)
    """Bytes of the other folders beside the models, of which this host has no record."""
    hub: tuple[HubModel, ...] = ()
    shared: Mapping[str, int | None] = field(default_factory=dict)
    """Bytes of the folders whose files the models of a hub cache share."""


def read(settings: HostSettings) -> str:
    """Print it; nothing is changed, and no file is read."""
    caches = host_script("hub_caches", hub_caches=" ".join(settings.models.hub_caches), model="")
    places = {"models_dir": settings.models.folder, "manifests": MANIFESTS, "hashed": HASHED, "marks": ENCODING_MARKS}
    return caches + host_script("caches_read", **places)


def parse(output: str) -> SeenCaches:
    """Parse the lines. A user may have named a folder in a cache: what is odd is left out by the host."""
    rows = [row.split(" ") for row in lines_of(output)]
    return SeenCaches(
        dict(_seconds(rows, "hashed")),
        dict(_seconds(rows, "mark")),
        dict(_sizes(rows, "unfinished")),
        dict(_sizes(rows, "folder")),
        tuple(
            HubModel(path, _size(size), frozenset(commits.split(",")) - {""})
            for kind, size, path, *more in rows
            if kind == "hub"
            for commits in more
        ),
        dict(_sizes(rows, "shared")),
    )


def _seconds(rows: list[list[str]], kind: str) -> Iterator[tuple[str, int]]:
    yield from ((" ".join(name), int(second)) for key, second, *name in rows if key == kind and second.isdecimal())


def _sizes(rows: list[list[str]], kind: str) -> Iterator[tuple[str, int | None]]:
    yield from ((" ".join(path), _size(size)) for key, size, *path in rows if key == kind)


def _size(text: str) -> int | None:
    return int(text) if text.isdecimal() else None
