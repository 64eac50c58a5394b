"""Accepted drafts of a cell: what the engine counts for Prometheus before and after it, or what its answers say. Pure.

The way is the gate's own (proof/drafts.py): vLLM's counters are compared, and TensorRT-LLM's at /prometheus/metrics,
where its version has them. SGLang's gauges say the last moment only, and TensorRT-LLM's /metrics is never read, because
reading drains it. aiperf reads the statistics that an engine adds to each answer (vLLM's
`per-request-spec-decode-metrics`, and what has the same form).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rackwright.concerns.endpoint.proof.drafts import VLLM_COUNTERS, drafted_by_vllm
from rackwright.settings.host_settings import EndpointSettings
from rackwright_bench.figures.figures import Drafting
from rackwright_engines.options.schema import VersionLine

LINE = re.compile(r"^([\w:]+?)(?:_total)?(?:\{(.*)\})? ([\d.e+-]+)$", re.MULTILINE)
POSITION = re.compile(r'\bposition="(\d+)"')
EACH_POSITION = f"{VLLM_COUNTERS}accepted_tokens_per_pos"
TRTLLM_COUNTERS = "trtllm_spec_decode_num_"
EACH_ANSWER = "per_request_spec_decode_stats"
"""TensorRT-LLM's option that adds them to its answers; the schema of a version says whether it has it."""
WITH_PROMETHEUS = "return_perf_metrics"
SGLANG = "SGLang tells the last moment's acceptance, not a cell's"
TRTLLM = "TensorRT-LLM's metrics are drained by each reader"
NO_DRAFTING = "no drafting"
"""Of an endpoint whose settings draft nothing."""
NOT_TOLD = Drafting(why_not="its answers do not tell")

EACH_STEPS, EACH_DRAFTED, EACH_ACCEPTED = (
    "spec_decode_steps",
    "spec_decode_draft_tokens",
    "spec_decode_accepted_draft_tokens",
)
"""aiperf's names."""
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


def counters_path(endpoint: EndpointSettings) -> str:
    """Return where an engine's counters can be read without taking them from others; empty: nowhere."""
    if endpoint.engine_kind == "vllm":
        return "/metrics"
    return "/prometheus/metrics" if endpoint.engine.get(WITH_PROMETHEUS) and endpoint.engine_kind != "sglang" else ""


def drafting_of(
    engine_kind: str, drafts: bool, grown: Counts, answers: Drafting = NOT_TOLD, length: int = 0
) -> Drafting:
    """Return what came of the drafts: by the engine's counters, or else by what aiperf has read in its answers.

    drafts: whether the endpoint drafts at all. length: tokens of a draft, 0 where the settings do not say it.
    """
    if not drafts:
        return Drafting(why_not=NO_DRAFTING)
    counted = _by_vllm(grown) if engine_kind == "vllm" else _by_trtllm(grown, length)
    return answers if counted.accepted is None and answers.accepted is not None else counted


def why_not(endpoint: EndpointSettings, options: VersionLine) -> str:
    """Return why an engine that is not vLLM does not report its acceptance, and what would have it do so.

    options: those of the endpoint's version, or of its image.
    """
    if endpoint.engine_kind != "tensorrt-llm":
        return SGLANG
    if (EACH_ANSWER,) not in options.all_keys():
        counted = f"; 1.4.0rc1 and later count drafts with {WITH_PROMETHEUS}"
        more = "" if endpoint.engine.get(WITH_PROMETHEUS) else counted
        return f"{TRTLLM}, and {endpoint.version} has no {EACH_ANSWER}{more}"
    if not endpoint.engine.get(EACH_ANSWER):
        return f"{TRTLLM}; set engine: {{{EACH_ANSWER}: true}}"
    return f"{TRTLLM}, and aiperf reads no statistics in its answers, although {EACH_ANSWER} is on"


def _by_vllm(grown: Counts) -> Drafting:
    counts = {name.removeprefix(VLLM_COUNTERS): value for name, value in grown.items()}
    drafted = drafted_by_vllm(counts)
    if drafted is None:
        return Drafting(why_not="its /metrics counts no drafts")
    steps = counts.get("drafts", 0.0)
    share = drafted.accepted / drafted.proposed if drafted.proposed else None
    return Drafting(drafted.rate, share, _positions(grown, steps))


def _by_trtllm(grown: Counts, length: int) -> Drafting:
    """Each of its drafts has as many tokens as the settings say, so they say how many steps there were."""
    drafted, accepted = (grown.get(f"{TRTLLM_COUNTERS}{kind}_tokens") for kind in ("draft", "accepted"))
    if not drafted or accepted is None:
        return NOT_TOLD
    return Drafting(1 + accepted * length / drafted if length else None, accepted / drafted)


def by_answers(rows: Iterable[Mapping[str, Any]], histogram: Mapping[str, int]) -> Drafting:
    """Return what answers say of their drafts. rows: aiperf's metrics of each. histogram: steps by what they won."""
    reported = [row for row in rows if EACH_STEPS in row]
    steps, drafted, accepted = (
        sum(row[name]["value"] for row in reported) for name in (EACH_STEPS, EACH_DRAFTED, EACH_ACCEPTED)
    )
    if not steps or not drafted:
        return NOT_TOLD
    won = {int(number): count for number, count in histogram.items()}
    # No step may have won the last position: a draft has as many as its engine drafts a step.
    positions = range(max(*won, round(drafted / steps)) if won else 0)
    by_position = tuple(sum(won[number] for number in won if number > index) / steps for index in positions)
    return Drafting(1 + accepted / steps, accepted / drafted, by_position)


def _positions(grown: Counts, steps: float) -> tuple[float, ...]:
    prefix = f"{EACH_POSITION}."
    places = sorted(int(name.removeprefix(prefix)) for name in grown if name.startswith(prefix))
    return tuple(grown[f"{prefix}{position}"] / steps for position in places) if steps else ()
