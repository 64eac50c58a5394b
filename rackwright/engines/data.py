"""Reads the data files below `rackwright/data/engines/`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent.parent / "data" / "engines"


@cache
def table(name: str) -> Any:
    """Content of one file, by its name without `.yaml`. Raises FileNotFoundError for a name that is none."""
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


@cache
def files(engine: str) -> tuple[str, ...]:
    """Names of all files of one engine, without `.yaml`."""
    return tuple(path.stem for path in (FOLDER / engine).glob("*.yaml"))
