"""Counters by which an engine says how much it does, as it shows them to Prometheus. Pure.

vllm/v1/metrics/loggers.py; sglang/srt/observability/metrics_collector.py, where `enable-metrics` is set;
tensorrt_llm/metrics/collector.py. A counter that a version lacks is simply not shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.settings.host_settings import EndpointSettings
from rackwright_engines.metrics import scrape

ABSENT = "-"


@dataclass(frozen=True)
class Counters:
    """Names of an engine's tokens made, requests that run, and requests that wait."""

    tokens: str = ABSENT
    running: str = ABSENT
    waiting: str = ABSENT


COUNTERS = {
    "vllm": Counters("vllm:generation_tokens_total", "vllm:num_requests_running", "vllm:num_requests_waiting"),
    "sglang": Counters("sglang:generation_tokens_total", "sglang:num_running_reqs", "sglang:num_queue_reqs"),
    "tensorrt-llm": Counters(
        "trtllm_generation_tokens_total", "trtllm_num_requests_running", "trtllm_num_requests_waiting"
    ),
}


def counters_row(endpoint: EndpointSettings, base: str) -> str:
    """Return the URL of an endpoint's metrics and their names, as the host's script takes them. base: its URL there.

    TensorRT-LLM's /metrics is never read: it is a JSON list, and reading takes its rows from every other reader.
    """
    names, path = COUNTERS.get(endpoint.engine_kind, Counters()), scrape(endpoint).path
    return " ".join([f"{base}{path}" if path else ABSENT, names.tokens, names.running, names.waiting])
