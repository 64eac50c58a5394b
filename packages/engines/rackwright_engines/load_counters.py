"""Counters by which an engine says how much it does, as it shows them to Prometheus, as plain values.

vllm/v1/metrics/loggers.py; sglang/srt/observability/metrics_collector.py, where `enable-metrics` is set;
tensorrt_llm/metrics/collector.py. A counter that a version lacks is simply not shown.
"""

from __future__ import annotations

from dataclasses import dataclass

ABSENT = "-"


@dataclass(frozen=True)
class LoadCounters:
    """Names of an engine's tokens made, requests that run, and requests that wait."""

    tokens: str = ABSENT
    running: str = ABSENT
    waiting: str = ABSENT


COUNTERS = {
    "vllm": LoadCounters("vllm:generation_tokens_total", "vllm:num_requests_running", "vllm:num_requests_waiting"),
    "sglang": LoadCounters("sglang:generation_tokens_total", "sglang:num_running_reqs", "sglang:num_queue_reqs"),
    "tensorrt-llm": LoadCounters(
        "trtllm_generation_tokens_total", "trtllm_num_requests_running", "trtllm_num_requests_waiting"
    ),
}
