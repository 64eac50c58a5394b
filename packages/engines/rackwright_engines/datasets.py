"""Finds the newest data of the engines: what this package ships, or a distribution that has nothing but newer data.

Such a distribution names its folder by an entry point of the group `rackwright_engines.data`; no code of it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

import yaml

from rackwright_engines.quick_yaml import load_foreign_yaml

GROUP = "rackwright_engines.data"
FORMAT = 1
"""The form of the files that this version reads (`data/release.yaml`)."""
RELEASE = "release.yaml"
SHIPPED = Path(__file__).parent / "data"
DAY = re.compile(r"(\d{4})\.(\d{1,2})\.(\d{1,2})(?:\.(\d+))?")


@dataclass(frozen=True)
class DataSet:
    """One folder of data, and why it cannot be used."""

    name: str
    """The distribution that has it."""
    version: str
    """The day it is of, as 2026.11.26."""
    folder: Path
    unfit: str = ""
    """The reason for which it cannot be read; empty where it can."""

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


def used() -> DataSet:
    """Return the newest data that can be read; of equal days what is shipped."""
    return next(data for data in datasets() if not data.unfit)


def unused() -> list[str]:
    """Return all other data in words, each with its reason."""
    others = [one for one in datasets() if one is not used() and (one.unfit or one.folder != SHIPPED)]
    return [f"{one}: {one.unfit or f'older than {used()}'}" for one in others]


@cache
def datasets() -> tuple[DataSet, ...]:
    """Return all data that is installed, the newest first."""
    found = [_read("rackwright_engines", SHIPPED), *map(_of, entry_points(group=GROUP))]
    return tuple(sorted(found, key=lambda one: _day(one.version), reverse=True))


def _of(point: EntryPoint) -> DataSet:
    name = point.dist.name if point.dist else point.name
    try:
        spec = find_spec(point.value.partition(".")[0])  # of a name without dots, so that nothing is imported
    except (ImportError, ValueError):
        spec = None
    places = list(spec.submodule_search_locations or []) if spec else []
    if not places:
        return DataSet(name, "", Path(), f"{point.value} is not a folder of data")
    return _read(name, Path(places[0], *point.value.split(".")[1:]))


def _read(name: str, folder: Path) -> DataSet:
    try:
        release = load_foreign_yaml((folder / RELEASE).read_text(encoding="utf-8"))
        form, version = release["format"], str(release["version"])
    except (OSError, UnicodeError, yaml.YAMLError, KeyError, TypeError) as error:
        return DataSet(name, "", folder, f"{folder / RELEASE} cannot be read: {type(error).__name__}")
    if form != FORMAT or isinstance(form, bool):
        return DataSet(name, version, folder, f"its format is {form}, and this version reads {FORMAT}")
    missing = "" if folder == SHIPPED else next(_missing(folder), "")
    reason = f"it lacks {missing}" if missing else "" if _day(version) else f"{version} is not a day as 2026.11.26"
    return DataSet(name, version, folder, reason)


def _missing(folder: Path) -> Iterator[str]:
    """Yield what is read whatever the version, and that a folder lacks."""
    for engine in (path for path in SHIPPED.iterdir() if path.is_dir()):
        if not any((folder / engine.name).glob("[0-9]*.yaml")):
            yield f"versions in {engine.name}/"
    for path in sorted(SHIPPED.rglob("*.yaml")):
        name = path.relative_to(SHIPPED)
        if not name.name[0].isdigit() and not (folder / name).is_file():
            yield str(name)


def _day(version: str) -> tuple[int, ...]:
    found = DAY.fullmatch(version)
    return tuple(int(part or 0) for part in found.groups()) if found else ()
