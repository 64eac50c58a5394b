"""Names of the engines' metrics: by version, as their own sources say, and where they are read."""

from __future__ import annotations

import pytest

from rackwright_engines.data import table
from rackwright_engines.metrics import series
from rackwright_engines.version import parse_version

ENGINES = ("vllm", "sglang", "tensorrt-llm")


@pytest.mark.parametrize("engine", ENGINES)
def test_each_name_has_a_kind_and_its_versions(engine: str) -> None:
    facts = table(f"{engine}/metrics")
    assert facts["path"].startswith("/")
    assert facts["in"]
    for name, row in facts["names"].items():
        assert row["kind"] in ("counter", "gauge", "histogram", "summary"), name
        assert all(parse_version(row[key]) for key in ("since", "until") if key in row), name


@pytest.mark.parametrize(
    ("engine", "version", "name", "present"),
    [
        ("vllm", "0.33.0", "vllm:iteration_tokens_total_count", True),
        ("vllm", "0.33.0", "vllm:generation_tokens_total", True),
        ("vllm", "0.33.0", "vllm:generation_tokens", False),
        ("vllm", "0.14.1", "vllm:time_per_output_token_seconds_bucket", True),
        ("vllm", "0.15.0", "vllm:time_per_output_token_seconds_bucket", False),
        ("sglang", "0.5.23", "sglang:spec_accept_length", True),
        ("sglang", "0.5.6", "sglang:realtime_tokens_total", False),
        ("sglang", "0.5.9", "sglang:kv_transfer_latency_ms", True),
        ("sglang", "0.5.10", "sglang:kv_transfer_latency_ms_sum", True),
        ("sglang", "0.5.10", "sglang:kv_transfer_latency_ms", False),
        ("tensorrt-llm", "1.1.0rc5", "request_success_total", True),
        ("tensorrt-llm", "1.1.0rc5", "trtllm_request_success_total", False),
        ("tensorrt-llm", "1.4.0rc1", "trtllm_generation_tokens_total", True),
    ],
)
def test_a_name_is_that_of_its_versions(engine: str, version: str, name: str, present: bool) -> None:
    assert (name in series(engine, version)) is present
