"""Reading a checkpoint folder as an engine does: what is missing, cut short or a web page is an error."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HEADER_LIMIT = 100_000_000
_INDEX = "model.safetensors.index.json"


class SafetensorError(Exception):
    """A weight file is not a whole safetensors file."""


@dataclass(frozen=True)
class Checkpoint:
    """A model folder whose files are all there."""

    folder: Path
    config: dict[str, Any]
    shards: tuple[Path, ...]

    @property
    def is_gpt_oss(self) -> bool:
        """Tell whether chat goes through the harmony format."""
        return bool(self.config.get("model_type") == "gpt_oss")

    def bytes_on_disk(self) -> int:
        """Return the size of all weight files."""
        return sum(shard.stat().st_size for shard in self.shards)


def open_checkpoint(folder: Path) -> Checkpoint:
    """Read config.json and the index; the weights are checked by `load_shards`.

    Raises OSError, ValueError or json.JSONDecodeError naming the file that is missing or not what it should be.
    """
    config_file = folder / "config.json"
    if not config_file.is_file():
        raise OSError(f"{folder} does not appear to have a file named config.json.")
    config = json.loads(config_file.read_text(encoding="utf-8"))
    if "architectures" not in config:
        raise ValueError(f"Unrecognized model in {folder}: its config.json has no `architectures`.")
    return Checkpoint(folder, config, _shards(folder))


def _shards(folder: Path) -> tuple[Path, ...]:
    index = folder / _INDEX
    if index.is_file():
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        missing = [name for name in names if not (folder / name).is_file()]
        if missing:
            raise FileNotFoundError(f"No such file or directory: {folder / missing[0]!s} (named by {_INDEX})")
        return tuple(folder / name for name in names)
    single = folder / "model.safetensors"
    if not single.is_file():
        raise RuntimeError(f"No weight files found in {folder}.")
    return (single,)


def load_shards(checkpoint: Checkpoint) -> Iterator[Path]:
    """Yield each weight file once its length is the one that its own header and the index say."""
    total = 0
    for shard in checkpoint.shards:
        total += _tensor_bytes(shard)
        yield shard
    index = checkpoint.folder / _INDEX
    if index.is_file():
        expected = json.loads(index.read_text(encoding="utf-8")).get("metadata", {}).get("total_size", total)
        if expected != total:
            raise SafetensorError(f"{index}: total_size is {expected}, the weight files hold {total} bytes")


def _tensor_bytes(shard: Path) -> int:
    size = shard.stat().st_size
    with shard.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > _HEADER_LIMIT:
            raise SafetensorError(f"Error while deserializing header: HeaderTooLarge ({shard})")
        header = file.read(length)
    try:
        tensors = {name: entry for name, entry in json.loads(header).items() if name != "__metadata__"}
        end = max(int(entry["data_offsets"][1]) for entry in tensors.values())
    except (ValueError, KeyError, TypeError) as error:
        raise SafetensorError(f"Error while deserializing header: InvalidHeaderDeserialization ({shard})") from error
    if size != 8 + length + end:
        raise SafetensorError(f"Error while deserializing header: MetadataIncompleteBuffer ({shard})")
    return end


def resolve(model: str) -> Path:
    """Return the folder of MODEL: a folder as it is, a repository name from the local hub cache.

    Raises OSError when it is neither; the stand-in downloads nothing.
    """
    folder = Path(model)
    if folder.is_dir():
        return folder
    cache = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface")) / "hub"
    repository = cache / f"models--{model.replace('/', '--')}"
    main = repository / "refs" / "main"
    if main.is_file():
        return repository / "snapshots" / main.read_text(encoding="utf-8").strip()
    raise OSError(f"{model} is not a local folder and is not in the hub's cache at {cache}.")
