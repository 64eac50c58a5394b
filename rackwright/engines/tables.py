"""Read the tables of what Rackwright writes for an engine; newer data of the engines do not change them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Literal

from rackwright_engines.quick_yaml import load_yaml


@cache
def table(name: Literal["api_key", "rights"]) -> Any:
    """Return the content of `rackwright/data/NAME.yaml`."""
    return load_yaml((files("rackwright") / "data" / f"{name}.yaml").read_text(encoding="utf-8"))
