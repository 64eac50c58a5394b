"""Writes the data files of an engine: the oldest version whole, each later one as it differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rackwright_engines.options.schema import Json
from rackwright_engines.version import parse_version
from scripts.engine_data import sglang, vllm
from scripts.engine_data.source import sources
from scripts.engine_data.trtllm import as_file

READERS: dict[str, tuple[Callable[[Path], Any], Callable[[Any, str], Json]]] = {
    "vllm": (vllm.read, vllm.line_of),
    "sglang": (sglang.read, sglang.line_of),
}
BOUNDS: dict[str, Json] = {
    "tensor-parallel-size": {"gt": 0},
    "pipeline-parallel-size": {"gt": 0},
    "data-parallel-size": {"gt": 0},
    "expert-parallel-size": {"gt": 0},
    "max-num-seqs": {"gt": 0},
    "max-num-batched-tokens": {"gt": 0},
    "max-running-requests": {"gt": 0},
    "gpu-memory-utilization": {"gt": 0, "le": 1},
    "mem-fraction-static": {"gt": 0, "lt": 1},
    "stream-interval": {"gt": 0},
}
"""What the engines check later than where their parser reads it, or do not say as a bound."""
FACTS = ("mappings", "negates", "picky", "lenient")


def write(engine: str, versions: Sequence[str], cache: Path, into: Path) -> Iterator[str]:
    """Write the files of these versions, oldest first, and say a line of each."""
    before: Json | None = None
    written: Json = {}
    for version in sorted(versions, key=lambda one: parse_version(one) or ()):
        release_line = whole_line(engine, version, sources(engine, version, cache))
        made = release_line if before is None else difference(before, release_line)
        if before is not None and not set(made) - {"base", "versions"}:
            written["versions"] += [version]
            release_line["versions"] = before["versions"]
        else:
            written = made
        _save(into / engine, written)
        before = release_line
        sections = release_line["sections"]
        yield f"{version}: {sum(map(len, sections.values()))} options in {len(sections)} sections"


def whole_line(engine: str, version: str, folder: Path) -> Json:
    """Return the whole data of one version of vLLM or SGLang. Raises SettingsError for sources of another shape."""
    read, line_of = READERS[engine]
    return _bounded(line_of(read(folder), version))


def _bounded(release_line: Json) -> Json:
    root = next(iter(release_line["sections"].values()))
    root.update(
        {
            key: {**root[key], **{bound: limit for bound, limit in BOUNDS[key].items() if bound not in root[key]}}
            for key in BOUNDS
            if key in root
        }
    )
    root.update({key: {**root[key], "given": True} for key in ("model", "model-path") if key in root})
    return release_line


def difference(old: Json, new: Json) -> Json:
    """Return a version's difference to the one before it. A file that moved is ignored: the first origin stays."""
    then, now = old["sections"], new["sections"]
    added = {
        name: {key: entry for key, entry in keys.items() if _content(then.get(name, {}).get(key)) != _content(entry)}
        for name, keys in now.items()
    }
    gone = {name: [key for key in keys if key not in now.get(name, {})] for name, keys in then.items()}
    found: Json = {
        "base": old["versions"][0],
        "versions": new["versions"],
        **{fact: new[fact] for fact in FACTS if fact in new and old.get(fact) != new[fact]},
        "add": {name: keys for name, keys in added.items() if keys},
        "remove": {name: keys for name, keys in gone.items() if keys},
    }
    return {key: value for key, value in found.items() if value or key in FACTS}


def _content(entry: Any) -> Any:
    return {key: value for key, value in entry.items() if key != "in"} if isinstance(entry, dict) else entry


def _save(folder: Path, release_line: Json) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = "# Made by scripts/engine-data from the version's own source: `in` is the file that says it.\n"
    (folder / f"{release_line['versions'][0]}.yaml").write_text(text + as_file(release_line), encoding="utf-8")
