"""Prometheus metrics of the engines, as data: names by version, and the path where a scraper reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rackwright_engines.data import PRODUCTS, table
from rackwright_engines.options.commandline import by_key, parsed
from rackwright_engines.options.schema import line_for
from rackwright_engines.serving import Serving
from rackwright_engines.version import bare, not_before

SERIES = {"histogram": ("_bucket", "_count", "_sum"), "summary": ("", "_count", "_sum")}


@dataclass(frozen=True)
class Scrape:
    """Reach of an endpoint's metrics."""

    path: str
    """Empty where nothing can be read."""
    why: str = ""
    """The reason for an empty path, and what to set."""


def scrape(endpoint: Serving) -> Scrape:
    """Return the path of an endpoint's metrics.

    TensorRT-LLM's is never /metrics: that is a JSON list, and reading it takes its rows away from every other reader.
    """
    facts = table(f"{endpoint.engine_kind}/metrics")
    product, version = PRODUCTS[endpoint.engine_kind], bare(endpoint.version)
    if (since := facts.get("since")) and not not_before(version, since):
        return Scrape("", f"{product} {version} has no Prometheus collector: the first known one is in {since}")
    options = options_of(endpoint)
    if (needs := facts.get("needs")) and not is_on(options.get(needs)):
        return Scrape("", f"{product} shows no metrics without `engine: {{{needs}: true}}`")
    if (unless := facts.get("unless")) and is_on(options.get(unless)):
        return Scrape("", f"{product} counts nothing with {unless}")
    return Scrape(facts["path"])


def is_on(value: Any) -> bool:
    """Return True for a switch that is set: `true`, in YAML or on a command line."""
    return parsed(value) is True


def options_of(endpoint: Serving) -> Mapping[str, Any]:
    """Return the options of an endpoint by their names, wherever they are written."""
    if endpoint.engine_kind == "tensorrt-llm":
        return endpoint.engine
    schema = line_for(endpoint.engine_kind, bare(endpoint.version))[0]
    return by_key(schema, endpoint.engine, endpoint.arguments)


def series(engine: str, version: str) -> frozenset[str]:
    """Return all names of series that a version's metrics have, as a query writes them."""
    rows = table(f"{engine}/metrics")["names"].items()
    return frozenset(one for name, row in rows if _has(row, version) for one in names_of(name, _kind(row, version)))


def names_of(name: str, kind: str) -> tuple[str, ...]:
    """Return the series of one metric, as its client library names them."""
    if kind == "counter":
        return (f"{name.removesuffix('_total')}_total",)
    return tuple(f"{name}{suffix}" for suffix in SERIES.get(kind, ("",)))


def _kind(row: Mapping[str, Any], version: str) -> str:
    """Return the kind that a metric is at a version: some became another one."""
    return str(row["kind"] if not_before(version, row.get("turned", version)) else row["once"])


def _has(row: Mapping[str, Any], version: str) -> bool:
    until = row.get("until")
    return not_before(version, row["since"]) and not (until and not_before(version, until))
