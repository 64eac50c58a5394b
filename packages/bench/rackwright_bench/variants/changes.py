"""What a variant changes in the settings of an endpoint, key by key. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rackwright.messages import printable
from rackwright.settings.host_settings import EndpointSettings
from rackwright_bench.proven.shareable import DECISIVE
from rackwright_engines.key_path import dotted
from rackwright_engines.options.commandline import parsed

WIDE = 48
"""Characters of a value that are shown."""


def changed_keys(one: EndpointSettings, other: EndpointSettings) -> list[str]:
    """Return `engine.max_batch_size 10 -> 16` of each key that is another in the other one."""
    before, after = (dict(_flat(values_of(endpoint))) for endpoint in (one, other))
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return [f"{dotted(key)} {_shown(before, key)} -> {_shown(after, key)}" for key in keys]


def values_of(endpoint: EndpointSettings) -> Mapping[str, Any]:
    """Return what an endpoint's figures depend on, without the list of its models' files."""
    values = endpoint.model_dump(mode="json", include=set(DECISIVE), exclude_none=True)
    return {key: {**value, "files": None} if key in ("model", "draft") else value for key, value in values.items()}


def _flat(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    value = parsed(value) if isinstance(value, str) and value.lstrip().startswith("{") else value
    if isinstance(value, Mapping) and (value or not above):
        for key, inner in value.items():
            yield from _flat(inner, (*above, str(key)))
    elif value is not None:
        yield above, value


def _shown(values: Mapping[tuple[str, ...], Any], key: tuple[str, ...]) -> str:
    if key not in values:
        return "(not set)"
    text = json.dumps(values[key]) if not isinstance(values[key], str) else values[key]
    return printable(text if len(text) <= WIDE else f"{text[: WIDE - 3]}...")
