"""What an image of a host accepts, walked inside it and kept in the site: `engine-data/sha256-HEX.yml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rackwright.engines.options.schema import Json, VersionLine, line_for, line_of
from rackwright.engines.version import bare
from rackwright.messages import SettingsError, writing
from rackwright.quick_yaml import load_yaml
from rackwright.settings.model import EndpointSettings, HostSettings

FOLDER = "engine-data"
HEAD = """\
# Written by `rackwright engine-data INVENTORY` from the image itself; keep it under version control.
# `rackwright check` takes it for this digest, in place of what is known of the version.
"""
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def file_of(site: Path, digest: str) -> Path:
    """Where the site keeps what an image accepts. digest: `sha256:` and 64 hexadecimal digits."""
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
    """The options of the very image that an endpoint will run, where the site has them; None elsewhere.

    The digest is the settings' own or the lock file's; without either, the last export of the same image counts.
    Raises SettingsError for a file that is not one of ours.
    """
    folder = settings.site / FOLDER
    if not folder.is_dir():
        return None
    digest = endpoint.image_digest or _locked(settings).get(endpoint.image)
    if digest:
        path = file_of(settings.site, digest)
        return _line(path, path.stat().st_mtime_ns, endpoint.engine_kind) if path.is_file() else None
    kept = sorted(folder.glob("*.yml"), key=lambda one: one.stat().st_mtime_ns, reverse=True)
    same = [path for path in kept if _document(path, path.stat().st_mtime_ns)["image"] == endpoint.image]
    return _line(same[0], same[0].stat().st_mtime_ns, endpoint.engine_kind) if same else None


def _locked(settings: HostSettings) -> Mapping[str, str]:
    """Digests of the lock file; what is wrong with it is said where it is read whole."""
    path = settings.site / settings.paths.lock_file
    try:
        return dict(load_yaml(path.read_text())["images"])
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError):
        return {}


@cache
def _document(path: Path, _: int) -> Json:
    """A file, read anew when it has another time."""
    try:
        document: Any = load_yaml(path.read_text(encoding="utf-8"))
        fits = isinstance(document, dict) and {"image", "version", "sections"} <= set(document)
    except (yaml.YAMLError, UnicodeDecodeError):
        fits = False
    if not fits:
        text = f"{path} is no export of an image's options; next: remove it, then rackwright engine-data INVENTORY"
        raise SettingsError(text, code="RW0320")
    return dict(document)


@cache
def _line(path: Path, changed: int, engine: str) -> VersionLine | None:
    """The line of one file; what its reader does with a file is that of the nearest version that is known."""
    document = _document(path, changed)
    if document.get("engine") != engine:
        return None
    version = bare(str(document["version"]))
    near = line_for(engine, version)[0]
    try:
        line = line_of(engine, version, {**document, "versions": [version]})
    except (KeyError, TypeError, AttributeError) as error:
        text = f"{path} is spoilt: {error!r}; next: remove it, then rackwright engine-data INVENTORY"
        raise SettingsError(text, code="RW0320") from None
    return replace(
        line,
        mappings=near.mappings,
        negates=near.negates,
        picky=near.picky,
        decoding=_decoding(line, near),
        ignored=_ignored(line, near),
    )


def _ignored(image: VersionLine, near: VersionLine) -> Mapping[str, frozenset[str]]:
    """Return the keys that the engine drops before it looks: they are fields no longer, so no image lists them."""
    return {section: keys - set(image.sections.get(section, ())) for section, keys in near.ignored.items()}


def _decoding(line: VersionLine, near: VersionLine) -> str:
    return line.decoding if line.unions else near.decoding
