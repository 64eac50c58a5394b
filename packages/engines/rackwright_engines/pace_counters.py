"""Sums by which an engine says how long its answers take, as it shows them to Prometheus, as plain values.

vllm/v1/metrics/loggers.py: `inter_token_latency_seconds` counts steps, each of several tokens where drafts win, so
that seconds a token are the seconds of decoding over the tokens made, both of requests that have ended.
sglang/srt/observability/metrics_collector.py divides each interval by its tokens, and counts these
(observe_inter_token_latency). tensorrt_llm/metrics/collector.py has a mean of each request; its names had no prefix
before 1.2.0.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PaceCounters:
    """Names of sums, the first of each that a version shows counts."""

    first: tuple[str, ...]
    """Histograms of seconds to the first token."""
    token_seconds: tuple[str, ...]
    """Sums of seconds of decoding."""
    tokens: tuple[str, ...]
    """Counts of what these seconds are for."""
    drafted: tuple[str, ...] = ()
    """Counters of drafted tokens."""
    accepted: tuple[str, ...] = ()

    @property
    def all(self) -> frozenset[str]:
        """All names of series."""
        first = {f"{name}{end}" for name in self.first for end in ("_sum", "_count")}
        return frozenset({*first, *self.token_seconds, *self.tokens, *self.drafted, *self.accepted})


TRTLLM = ("trtllm_", "")
VLLM_DRAFTS = "vllm:spec_decode_num"
PACE = {
    "vllm": PaceCounters(
        ("vllm:time_to_first_token_seconds",),
        ("vllm:request_decode_time_seconds_sum",),
        ("vllm:request_generation_tokens_sum",),
        (f"{VLLM_DRAFTS}_draft_tokens_total", f"{VLLM_DRAFTS}_draft_tokens"),
        (f"{VLLM_DRAFTS}_accepted_tokens_total", f"{VLLM_DRAFTS}_accepted_tokens"),
    ),
    "sglang": PaceCounters(
        ("sglang:time_to_first_token_seconds",),
        ("sglang:inter_token_latency_seconds_sum",),
        ("sglang:inter_token_latency_seconds_count",),
    ),
    "tensorrt-llm": PaceCounters(
        tuple(f"{prefix}time_to_first_token_seconds" for prefix in TRTLLM),
        tuple(f"{prefix}time_per_output_token_seconds_sum" for prefix in TRTLLM),
        tuple(f"{prefix}time_per_output_token_seconds_count" for prefix in TRTLLM),
        ("trtllm_spec_decode_num_draft_tokens_total",),
        ("trtllm_spec_decode_num_accepted_tokens_total",),
    ),
}
