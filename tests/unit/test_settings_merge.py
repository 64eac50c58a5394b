"""Layers of settings: a key replaces the weaker one, `engine` is merged deep, every value keeps its origin."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rackwright.loading.merge import Layer, merge
from rackwright.loading.validate import leaves
from rackwright.settings.origin import Origin, origin_of
from rackwright_engines.key_path import KeyPath

KEYS = st.sampled_from(["a", "b", "c"])
TREES = st.recursive(st.integers(), lambda below: st.dictionaries(KEYS, below, max_size=3), max_leaves=8)
SECTIONS = st.dictionaries(KEYS, TREES, max_size=3)
VALUES = st.fixed_dictionaries(
    {}, optional={"engine": SECTIONS, "registry": SECTIONS, "environment": SECTIONS, "port": st.integers()}
)
ENDPOINTS = st.dictionaries(KEYS, st.fixed_dictionaries({}, optional={"engine": SECTIONS, "port": st.integers()}))


def layer(name: str, values: dict[str, Any]) -> Layer:
    """Values whose origins are all the layer's name."""
    return Layer(values, {path: Origin(name) for path in paths(values, ())})


def paths(value: Any, path: KeyPath) -> list[KeyPath]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, below in value.items():
            found += paths(below, (*path, key))
    return found


def deep(below: Any, above: Any) -> Any:
    """Merge as `engine` is merged, written in the plainest way."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    both = {key: deep(below[key], above[key]) for key in below.keys() & above.keys()}
    return {**below, **above, **both}


@given(st.lists(VALUES, max_size=4))
def test_the_strongest_layer_wins_sections_are_united_and_engine_deep(layers: list[dict[str, Any]]) -> None:
    merged = merge(layer(str(number), values) for number, values in enumerate(layers)).values
    for key in ("environment", "port"):
        candidates = [values[key] for values in layers if key in values]
        assert merged.get(key) == (candidates[-1] if candidates else None)
    sections = [values["registry"] for values in layers if "registry" in values]
    assert merged.get("registry", {}) == reduce(operator.or_, sections, {})
    engines = [values["engine"] for values in layers if "engine" in values]
    assert merged.get("engine", {}) == reduce(deep, engines, {})


@given(st.lists(VALUES, max_size=4))
def test_every_leaf_comes_from_the_strongest_layer_that_says_it(layers: list[dict[str, Any]]) -> None:
    merged = merge(layer(str(number), values) for number, values in enumerate(layers))
    for path, value in leaves(merged.values, ()):
        origin = origin_of(merged.origins, path)
        assert origin is not None
        assert dict(leaves(layers[int(origin.file)], ()))[path] == value
        assert not any(path in dict(leaves(values, ())) for values in layers[int(origin.file) + 1 :])


@given(ENDPOINTS, ENDPOINTS)
def test_endpoints_are_replaced_but_an_engine_that_both_have_is_united(
    weak: dict[str, Any], strong: dict[str, Any]
) -> None:
    merged = merge([layer("weak", {"endpoints": weak}), layer("strong", {"endpoints": strong})]).values["endpoints"]
    assert merged.keys() == strong.keys()
    for name, endpoint in strong.items():
        expected = dict(endpoint)
        if "engine" in endpoint and "engine" in weak.get(name, {}):
            expected["engine"] = deep(weak[name]["engine"], endpoint["engine"])
        assert merged[name] == expected


@given(st.lists(VALUES, max_size=3))
def test_layers_are_left_as_they_are(layers: list[dict[str, Any]]) -> None:
    before = repr(layers)
    merge(layer(str(number), values) for number, values in enumerate(layers))
    assert repr(layers) == before
