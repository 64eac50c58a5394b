"""Reads the data files below `rackwright/data/engines/`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

# The C one reads these tables ten times faster; PyYAML has it wherever it was built with libyaml.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
PRODUCTS = {"tensorrt-llm": "TensorRT-LLM", "vllm": "vLLM", "sglang": "SGLang"}
"""The names of the engines, as people write them."""
FOLDER = Path(__file__).parent.parent / "data" / "engines"


@cache
def table(name: str) -> Any:
    """Content of one file, by its name without `.yaml`. Raises FileNotFoundError for an unknown name."""
    return yaml.load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), Loader=LOADER)


@cache
def files(engine: str) -> tuple[str, ...]:
    """Names of all files of one engine, without `.yaml`."""
    return tuple(path.stem for path in (FOLDER / engine).glob("*.yaml"))
