"""Reads the data files below `data/`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from rackwright.quick_yaml import load_yaml

PRODUCTS = {"tensorrt-llm": "TensorRT-LLM", "vllm": "vLLM", "sglang": "SGLang"}
"""The names of the engines, as people write them."""
FOLDER = Path(__file__).parent / "data"


@cache
def table(name: str) -> Any:
    """Content of one file, by its name without `.yaml`. Raises FileNotFoundError for an unknown name."""
    return load_yaml((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


@cache
def files(engine: str) -> tuple[str, ...]:
    """Names of all files of one engine, without `.yaml`."""
    return tuple(path.stem for path in (FOLDER / engine).glob("*.yaml"))
