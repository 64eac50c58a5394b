"""Values of options: none is lost from one version to the next, and what lies apart from the classes is there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rackwright_engines.data import PRODUCTS
from rackwright_engines.finding import Finding, Level, refused
from rackwright_engines.options.check import check_options
from rackwright_engines.options.schema import BOUNDS, VersionLine, lines, start_bounds
from rackwright_engines.quick_yaml import load_yaml
from rackwright_engines.version import not_before

TRT = "tensorrt-llm"
FREED = load_yaml((Path(__file__).parents[3] / "tests" / "fixtures" / "freed_values.yaml").read_text())
"""Options that no longer name values, with where the engine's source says so."""


def lost(before: VersionLine, later: VersionLine) -> Iterator[str]:
    for section, keys in later.sections.items():
        for name, key in keys.items():
            old = before.sections.get(section, {}).get(name)
            if old and old.values and not key.values:
                yield f"{section}.{name}"


@pytest.mark.parametrize("engine", PRODUCTS)
def test_an_option_that_loses_its_values_was_looked_up(engine: str) -> None:
    every = lines(engine)
    found = {f"{new} {key}" for old, new in pairwise(every) for key in lost(every[old], every[new])}
    assert found == set(FREED[engine])
    assert all(source for source in FREED[engine].values())


def findings(engine: str, version: str, options: dict[str, Any], level: Level) -> list[Finding]:
    return [one for one in check_options(engine, version, options) if one.level is level]


WRONG: list[tuple[str, str, dict[str, Any], str]] = [
    ("vllm", "0.33.0", {"kv-cache-dtype": "fp7"}, "fp8"),
    ("vllm", "0.33.0", {"speculative-config": '{"kv_cache_dtype": "fp7"}'}, "fp8"),
    ("vllm", "0.33.0", {"attention_config.indexer_kv_dtype": "nvfp3"}, "nvfp4"),
    ("vllm", "0.12.0", {"tokenizer-mode": "mistrall"}, "mistral"),
    ("vllm", "0.10.2", {"logprobs-mode": "raw_logprob"}, "raw_logprobs"),
    ("vllm", "0.22.0", {"weight-transfer-config": '{"backend": "ncl"}'}, "nccl"),
    ("vllm", "0.33.0", {"tool-call-parser": "opnai"}, "openai"),
    ("vllm", "0.14.0", {"reasoning-parser": "openai_gptos"}, "openai_gptoss"),
    ("vllm", "0.20.0", {"structured-outputs-config": '{"reasoning_parser": "qwen33"}'}, "qwen3"),
    ("vllm", "0.14.0", {"attention-backend": "FLASH_INFER"}, "FLASHINFER"),
    ("vllm", "0.33.0", {"attention-config": '{"backend": "flash_infer"}'}, "FLASHINFER"),
    ("vllm", "0.33.0", {"quantization": "mxfp5"}, "mxfp4"),
    ("vllm", "0.33.0", {"load-format": "Instanttenso"}, "instanttensor"),
    ("vllm", "0.33.0", {"moe-backend": "marlinn"}, "marlin"),
    ("vllm", "0.17.0", {"moe-backend": "deep-gem"}, "deep_gemm"),
    ("vllm", "0.22.0", {"linear-backend": "cutlas"}, "cutlass"),
    ("vllm", "0.33.0", {"sparse-indexer-topk-backend": "flash-infer"}, "flashinfer"),
    ("vllm", "0.12.0", {"data-parallel-backend": "mpp"}, "mp"),
    ("vllm", "0.33.0", {"compilation-config": '{"mode": "vllm_compil"}'}, "VLLM_COMPILE"),
    ("sglang", "0.5.12", {"speculative-algorithm": "EAGLE4"}, "EAGLE"),
    ("sglang", "0.5.23", {"speculative-algorithm": "nextm"}, "NEXTN"),
    ("sglang", "0.5.2", {"tool-call-parser": "gptoss"}, "gpt-oss"),
    ("sglang", "0.5.23", {"reasoning-parser": "gpt_oss"}, "gpt-oss"),
    ("sglang", "0.5.20", {"sampling-backend": "flashinferr"}, "flashinfer"),
    ("sglang", "0.5.22", {"cuda-graph-backend-decode": "ful"}, "full"),
    (TRT, "1.2.0", {"kv_cache_config": {"dtype": "fp7"}}, "fp8"),
    (TRT, "1.4.0rc1", {"kv_cache_config": {"dtype": "nvfp5"}}, "nvfp4"),
    (TRT, "1.0.0", {"load_format": "dumy"}, "dummy"),
    (TRT, "1.4.0rc1", {"load_format": "vision-only"}, "vision_only"),
    (TRT, "1.2.1", {"attn_backend": "FLASHINFR"}, "FLASHINFER"),
    (TRT, "1.3.0rc28", {"dtype": "bfloat6"}, "bfloat16"),
    (TRT, "1.2.1", {"reasoning_parser": "deepseek-r2"}, "deepseek-r1"),
    (TRT, "1.3.0rc22", {"reasoning_parser": "minimax-m2"}, "minimax_m2"),
    (TRT, "1.4.0rc1", {"nvfp4_gemm_config": {"allowed_backends": ["cublaslt", "cutlas"]}}, "cutlass"),
]


@pytest.mark.parametrize(("engine", "version", "options", "right"), WRONG, ids=str)
def test_a_mistyped_value_is_refused_with_the_right_one(
    engine: str, version: str, options: dict[str, Any], right: str
) -> None:
    (found,) = findings(engine, version, options, Level.REFUSE)
    assert found.near == right


RIGHT: list[tuple[str, str, dict[str, Any]]] = [
    ("vllm", "0.33.0", {"attention-backend": "flashinfer", "reasoning-parser": "none", "quantization": None}),
    ("vllm", "0.33.0", {"attention-backend": "auto", "load-format": "SafeTensors", "tool-call-parser": "hf"}),
    ("vllm", "0.33.0", {"compilation-config": '{"cudagraph_mode": 0, "mode": 3}', "reasoning-parser": ""}),
    (
        "vllm",
        "0.33.0",
        {"compilation-config": '{"cudagraph_mode": "full_decode_only"}', "distributed-executor-backend": "mp"},
    ),
    ("vllm", "0.33.0", {"kernel-config": '{"moe_backend": "MARLIN"}', "moe-backend": "FlashInfer-Cutlass"}),
    ("vllm", "0.24.0", {"kernel-config": '{"linear_backend": "flashinfer-cutlass"}', "optimization-level": 3}),
    ("vllm", "0.33.0", {"compilation-config": '{"mode": "vllm_compile"}', "optimization-level": "0"}),
    ("vllm", "0.10.0", {"tool-call-parser": "hermes", "reasoning-parser": "deepseek_r1"}),
    ("sglang", "0.5.23", {"speculative-algorithm": "nextn", "tool-call-parser": "auto"}),
    ("sglang", "0.5.14", {"speculative-algorithm": "Frozen_KV_MTP"}),
    (TRT, "1.0.0", {"load_format": "DUMMY", "reasoning_parser": "deepseek-r1", "dtype": "bfloat16"}),
    (TRT, "1.2.0", {"attn_backend": "flashinfer_star_attention", "reasoning_parser": "nano-v3"}),
    (TRT, "1.3.0rc24", {"load_format": "gms", "reasoning_parser": "Kimi_K3"}),
    (TRT, "1.3.0rc29", {"reasoning_parser": "poolside_v1", "nvfp4_gemm_config": {"allowed_backends": ["marlin"]}}),
]


@pytest.mark.parametrize(("engine", "version", "options"), RIGHT, ids=str)
def test_a_value_counts_as_the_engine_reads_it(engine: str, version: str, options: dict[str, Any]) -> None:
    assert findings(engine, version, options, Level.REFUSE) == []
    assert [one.code for one in findings(engine, version, options, Level.WARN) if one.code == "RW0353"] == []


@pytest.mark.parametrize(
    ("engine", "version", "options"),
    [
        ("vllm", "0.33.0", {"tool-call-parser": "our_own", "tool-parser-plugin": "/config/ours.py"}),
        ("vllm", "0.33.0", {"quantization": "our_own"}),
        ("vllm", "0.33.0", {"distributed-executor-backend": "ours.Executor"}),
        ("sglang", "0.5.23", {"speculative-algorithm": "OUR_OWN"}),
        (TRT, "1.2.0", {"kv_cache_config": {"dtype": "int8"}}),
        (TRT, "1.2.0", {"dtype": "bf16"}),
        (TRT, "1.1.0", {"load_format": "gms"}),
        (TRT, "1.4.0rc1", {"attn_backend": "OURS"}),
        (TRT, "1.3.0rc28", {"reasoning_parser": "glm45"}),
    ],
    ids=str,
)
def test_what_a_plugin_may_add_is_warned_of(engine: str, version: str, options: dict[str, Any]) -> None:
    assert refused(check_options(engine, version, options)) == []
    assert [one.code for one in findings(engine, version, options, Level.WARN)] == ["RW0353"]


def test_a_closed_list_is_refused_however_far_the_value_is() -> None:
    for engine, version, options in (
        ("vllm", "0.33.0", {"attention-backend": "BRANDNEW"}),
        ("vllm", "0.33.0", {"dtype": "int4"}),
        ("sglang", "0.5.2", {"tool-call-parser": "brandnew"}),
    ):
        (found,) = findings(engine, version, options, Level.REFUSE)
        assert (found.code, found.near) == ("RW0304", "")


BOUNDED = [(engine, key) for engine in ("vllm", "sglang") for key in start_bounds(engine)]
BEYOND = {"ge": -1, "gt": 0, "le": 1, "lt": 0}
"""The step from a bound to a value outside it."""


def versions(engine: str, key: str) -> list[str]:
    """Return the versions that have a key, oldest first."""
    having = [schema for schema in lines(engine).values() if key in schema.sections[schema.root]]
    return [version for schema in having for version in schema.versions]


@pytest.mark.parametrize(("engine", "key"), BOUNDED)
def test_a_number_that_the_engine_s_start_refuses_is_refused_from_its_version_on(engine: str, key: str) -> None:
    row = start_bounds(engine)[key]
    assert row["source"].split()[0].endswith(".py")
    for version in versions(engine, key):
        for bound in [bound for bound in BOUNDS if bound in row]:
            found = findings(engine, version, {key: row[bound] + BEYOND[bound]}, Level.REFUSE)
            counts = not_before(version, row["since"])
            assert ("RW0304" in [one.code for one in found]) is counts or not counts, version
            right = row[bound] + (0 if bound in ("ge", "le") else -BEYOND[bound] or 1)
            assert "RW0304" not in [one.code for one in findings(engine, version, {key: right}, Level.REFUSE)], version
