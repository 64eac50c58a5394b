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
    own: Json = {}
    for version in sorted(versions, key=lambda one: parse_version(one) or ()):
        read, line_of = READERS[engine]
        line = _bounded(line_of(read(sources(engine, version, cache)), version))
        made = line if before is None else difference(before, line)
        if before is not None and not set(made) - {"base", "versions"}:
            own["versions"] += [version]
            line["versions"] = before["versions"]
        else:
            own = made
        _save(into / engine, own)
        before = line
        yield f"{version}: {sum(map(len, line['sections'].values()))} options in {len(line['sections'])} sections"


def _bounded(line: Json) -> Json:
    root = next(iter(line["sections"].values()))
    root.update(
        {
            key: {**root[key], **{bound: limit for bound, limit in BOUNDS[key].items() if bound not in root[key]}}
            for key in BOUNDS
            if key in root
        }
    )
    root.update({key: {**root[key], "given": True} for key in ("model", "model-path") if key in root})
    return line


def difference(old: Json, new: Json) -> Json:
    """Return a version's difference to the one before it. A file that moved is ignored: the first origin stays."""
    then, now = old["sections"], new["sections"]
    added = {
        name: {key: told for key, told in keys.items() if _said(then.get(name, {}).get(key)) != _said(told)}
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


def _said(told: Any) -> Any:
    return {key: value for key, value in told.items() if key != "in"} if isinstance(told, dict) else told


def _save(folder: Path, line: Json) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = "# Made by scripts/engine-data from the version's own source: `in` is the file that says it.\n"
    (folder / f"{line['versions'][0]}.yaml").write_text(text + as_file(line), encoding="utf-8")
