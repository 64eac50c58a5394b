"""Names of metrics: those that a query uses, those that hosts write, and the newest version of each engine."""

from __future__ import annotations

import re
from functools import cache

from rackwright.hostside import host_text
from rackwright_engines.options.schema import lines

PREFIXED = re.compile(r"\b(?:rackwright_|vllm:|sglang:|trtllm_|node_|DCGM_)\w+|\bup\b")


def used_names(query: str) -> set[str]:
    """Return the metrics that a query reads: rackwright's, the engines', node_exporter's and DCGM's."""
    without_text = re.sub(r'"[^"]*"', "", query)
    return set(PREFIXED.findall(without_text))


@cache
def host_series() -> frozenset[str]:
    """Return the metrics that a host writes of itself."""
    of_gateways = re.findall(r"# TYPE (\w+)", host_text("certificate_metrics.sh"))
    return frozenset([*re.findall(r'^  metric\("(\w+)"', host_text("metrics.awk"), re.MULTILINE), *of_gateways])


@cache
def newest() -> dict[str, str]:
    """Return the newest version that the data know, by engine."""
    return {engine: list(lines(engine).values())[-1].versions[-1] for engine in ("vllm", "sglang", "tensorrt-llm")}
