"""The changes of a variant to the settings of an endpoint, key by key. Pure."""

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
NAMES = ("repository", "method", "decoding_type", "model")
"""Keys by which a whole section is shown, the first one that it has."""
Path = tuple[str, ...]


def changed_keys(one: EndpointSettings, other: EndpointSettings) -> list[str]:
    """Return `engine.max_batch_size 10 -> 16` of each key that is another in the other one."""
    return [
        f"{dotted(path)} {_shown(before)} -> {_shown(after)}"
        for path, before, after in _differences(values_of(one), values_of(other))
    ]


def values_of(endpoint: EndpointSettings) -> Mapping[str, Any]:
    """Return what an endpoint's figures depend on, without the list of its models' files."""
    values = endpoint.model_dump(mode="json", include=set(DECISIVE), exclude_none=True)
    return {key: {**value, "files": None} if key in ("model", "draft") else value for key, value in values.items()}


def _differences(one: Any, other: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """Yield each key that differs, with both values; a section that only one of them has is one key."""
    before, after = _opened(one), _opened(other)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in {**before, **after}:
            yield from _differences(before.get(key), after.get(key), (*path, str(key)))
    elif before != after:
        yield path, before, after


def _opened(value: Any) -> Any:
    """Return a section that is written as JSON as what it says."""
    found = parsed(value) if isinstance(value, str) and value.lstrip().startswith("{") else None
    return value if found is None else found


def _shown(value: Any) -> str:
    if value is None:
        return "(not set)"
    if isinstance(value, Mapping):
        value = next((value[name] for name in NAMES if value.get(name)), value)
    text = value if isinstance(value, str) else json.dumps(value)
    return printable(text if len(text) <= WIDE else f"{text[: WIDE - 3]}...")
