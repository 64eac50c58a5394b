"""Reads the data of the engines: tables by name, and one file a version of an engine."""

from __future__ import annotations

from functools import cache
from typing import Any

from rackwright_engines.datasets import used
from rackwright_engines.quick_yaml import load_yaml

PRODUCTS = {"tensorrt-llm": "TensorRT-LLM", "vllm": "vLLM", "sglang": "SGLang"}
"""The names of the engines, as people write them."""


@cache
def table(name: str) -> Any:
    """Return the content of one file, by its name without `.yaml`. Raises FileNotFoundError for an unknown name."""
    return load_yaml((used().folder / f"{name}.yaml").read_text(encoding="utf-8"))


@cache
def files(engine: str) -> tuple[str, ...]:
    """Return the names of all files of one engine, without `.yaml`."""
    return tuple(path.stem for path in (used().folder / engine).glob("*.yaml"))
