"""Fields of a request that an endpoint accepts and ignores, for its users to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rackwright_engines.data import table
from rackwright_engines.serving import Serving
from rackwright_engines.version import bare, not_before


@dataclass(frozen=True)
class Ignored:
    """Parameters of a request that do nothing, why, and where that is known from."""

    parameters: tuple[str, ...]
    text: str
    source: str


def ignored_parameters(endpoint: Serving) -> list[Ignored]:
    """Return the parameters of requests that an endpoint ignores, by its engine, version and way of drafting."""
    return [
        Ignored(tuple(row["ignored"]), row["text"], row["source"])
        for row in table("requests")
        if row["engine"] == endpoint.engine_kind and _drafts(row, endpoint) and _version(row, endpoint)
    ]


def _drafts(row: Mapping[str, Any], endpoint: Serving) -> bool:
    section = endpoint.engine.get("speculative_config")
    kind = section.get("decoding_type") if isinstance(section, Mapping) else None
    freed = any(_value(endpoint.engine, key) == value for key, value in row.get("unless", {}).items())
    return kind in row["decoding"] and not freed


def _value(options: Mapping[str, Any], dotted: str) -> Any:
    here: Any = options
    for part in dotted.split("."):
        here = here.get(part) if isinstance(here, Mapping) else None
    return here


def _version(row: Mapping[str, Any], endpoint: Serving) -> bool:
    version = bare(endpoint.version)
    return not_before(version, row.get("since", "0.0")) and not not_before(version, row["until"])
