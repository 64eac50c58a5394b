"""Accepted drafts of a cell, from what the engine counts for Prometheus before and after it. Pure.

The way is the gate's own (proof/drafts.py): vLLM's counters are compared. SGLang's gauges say the last moment only, and
TensorRT-LLM's metrics are never read, because reading drains them: there it is not measurable in a cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rackwright.concerns.endpoint.proof.drafts import VLLM_COUNTERS, drafted_by_vllm
from rackwright_bench.figures.figures import Drafting

LINE = re.compile(r"^([\w:]+?)(?:_total)?(?:\{(.*)\})? ([\d.e+-]+)$", re.MULTILINE)
POSITION = re.compile(r'\bposition="(\d+)"')
EACH_POSITION = f"{VLLM_COUNTERS}accepted_tokens_per_pos"
SILENT = {
    "sglang": "SGLang tells the last moment's acceptance, not a cell's",
    "tensorrt-llm": "TensorRT-LLM's metrics are drained by each reader",
}
"""Why an engine's metrics are not read for it."""

Counts = Mapping[str, float]


def counts_of(text: str) -> dict[str, float]:
    """All counters of a text of Prometheus', added up over their labels, those of a place in a draft apart."""
    found: dict[str, float] = {}
    for name, labels, value in LINE.findall(text):
        position = POSITION.search(labels) if name == EACH_POSITION else None
        key = f"{name}.{position[1]}" if position else name
        found[key] = found.get(key, 0.0) + float(value)
    return found


def grown_between(before: Counts, after: Counts) -> dict[str, float]:
    """By how much each grew that is in both."""
    return {name: after[name] - value for name, value in before.items() if name in after}


def drafting_of(engine_kind: str, drafts: bool, grown: Counts) -> Drafting:
    """Return what came of the drafts. drafts: whether the endpoint drafts at all."""
    if not drafts:
        return Drafting(why_not="no drafting")
    if engine_kind in SILENT:
        return Drafting(why_not=SILENT[engine_kind])
    counts = {name.removeprefix(VLLM_COUNTERS): value for name, value in grown.items()}
    drafted = drafted_by_vllm(counts)
    if drafted is None:
        return Drafting(why_not="its /metrics counts no drafts")
    steps = counts.get("drafts", 0.0)
    share = drafted.accepted / drafted.proposed if drafted.proposed else None
    return Drafting(drafted.rate, share, _positions(grown, steps))


def _positions(grown: Counts, steps: float) -> tuple[float, ...]:
    prefix = f"{EACH_POSITION}."
    places = sorted(int(name.removeprefix(prefix)) for name in grown if name.startswith(prefix))
    return tuple(grown[f"{prefix}{position}"] / steps for position in places) if steps else ()
