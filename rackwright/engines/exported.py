"""Options of a host's image, walked inside it and kept in the site: `engine-data/sha256-HEX.yml`."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rackwright.messages import SettingsError, writing
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright_engines.options.schema import Json, Key, VersionLine, line_for, line_of
from rackwright_engines.quick_yaml import load_foreign_yaml
from rackwright_engines.version import bare

FOLDER = "engine-data"
HEAD = """\
# Written by `rackwright engine-data INVENTORY` from the image itself; keep it under version control.
# `rackwright check` takes it for this digest, in place of what is known of the version.
"""
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")
"""A version, or a tag without one."""
SIZE = 4 << 20
"""Bytes of an export at most: the largest that was seen has a tenth of it."""


def file_of(site: Path, digest: str) -> Path:
    """Return where the site keeps what an image accepts. digest: `sha256:` and 64 hexadecimal digits."""
    return site / FOLDER / f"{digest.replace(':', '-')}.yml"


def write(site: Path, image: str, digest: str, engine: str, walked: Json) -> Path:
    """Keep what an image said of itself; returns the file. image: as the settings name it. Raises RackwrightError."""
    path = file_of(site, digest)
    document = {"image": image, "digest": digest, "engine": engine, **walked}
    new = path.with_name(f"{path.name}.new")
    with writing(path):
        path.parent.mkdir(exist_ok=True)
        new.write_text(HEAD + yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=1000))
        new.replace(path)
    return path


def exported(settings: HostSettings, endpoint: EndpointSettings) -> VersionLine | None:
    """Return the options of the very image that an endpoint will run, where the site has them; None elsewhere.

    The digest is the settings' own or the lock file's; without either, the last export of the same image counts.
    Raises SettingsError for a file that is not an export of Rackwright's.
    """
    folder = settings.site / FOLDER
    if not folder.is_dir():
        return None
    digest = endpoint.image_digest or _locked(settings).get(endpoint.image)
    if digest:
        path = file_of(settings.site, digest)
        return _line(path, _changed(path), endpoint.engine_kind) if os.path.lexists(path) else None
    exports = sorted(folder.glob("*.yml"), key=_changed, reverse=True)
    same = [path for path in exports if _document(path, _changed(path))["image"] == endpoint.image]
    return _line(same[0], _changed(same[0]), endpoint.engine_kind) if same else None


def _changed(path: Path) -> int:
    """Return the time of the last change in ns. Raises SettingsError for what is not a file of a readable size."""
    try:
        status = path.stat()
    except OSError as error:
        raise _unfit(path, f"cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise _unfit(path, "is not a file")
    if status.st_size > SIZE:
        raise _unfit(path, f"is larger than {SIZE >> 20} MiB, and no export is")
    return status.st_mtime_ns


def _unfit(path: Path, why: str) -> SettingsError:
    return SettingsError(f"{path} {why}; next: remove it, then rackwright engine-data INVENTORY", code="RW0320")


def _locked(settings: HostSettings) -> Mapping[str, str]:
    """Return the digests of the lock file; what is wrong with it is said where it is read whole."""
    path = settings.site / settings.paths.lock_file
    try:
        return dict(load_foreign_yaml(path.read_text())["images"])
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError):
        return {}


@cache
def _document(path: Path, _: int) -> Json:
    """Return a file's content, read again when its time has changed."""
    try:
        document: Any = load_foreign_yaml(path.read_text(encoding="utf-8"))
        fits = isinstance(document, dict) and {"image", "version", "sections"} <= set(document) and document["sections"]
    except OSError as error:
        raise _unfit(path, f"cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        fits = False
    if not fits:
        raise _unfit(path, "is not an export of an image's options")
    return dict(document)


@cache
def _line(path: Path, changed: int, engine: str) -> VersionLine | None:
    """Return the line of one file; how the engine reads a file is taken from the nearest version that is known."""
    document = _document(path, changed)
    if document.get("engine") != engine:
        return None
    version = bare(str(document["version"]))
    if not VERSION.fullmatch(version):
        raise _unfit(path, f"has a version that is not the name of one: {document['version']!r}")
    near, exact = line_for(engine, version)
    try:
        schema = line_of(engine, version, {**document, "versions": [version]})
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _unfit(path, f"is spoilt: {error!r}") from None
    return replace(
        schema,
        sections={**schema.sections, schema.root: _valued(schema, near)} if exact else schema.sections,
        mappings=near.mappings,
        negates=near.negates,
        picky=near.picky,
        decoding=_decoding(schema, near),
        ignored=_ignored(schema, near),
    )


def _valued(image: VersionLine, schema: VersionLine) -> Mapping[str, Key]:
    """Return an image's options; plain texts have the usual values that the data of its version name."""
    named = {name: key for name, key in schema.sections[schema.root].items() if key.values and key.more}
    return {
        name: replace(key, values=named[name].values, more=True, fold=named[name].fold)
        if name in named and not key.values
        else key
        for name, key in image.sections[image.root].items()
    }


def _ignored(image: VersionLine, near: VersionLine) -> Mapping[str, frozenset[str]]:
    """Return the keys that the engine drops before it looks: they are fields no longer, so no image lists them."""
    return {section: keys - set(image.sections.get(section, ())) for section, keys in near.ignored.items()}


def _decoding(schema: VersionLine, near: VersionLine) -> str:
    return schema.decoding if schema.unions else near.decoding
