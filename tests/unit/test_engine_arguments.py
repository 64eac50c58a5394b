"""JSON in the words of a command line is judged as the same keys in `engine:`; other words are the engine's alone."""

from __future__ import annotations

from typing import Any

import pytest

from rackwright.engines.host import check_endpoint
from rackwright.settings.host_settings import EndpointSettings
from rackwright.settings.sections import Hardware
from rackwright_engines.options.check import check_arguments, check_options

VLLM, SGLANG = ("vllm", "0.33.0"), ("sglang", "0.5.23")
WRONG = [
    (VLLM, ["--compilation-config.cudagraph_mod", "FULL"], "RW0301"),
    (VLLM, ["--max-num-seqs", "8", "--compilation-config.pass_config.fuse_nrom_quant=true"], "RW0301"),
    (VLLM, ["--compilation-config.cudagraph_mode", "FUL"], "RW0304"),
    (VLLM, ["--speculative-config", '{"method": "eagle3", "num_speculativ_tokens": 3}'], "RW0301"),
    (VLLM, ['--speculative-config={"num_speculative_tokens": "three"}'], "RW0303"),
    (VLLM, ["--speculative_config", "{'method': 'ngram'}"], "RW0303"),
    (VLLM, ["--speculative-config.num_speculative_tokens", "three"], "RW0303"),
    (VLLM, ["--speculative-config"], "RW0303"),
    (VLLM, ["--hf-overrides", "{rope: 1}"], "RW0303"),
    (VLLM, ["--override-generation-config", "temperature=0"], "RW0303"),
    (("vllm", "0.10.0"), ["--rope-scaling", "{'rope_type': 'yarn'}"], "RW0303"),
    (SGLANG, ["--json-model-override-args", "{num_hidden_layers: 4}"], "RW0303"),
]
RIGHT = [
    (VLLM, ["--compilation-config.cudagraph_mode", "FULL", "--compilation-config.mode=3", "-O3", "-O", "2"]),
    (VLLM, ["--compilation-config.cudagraph_capture_sizes+", "1,2,4"]),
    (("vllm", "0.10.0"), ["--compilation-config", "3", "-O", "2"]),
    (VLLM, ["--compilation-config.pass_config.fuse_norm_quant", "true"]),
    (VLLM, ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}']),
    (VLLM, ["--speculative-config.num_speculative_tokens", "3", "--speculative-config.method", "ngram"]),
    (VLLM, ["--hf-overrides", '{"rope_parameters": {"rope_type": "yarn"}}', "--hf-overrides.x.y", "1"]),
    (VLLM, ["--an-option-of-a-fork.with.dots", "1", "--kv-cache-dtype", "of_a_fork", "--some-json", "{bad"]),
    (SGLANG, ["--json-model-override-args", '{"num_hidden_layers": 4}', "--brand-new"]),
    (("tensorrt-llm", "1.4.0rc1"), ["--config.x", "{bad"]),
]


def codes(engine: tuple[str, str], words: list[str]) -> list[tuple[Any, str]]:
    found = check_arguments(*engine, words)
    return [(one.path[0], one.code) for one in found if one.level.value == "refuse"]


@pytest.mark.parametrize(("engine", "words", "code"), WRONG, ids=str)
def test_json_that_the_engine_refuses_is_refused_at_its_word(
    engine: tuple[str, str], words: list[str], code: str
) -> None:
    at = max(index for index, option in enumerate(words) if option.startswith("-"))
    assert codes(engine, words) == [(at, code)]


@pytest.mark.parametrize(("engine", "words"), RIGHT, ids=str)
def test_what_is_right_or_is_no_json_is_none_of_it(engine: tuple[str, str], words: list[str]) -> None:
    assert codes(engine, words) == []


@pytest.mark.parametrize(
    ("version", "key"),
    [("0.33.0", "hf-overrides"), ("0.14.1", "hf-overrides"), ("0.10.0", "rope-scaling")],
)
def test_a_file_is_judged_likewise(version: str, key: str) -> None:
    assert [one.code for one in check_options("vllm", version, {key: "{bad"})] == ["RW0303"]
    assert check_options("vllm", version, {key: '{"factor": 2.0}'}) == []


def test_an_unknown_version_refuses_what_is_near_alone() -> None:
    assert codes(("vllm", "0.99.0"), ["--compilation-config.cudagraph_mod", "FULL"]) == [(0, "RW0338")]
    assert codes(("vllm", "nightly-5e35a6f"), ["--compilation-config.brand_new_key", "1"]) == []


def test_an_endpoint_is_refused_at_its_arguments() -> None:
    words = ["--enforce-eager", "--compilation-config.cudagraph_mod", "FULL"]
    endpoint = EndpointSettings.model_validate(
        {"engine_kind": "vllm", "image": "vllm/vllm-openai:v0.33.0", "arguments": words}
    )
    found = check_endpoint("llm", endpoint, Hardware())
    assert [one.code for one in found if one.path[:2] == ("arguments", 1)] == ["RW0301"]


@pytest.mark.parametrize(
    ("engine", "key"), [(VLLM, "enforce-eager"), (VLLM, "async-scheduling"), (SGLANG, "enable-metrics")], ids=str
)
def test_a_switch_takes_no_text(engine: tuple[str, str], key: str) -> None:
    for value in ("yes", "true", 1):
        assert [one.code for one in check_options(*engine, {key: value})] == ["RW0303"]
    assert check_options(*engine, {key: True}) == []


def test_a_switch_within_json_is_read_as_the_engine_reads_it() -> None:
    assert check_options(*VLLM, {"compilation-config": '{"pass_config": {"fuse_norm_quant": "true"}}'}) == []
