"""Merges layers of settings, the weakest first: a key replaces the key below it, within a section as at the top.

`engine` alone is merged deep. It and the section `gate` are merged at top level and, for an endpoint that two layers
describe, within `endpoints.NAME`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rackwright.settings.origin import Origin, Origins
from rackwright.settings.sections import SECTIONS
from rackwright_engines.key_path import KeyPath

ENGINE = "engine"
ENDPOINTS = "endpoints"
GATE = "gate"


@dataclass(frozen=True)
class Layer:
    """Values of one source, or of several merged ones, and where each of their keys stands."""

    values: Mapping[str, Any]
    origins: Mapping[KeyPath, Origin]

    @cached_property
    def by_key(self) -> Mapping[Any, Sequence[tuple[KeyPath, Origin]]]:
        """The origins by their topmost key: a fleet's hosts ask for them key by key."""
        found: dict[Any, list[tuple[KeyPath, Origin]]] = {}
        for path, origin in self.origins.items():
            found.setdefault(path[:1], []).append((path, origin))
        return found


def merge(layers: Iterable[Layer]) -> Layer:
    """Return all layers as one, the last being the strongest. The layers themselves are left as they are."""
    merged = Layer({}, {})
    for layer in layers:
        origins: Origins = {}
        merged = Layer(_combine((), merged, layer, merged.values, layer.values, origins), origins)
    return merged


def _combine(path: KeyPath, below: Layer, above: Layer, old: Any, new: Any, origins: Origins) -> Any:
    """Return `new` over `old` at `path`; `origins` receives the origin of everything that is kept."""
    if not (isinstance(old, Mapping) and isinstance(new, Mapping) and _is_looked_into(path)):
        _keep(path, above, origins)
        return new
    if path in above.origins:
        origins[path] = above.origins[path]
    keys = {**old, **new} if _is_united(path) else new
    return {key: _choose((*path, key), key, below, above, old, new, origins) for key in keys}


def _choose(path: KeyPath, key: Any, below: Layer, above: Layer, old: Any, new: Any, origins: Origins) -> Any:
    if key in old and key in new:
        return _combine(path, below, above, old[key], new[key], origins)
    _keep(path, above if key in new else below, origins)
    return new[key] if key in new else old[key]


def _keep(path: KeyPath, layer: Layer, origins: Origins) -> None:
    origins_below = layer.by_key.get(path[:1], ()) if path else layer.origins.items()
    # At the top, as for most keys of a fleet's hosts, all of them are below the path.
    origins.update(
        origins_below if len(path) < 2 else {at: origin for at, origin in origins_below if at[: len(path)] == path}
    )


def _is_united(path: KeyPath) -> bool:
    """Return True where keys of both layers stay: at the top, in a section, and anywhere in `engine`."""
    if path[:1] == (ENDPOINTS,):
        return path[2:3] == (ENGINE,) or path[2:] == (GATE,)
    return not path or path[0] == ENGINE or (len(path) == 1 and path[0] in SECTIONS)


def _is_looked_into(path: KeyPath) -> bool:
    """Return True where a mapping is merged key by key, or may hold an `engine` that is."""
    return _is_united(path) or (path[0] == ENDPOINTS and len(path) <= 2)
