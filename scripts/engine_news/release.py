"""One release of an engine: what it accepts, what it counts, and its sources where they are to be had."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rackwright.messages import SettingsError
from rackwright_engines.metrics import names_of, series
from rackwright_engines.options.json_schema import version_of
from rackwright_engines.options.schema import Json, VersionLine, all_versions, line_for, line_of
from scripts.engine_data import metrics, trtllm
from scripts.engine_data.git_source import VERSION, sources_of_git
from scripts.engine_data.make import whole_line
from scripts.engine_data.source import NoSourceError, kept_files, sources, sources_of_file
from scripts.engine_news.tree import SourceTree

TRTLLM = "tensorrt-llm"
SCHEMA = "tensorrt_llm/schemas/trtllm-serve-config.schema.json"
VERSION_FILE = "tensorrt_llm/version.py"


@dataclass(frozen=True)
class Release:
    """A version of an engine."""

    engine: str
    version: str
    schema: VersionLine
    series: frozenset[str] | None
    """Its metrics as a query writes them; None where they were not read."""
    tree: SourceTree | None = None

    def counts(self, name: str) -> bool | None:
        """Return whether it has a series; None where its metrics were not read."""
        return None if self.series is None else name in self.series


def known_release(engine: str, version: str, tree: SourceTree | None) -> Release:
    """Return a release as the data know it. Raises SettingsError for one that they do not know exactly."""
    schema, exact = line_for(engine, version)
    if not exact:
        raise SettingsError(
            f"the data do not know {engine} {version}; they know {', '.join(all_versions(engine)[-5:])}"
        )
    return Release(engine, version, schema, series(engine, version), tree)


def read_release(engine: str, version: str, folder: Path) -> Release:
    """Return a release from a folder with its sources. Raises SettingsError for sources of another shape."""
    tree = SourceTree(folder, kept_files(engine))
    raw = _raw_trtllm(version, folder) if engine == TRTLLM else _dated(whole_line(engine, version, folder), version)
    kinds = dict(metrics.names_in(engine, folder))
    found = frozenset(one for name, kind in kinds.items() for one in names_of(name, kind)) if kinds else None
    return Release(engine, version, line_of(engine, version, raw), found, tree)


def _dated(raw: Json, version: str) -> Json:
    """Return a version's data whose options name it beside the file that says them, as in the data's own files."""
    sections = {
        section: {key: {**entry, "of": version} for key, entry in keys.items()}
        for section, keys in raw["sections"].items()
    }
    return {**raw, "sections": sections}


def _raw_trtllm(version: str, folder: Path) -> Json:
    file = folder / SCHEMA
    if file.is_file():
        return trtllm.line_of_schema(file, version)
    return trtllm.line_of(trtllm.read_source(folder), version)


def given_release(path: Path, cache: Path) -> Release:
    """Return the release of a file or folder on this machine.

    path: an archive of the package index, a git repository with @ and a tag or commit, TensorRT-LLM's own schema, or
    its source tree with its changes. Raises SettingsError.
    """
    if path.suffix == ".json":
        version = version_of(_text(path))
        schema = line_of(TRTLLM, version, trtllm.line_of_schema(path, version or "a version"))
        return Release(TRTLLM, version, schema, None)
    if path.is_dir():
        return read_release(TRTLLM, _version_of_tree(path), path)
    repository, at, name = str(path).rpartition("@")
    if at and not path.exists():
        return read_release(*sources_of_git(Path(repository), name, cache))
    engine, version, folder = sources_of_file(path, cache)
    return read_release(engine, version, folder)


def _version_of_tree(folder: Path) -> str:
    """Return the version of TensorRT-LLM's source tree. Raises SettingsError for another folder."""
    if not (folder / VERSION_FILE).is_file():
        raise SettingsError(
            f"{folder} has no {VERSION_FILE}; next: {folder}@TAG for a git repository, such as {folder}@v1.4.0rc1"
        )
    found = VERSION.search(_text(folder / VERSION_FILE))
    return found[1] if found else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error


def fetched_tree(engine: str, version: str, cache: Path) -> SourceTree | None:
    """Return the sources of a version of the index; None where its archive holds none. Raises SettingsError."""
    try:
        return SourceTree(sources(engine, version, cache))
    except NoSourceError:
        return None
