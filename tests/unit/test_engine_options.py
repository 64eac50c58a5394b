"""Engine options: what each version accepts, every refusal with its exact message, and how it is fixed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from rackwright.concerns.endpoint.container import render_engine_yaml
from rackwright_engines.finding import Level, refused
from rackwright_engines.fit.sizes import EngineOptions
from rackwright_engines.options.check import check_options
from rackwright_engines.options.commandline import by_key
from rackwright_engines.options.compare import changed_defaults
from rackwright_engines.options.keys import GIVEN
from rackwright_engines.options.schema import all_versions, line_for, lines
from rackwright_engines.quick_yaml import load_yaml
from rackwright_engines.version import nearest_line, parse_version
from rackwright_lab.standins.engine import gpus
from rackwright_lab.standins.engine.llmapi import models as standin
from rackwright_lab.standins.engine.llmapi.llm_utils import update_llm_args_with_extra_dict
from tests.unit.following import fix

FIXTURES = Path(__file__).parents[1] / "fixtures" / "engine-yaml"
ACCEPTS: dict[str, dict[str, dict[str, Any]]] = json.loads((FIXTURES / "accepts.json").read_text())
VERSIONS = list(ACCEPTS["s000_eagle"])
EAGLE = {"decoding_type": "Eagle", "max_draft_len": 3, "speculative_model_dir": "/config/models/eagle"}
TREE = {**EAGLE, "decoding_type": "Eagle3", "use_dynamic_tree": True, "dynamic_tree_max_topK": 4}
SUFFIXES = {"decoding_type": "SA", "max_draft_len": 4}
TRT = "tensorrt-llm"


def published(name: str) -> dict[str, Any]:
    options: dict[str, Any] = load_yaml((FIXTURES / f"{name}.yaml").read_text())
    return options


def problem_texts(options: dict[str, Any], version: str, engine: str = TRT, level: Level = Level.REFUSE) -> list[str]:
    found = check_options(engine, version, options)
    return [f"{'.'.join(map(str, one.path))}: {one.sentence}" for one in found if one.level is level]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ACCEPTS)
def test_the_table_of_accepted_files_is_reproduced_with_the_engines_words(name: str, version: str) -> None:
    found = refused(check_options(TRT, version, published(name)))
    words = found[0].words if found else ""
    assert {"ok": not found, "why": words} == ACCEPTS[name][version]


SAMPLER = "https://github.com/NVIDIA/TensorRT-LLM/pull/18232"
WRONG: list[tuple[str, dict[str, Any], list[str]]] = [
    (
        "1.2.0rc1",
        {"use_torch_sampler": True},
        [
            "use_torch_sampler: TensorRT-LLM 1.2.0rc1 does not know this key: sampling by TorchSampler is said"
            " otherwise"
            f" there; write `sampler_type: TorchSampler` ({SAMPLER})"
        ],
    ),
    (
        "1.1.0rc0",
        {"sampler_type": "TorchSampler"},
        [
            "sampler_type: TensorRT-LLM 1.1.0rc0 does not know this key: sampling by TorchSampler is said otherwise"
            f" there; write `use_torch_sampler: true` ({SAMPLER})"
        ],
    ),
    (
        "1.4.0rc1",
        {"sampler_type": "TRTLLMSampler"},
        [
            "sampler_type: TensorRT-LLM 1.4.0rc1 no longer has TRTLLMSampler; TorchSampler is the only sampler:"
            f" leave the key out ({SAMPLER})"
        ],
    ),
    (
        "1.4.0rc1",
        {"speculative_config": {**EAGLE, "decoding_type": "DraftTarget"}},
        [
            "speculative_config.decoding_type: TensorRT-LLM 1.4.0rc1 does not know DraftTarget: drafting by a smaller"
            " model of the same family is said otherwise there; write `speculative_config.decoding_type: Draft_Target`"
            " (https://github.com/NVIDIA/TensorRT-LLM/pull/11158)"
        ],
    ),
    (
        "1.4.0rc1",
        {"speculative_config": {"decoding_type": "UserProvided", "drafter": None}},
        [
            "speculative_config.decoding_type: TensorRT-LLM 1.4.0rc1 does not know UserProvided: drafting by code of"
            " one's own is said otherwise there; write `speculative_config.decoding_type: User_Provided`"
            " (https://github.com/NVIDIA/TensorRT-LLM/pull/11158)"
        ],
    ),
    (
        "1.2.0rc6",
        {"cache_transceiver_config": {"backend": "ucx"}},
        [
            "cache_transceiver_config.backend: must be one of DEFAULT, UCX, NIXL, MOONCAKE, MPI (did you mean UCX?),"
            " not 'ucx'"
        ],
    ),
    (
        "1.2.0rc6",
        {"speculative_config": {**EAGLE, "decoding_type": "eagle"}},
        [
            "speculative_config.decoding_type: TensorRT-LLM 1.2.0rc6 does not know eagle (did you mean Eagle?); it"
            " knows"
            " Eagle, DraftTarget, MTP, NGram, UserProvided, AUTO, Medusa, Lookahead, SaveState"
        ],
    ),
    (
        "1.2.0rc0",
        {"kv_cache_free_gpu_memory_fraction": 0.7},
        [
            "kv_cache_free_gpu_memory_fraction: TensorRT-LLM 1.2.0rc0 does not know this key: it has another name in"
            " the"
            " YAML; write `kv_cache_config.free_gpu_memory_fraction: 0.7`"
        ],
    ),
    (
        "1.2.0rc0",
        {"enable_block_reuse": False},
        [
            "enable_block_reuse: TensorRT-LLM 1.2.0rc0 does not know this key: it belongs in kv_cache_config; write"
            " `kv_cache_config.enable_block_reuse: false`"
        ],
    ),
    (
        "1.1.0rc0",
        {"speculative_config": {**EAGLE, "eagle3_layers_to_capture": [-1]}},
        [
            "speculative_config.eagle3_layers_to_capture: TensorRT-LLM 1.1.0rc0 does not know this key: it is known"
            " from"
            " 1.1.0 on"
        ],
    ),
    (
        "1.3.0rc27",
        {"speculative_config": {**EAGLE, "acceptance_length_threshold": 2.1}},
        [
            "speculative_config.acceptance_length_threshold: TensorRT-LLM 1.3.0rc27 does not know this key: the"
            " acceptance below which drafting ends is speculative_config.acceptance_rate_threshold there; it was a"
            " length"
            " in tokens and became a rate between 0 and 1, so write its value again"
        ],
    ),
    (
        "1.3.0rc29",
        {"kv_cache_config": {"onboard_blocks": False}},
        [
            "kv_cache_config.onboard_blocks: TensorRT-LLM 1.3.0rc29 does not know this key: it is gone since 1.3.0rc22",
        ],
    ),
    (
        "1.4.0rc1",
        {"moe_config": {"backend": "WIDEEP"}},
        [
            "moe_config.backend: must be one of AUTO, CUTLASS, CUTEDSL, CUTEDSL_FC12, TRTLLM, DEEPGEMM, DENSEGEMM,"
            " VANILLA,"
            " TRITON, MARLIN, MEGAMOE_DEEPGEMM, MEGAMOE_CUTEDSL, not 'WIDEEP'"
        ],
    ),
    (
        "1.1.0rc0",
        {"speculative_config": {**EAGLE, "acceptance_window": 3}},
        [
            "speculative_config.acceptance_window: TensorRT-LLM 1.1.0rc0 does not know this key: it is known from"
            " 1.2.0rc0 on"
        ],
    ),
    (
        "1.4.0rc1",
        {"use_torch_sampler": True},
        [
            "use_torch_sampler: TensorRT-LLM 1.4.0rc1 does not know this key: sampling by TorchSampler needs no key"
            f" there, it is the default there; leave the key out ({SAMPLER})"
        ],
    ),
    (
        "1.4.0rc1",
        {"speculative_config": {**EAGLE, "eagle3_one_model": True}},
        [
            "speculative_config.eagle3_one_model: TensorRT-LLM 1.4.0rc1 does not know this key: the one-model form of"
            " Eagle3 needs no key there, the one-model form is the only one there; leave the key out"
        ],
    ),
    (
        "1.2.0rc6",
        {"speculative_config": {**EAGLE, "trust_remote_code": True}},
        [
            "speculative_config.trust_remote_code: TensorRT-LLM 1.2.0rc6 does not know this key: it belongs at the top"
            " level; write `trust_remote_code: true`"
        ],
    ),
    (
        "1.2.0rc6",
        {"host_cache_size": 1},
        [
            "host_cache_size: TensorRT-LLM 1.2.0rc6 does not know this key: it belongs in kv_cache_config or"
            " peft_cache_config; was the indentation lost?"
        ],
    ),
    (
        "1.2.0rc6",
        {"moe_confg": {}},
        ["moe_confg: TensorRT-LLM 1.2.0rc6 does not know this key (did you mean moe_config?)"],
    ),
    (
        "1.2.0rc6",
        {"kv_cache_config": None},
        ["kv_cache_config: must not be empty (null): write a value or leave the key out"],
    ),
    ("1.2.0rc6", {"moe_config": "CUTLASS"}, ["moe_config: must be a mapping of `key: value` lines, not 'CUTLASS'"]),
    ("1.2.0rc6", {"speculative_config": 3}, ["speculative_config: must be a mapping with decoding_type, not 3"]),
    (
        "1.4.0rc1",
        {"speculative_config": {"max_draft_len": 3}},
        [
            "speculative_config.decoding_type: is missing; one of Draft_Target, Eagle, Eagle3, MTP, NGram,"
            " User_Provided,"
            " SaveState, PARD, AUTO, SA, DFlash, DSpark"
        ],
    ),
    (
        "1.2.0rc6",
        {"kv_cache_config": {"free_gpu_memory_fraction": "most"}},
        ["kv_cache_config.free_gpu_memory_fraction: must be a number, not 'most'"],
    ),
    (
        "1.2.0rc6",
        {"speculative_config": {**EAGLE, "draft_len_schedule": {1: 3, 2: "few"}}},
        ["speculative_config.draft_len_schedule: must be a mapping of whole numbers, not {1: 3, 2: 'few'}"],
    ),
    (
        "1.2.0rc6",
        {"kv_cache_config": {"dtype": 8}},
        ["kv_cache_config.dtype: must be text, not 8"],
    ),
    (
        "1.2.0rc6",
        {"moe_config": {"backend": "cutlas"}},
        [
            "moe_config.backend: must be one of CUTLASS, CUTEDSL, WIDEEP, TRTLLM, DEEPGEMM, VANILLA, TRITON"
            " (did you mean CUTLASS?), not 'cutlas'"
        ],
    ),
    ("1.2.0rc6", {"stream_interval": "often"}, ["stream_interval: must be a whole number, not 'often'"]),
    ("1.2.0rc6", {"stream_interval": 0}, ["stream_interval: must be above 0, not 0"]),
    ("1.2.0rc6", {"enable_autotuner": "perhaps"}, ["enable_autotuner: must be true or false, not 'perhaps'"]),
    (
        "1.2.0rc6",
        {"kv_cache_config": {"free_gpu_memory_fraction": 1.5}},
        ["kv_cache_config.free_gpu_memory_fraction: must be at least 0 and at most 1, not 1.5"],
    ),
    (
        "1.2.0rc6",
        {"kv_cache_config": {"max_attention_window": 3}},
        ["kv_cache_config.max_attention_window: must be a list of int, not 3"],
    ),
    (
        "1.2.0rc6",
        {"speculative_config": {"decoding_type": "Eagle", "max_draft_len": 3}},
        ["speculative_config.speculative_model_dir: is missing: the draft model's folder in the container"],
    ),
    (
        "1.2.0rc6",
        {"speculative_config": {**EAGLE, "max_draft_len": 0}},
        ["speculative_config.max_draft_len: must be above 0: how many tokens the draft model proposes"],
    ),
    (
        "1.3.0rc27",
        {"speculative_config": {**EAGLE, "speculative_model": "/other"}},
        [
            "speculative_config.speculative_model: and speculative_model_dir are the same option under two names:"
            " keep one"
        ],
    ),
    (
        "1.2.0rc6",
        {"cuda_graph_config": {"batch_sizes": [1, 2], "max_batch_size": 8}},
        [
            "cuda_graph_config.batch_sizes: must not be set together with max_batch_size: 8, which makes its own list:"
            " keep one of them"
        ],
    ),
    (
        "1.4.0rc1",
        {"cuda_graph_config": {"batch_sizes": [1, 2], "max_batch_size": 8}},
        ["cuda_graph_config.max_batch_size: must be the largest of batch_sizes, 2, or be left out; it is 8"],
    ),
    (
        "1.2.0rc6",
        {"speculative_config": {"decoding_type": "Medusa"}},
        ["speculative_config.decoding_type: Medusa does not run on the PyTorch backend, which trtllm-serve uses"],
    ),
    (
        "1.2.0rc6",
        {
            "backend": "tensorrt",
            "disable_overlap_scheduler": True,
            "speculative_config": {"decoding_type": "NGram", "max_draft_len": 2},
        },
        ["speculative_config.decoding_type: NGram runs on the PyTorch backend only, not on tensorrt"],
    ),
    (
        "1.2.0rc6",
        {"speculative_config": {**EAGLE, "draft_len_schedule": {4: 3}}},
        ["speculative_config.draft_len_schedule: must say the length for batch size 1 as well: 1: 3"],
    ),
    (
        "1.3.0rc27",
        {"speculative_config": {**EAGLE, "draft_len_schedule": {4: 2}}},
        ["speculative_config.draft_len_schedule: must begin with max_draft_len, 3; it has 4: 2"],
    ),
    (
        "1.3.0rc27",
        {"speculative_config": {**EAGLE, "draft_len_schedule": {4: 3, 8: 9}}},
        ["speculative_config.draft_len_schedule: has lengths above max_draft_len, 3"],
    ),
    (
        "1.3.0rc27",
        {"speculative_config": {**EAGLE, "draft_len_schedule": {4: 3}, "max_concurrency": 4}},
        ["speculative_config.draft_len_schedule: and max_concurrency exclude each other: keep one"],
    ),
    (
        "1.4.0rc1",
        {"speculative_config": {**EAGLE, "decoding_type": "Eagle3", "draft_len_schedule": {0: 3, 4: 2}}},
        ["speculative_config.draft_len_schedule: must have batch sizes from 1 on and lengths from 0 on; it has 0: 3"],
    ),
    (
        "1.4.0rc1",
        {"disable_overlap_scheduler": True, "speculative_config": {"decoding_type": "NGram"}},
        ["speculative_config.max_draft_len: must be above 0: how many tokens NGram proposes"],
    ),
    (
        "1.4.0rc1",
        {"speculative_config": {**EAGLE, "decoding_type": "Eagle3", "use_dynamic_tree": True}},
        [
            "speculative_config.use_dynamic_tree: needs dynamic_tree_max_topK above 0: how many tokens it follows at"
            " each step"
        ],
    ),
    (
        "1.3.0rc27",
        {
            "speculative_config": {
                **EAGLE,
                "decoding_type": "Eagle3",
                "use_dynamic_tree": True,
                "dynamic_tree_max_topK": 4,
                "eagle_choices": [[0], [1]],
            }
        },
        ["speculative_config.use_dynamic_tree: and eagle_choices exclude each other: keep one"],
    ),
    (
        "1.3.0rc22",
        {"speculative_config": {**TREE, "max_total_draft_tokens": 13}},
        [
            "speculative_config.max_total_draft_tokens: must be from max_draft_len, 3, to 12, dynamic_tree_max_topK for"
            " each of them; it is 13"
        ],
    ),
    (
        "1.3.0rc27",
        {"speculative_config": {"decoding_type": "DFlash", "speculative_model": "/d"}},
        ["speculative_config.max_draft_len: must be above 0: how many tokens DFlash proposes"],
    ),
    (
        "1.3.0rc24",
        {"speculative_config": {**TREE, "decoding_type": "MTP", "max_draft_len": 0, "max_total_draft_tokens": 9}},
        ["speculative_config.max_draft_len: must be above 0: how many tokens the model proposes"],
    ),
    (
        "1.4.0rc1",
        {"speculative_config": {"decoding_type": "MTP", "use_dynamic_tree": True}},
        [
            "speculative_config.use_dynamic_tree: needs max_draft_len: how deep the tree is",
            "speculative_config.use_dynamic_tree: needs dynamic_tree_max_topK above 0: how many tokens it follows at"
            " each step",
        ],
    ),
    (
        "1.3.0rc22",
        {"speculative_config": {**SUFFIXES, "max_matching_ngram_size": 0, "global_pool_size": 64}},
        [
            "speculative_config.max_matching_ngram_size: must be above 0, or -1 for the longest match",
            "speculative_config.global_pool_size: counts with enable_global_pool: true alone",
        ],
    ),
    (
        "1.4.0rc1",
        {"speculative_config": {**SUFFIXES, "max_matching_ngram_size": 65, "enable_global_pool": True}},
        ["speculative_config.max_matching_ngram_size: must be -1, or from 1 to 64 with enable_global_pool; it is 65"],
    ),
]


@pytest.mark.parametrize(
    ("version", "section"),
    [
        ("1.3.0rc4", {**TREE, "max_total_draft_tokens": 13}),
        ("1.3.0rc22", {**TREE, "max_total_draft_tokens": 12}),
        ("1.3.0rc22", {**TREE, "max_total_draft_tokens": 3}),
        ("1.3.0rc24", {"decoding_type": "MTP", "use_dynamic_tree": True}),
        ("1.4.0rc1", {"decoding_type": "MTP"}),
        (
            "1.4.0rc1",
            {"decoding_type": "MTP", "max_draft_len": 3, "use_dynamic_tree": True, "dynamic_tree_max_topK": 2},
        ),
        ("1.4.0rc1", {**SUFFIXES, "max_matching_ngram_size": 65}),
        ("1.4.0rc1", {**SUFFIXES, "enable_global_pool": True, "global_pool_size": 64}),
    ],
)
def test_what_a_version_s_validators_take_or_are_not_known_to_refuse_is_not_refused(
    version: str, section: dict[str, Any]
) -> None:
    assert problem_texts({"speculative_config": section}, version) == []


@pytest.mark.parametrize(("version", "options", "expected"), WRONG, ids=lambda value: str(value)[:60])
def test_every_refusal_has_its_message(version: str, options: dict[str, Any], expected: list[str]) -> None:
    assert problem_texts(options, version) == expected


WARNED: list[tuple[str, dict[str, Any], str]] = [
    (
        "1.4.0rc1",
        {"sampler_type": "auto"},
        "sampler_type: TensorRT-LLM 1.4.0rc1 takes this key and ignores it: leave it out",
    ),
    (
        "1.4.0rc1",
        {"speculative_config": {**EAGLE, "allow_advanced_sampling": True}},
        "speculative_config.allow_advanced_sampling: TensorRT-LLM 1.4.0rc1 takes this key and ignores it: leave it out",
    ),
    ("1.2.0rc6", {"model": "/x"}, "model: is given on the command line already: leave it out"),
    ("1.2.0rc6", {"attention_dp_config": {}}, "attention_dp_config: does nothing without enable_attention_dp: true"),
    (
        "1.2.0rc6",
        {"max_seq_len": 9000},
        "max_seq_len: 9000 is more than max_num_tokens, 8192: prompts longer than that are refused unless"
        " enable_chunked_prefill is true",
    ),
    (
        "1.2.0rc6",
        {"max_batch_size": 32, "cuda_graph_config": {"max_batch_size": 8}},
        "cuda_graph_config.max_batch_size: is 8 and the endpoint's max_batch_size is 32: batches above it run without a"
        " CUDA graph, slowly",
    ),
    (
        "1.2.0rc6",
        {"max_batch_size": 8, "cuda_graph_config": {"max_batch_size": 32}},
        "cuda_graph_config.max_batch_size: is 32 and the endpoint's max_batch_size is 8: graphs above the batch"
        " limit only"
        " cost memory and start-up time",
    ),
    (
        "1.2.0rc6",
        {"speculative_config": {**EAGLE, "decoding_type": "DraftTarget"}},
        "speculative_config.decoding_type: NVIDIA's guides pair DraftTarget with disable_overlap_scheduler: true",
    ),
    (
        "1.3.0rc12",
        {},
        ": the options of TensorRT-LLM 1.3.0rc12 are not known here, so they were checked by the versions around it"
        "; only what is one letter from a known name is refused, and the image decides before anything"
        " is stopped",
    ),
]


@pytest.mark.parametrize(("version", "options", "expected"), WARNED, ids=lambda value: str(value)[:60])
def test_every_warning_has_its_message(version: str, options: dict[str, Any], expected: str) -> None:
    assert problem_texts(options, version, level=Level.WARN) == [expected]
    assert problem_texts(options, version) == []


def test_vllm_makes_words_of_its_file_so_some_yaml_means_nothing_there_text() -> None:
    assert problem_texts({"speculative-config": {"model": "/m"}}, "v0.14.1", "vllm") == [
        "speculative-config: must be JSON text in quotes, not {'model': '/m'}"
    ]
    assert problem_texts({"stream-interval": None}, "v0.14.1", "vllm") == [
        "stream-interval: must not be empty (null): write a value or leave the key out"
    ]
    assert problem_texts({"async-scheduling": False}, "v0.14.1", "vllm", Level.WARN) == [
        "async-scheduling: vLLM leaves out what is false in its file: write `no-async-scheduling: true`, or nothing"
    ]
    assert problem_texts({"no-enable-prefix-caching": False}, "v0.14.1", "vllm", Level.WARN) == [
        "no-enable-prefix-caching: vLLM leaves out what is false in its file"
    ]


@pytest.mark.parametrize(("engine", "version"), [("vllm", "v0.14.1"), ("vllm", "v0.33.0"), ("sglang", "v0.5.8")])
@pytest.mark.parametrize("key", ["host", "port", "served-model-name"])
def test_a_word_of_the_endpoint_s_own_has_no_effect_in_the_file(engine: str, version: str, key: str) -> None:
    value = 9000 if key == "port" else "gpt-oss"
    assert problem_texts({key: value}, version, engine, Level.WARN) == [f"{key}: {GIVEN}"]


def test_what_is_not_sure_is_said_and_not_refused_text() -> None:
    (note,) = problem_texts({"kv_cache_config": {"tokens_per_block": 64}}, "1.1.0rc0", level=Level.NOTE)
    assert (
        note == "kv_cache_config.tokens_per_block: not sure that TensorRT-LLM 1.1.0rc0 has this key; the image decides"
    )
    assert problem_texts({"kv_cache_config": {"dtype": "fp8"}}, "1.1.0rc0", level=Level.NOTE) == []


def test_the_text_of_notes_is_exact() -> None:
    assert problem_texts(
        {"speculative_config": {**EAGLE, "decoding_type": "Eagle3"}}, "1.3.0rc1", level=Level.NOTE
    ) == ["speculative_config.decoding_type: not sure that TensorRT-LLM 1.3.0rc1 has Eagle3"]
    assert problem_texts({"speculative_config": EAGLE}, "1.4.0rc1", level=Level.NOTE) == [
        "speculative_config.decoding_type: is read as Eagle3, with a warning in the engine's log;"
        " write `speculative_config.decoding_type: Eagle3`"
    ]


def test_a_kind_of_drafting_that_is_none_comes_in_the_engine_s_own_words_text() -> None:
    (found,) = check_options(TRT, "1.2.0rc6", {"speculative_config": {**EAGLE, "decoding_type": "eagle"}})
    assert found.words == "ValueError: Invalid decoding type: eagle"


def test_a_renamed_kind_of_drafting_hides_nothing_of_its_section() -> None:
    section = {"decoding_type": "Eagle3", "max_draft_len": 3, "speculative_model": "/d", "max_draft_length": 3}
    assert [one.split(":")[0] for one in problem_texts({"speculative_config": section}, "1.2.0rc1")] == [
        "speculative_config.decoding_type",
        "speculative_config.speculative_model",
        "speculative_config.max_draft_length",
    ]


def test_other_engines_check_what_they_know_and_say_so_of_the_rest_text() -> None:
    assert problem_texts({"kv-cache-dtype": "fp9"}, "v0.14.1", "vllm") == [
        "kv-cache-dtype: must be one of auto, bfloat16, fp8, fp8_e4m3, fp8_e5m2, fp8_inc, fp8_ds_mla (did you mean"
        " fp8?),"
        " not 'fp9'"
    ]
    assert problem_texts({"speculative-config": "{"}, "v0.14.1", "vllm") == [
        "speculative-config: must be JSON text in quotes, not '{'"
    ]
    assert problem_texts({"swap-space": 4}, "v0.14.1", "vllm") == []
    assert problem_texts({"swap-spice": 4}, "v0.14.1", "vllm") == [
        "swap-spice: vLLM v0.14.1 does not know this key (did you mean swap-space?)"
    ]
    assert problem_texts({"tp": 8}, "v0.5.8", "sglang") == []
    assert problem_texts({"mem-fraction": 0.9, "max-runing-requests": 4}, "v0.5.8", "sglang") == [
        "max-runing-requests: SGLang v0.5.8 does not know this key (did you mean max-running-requests?)"
    ]
    assert problem_texts({"mem-fraction-static": 1.0}, "v0.5.8", "sglang") == [
        "mem-fraction-static: must be above 0 and below 1, not 1.0"
    ]


@pytest.mark.parametrize(
    ("version", "nearest"),
    [
        ("0.21.0", "1.0.0"),
        ("1.1.0rc3", "1.1.0rc0"),
        ("1.2.0rc0.post1", "1.2.0rc0"),
        ("1.2.1.post1", "1.2.0"),
        ("latest", "1.4.0rc1"),
    ],
)
def test_unknown_versions_are_checked_as_the_nearest_line(version: str, nearest: str) -> None:
    assert nearest_line(version, lines(TRT)) == nearest
    assert line_for(TRT, version)[1] is False


@pytest.mark.parametrize("engine", ["tensorrt-llm", "vllm", "sglang"])
def test_a_version_finds_the_line_that_names_it_without_reading_the_others(engine: str) -> None:
    for version_line in lines(engine).values():
        assert [line_for(engine, version) for version in version_line.versions] == [(version_line, True)] * len(
            version_line.versions
        )


def test_versions_are_in_their_order() -> None:
    names = ["1.1.0rc0", "1.2.0rc1", "1.2.0rc1.post1", "1.2.0rc6", "1.2.0", "1.2.1", "v1.3.0rc1", "1.3.0rc29-arm64"]
    found = [parse_version(name) for name in names]
    assert None not in found
    assert found == sorted(found, key=lambda one: one or (0,))
    assert all_versions(TRT) == sorted(all_versions(TRT), key=lambda one: parse_version(one) or (0,))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ACCEPTS)
def test_a_published_file_is_mended_for_every_version(name: str, version: str) -> None:
    fixed, edits = fix(published(name), version)
    remaining = refused(check_options(TRT, version, fixed))
    assert bool(edits) == (not ACCEPTS[name][version]["ok"] and not remaining)
    if name == "s004_model_card" and version == "1.1.0rc0":
        assert len(remaining) == 1, "the layers cannot be said in that version: a person must choose another draft"
    else:
        assert remaining == []


def test_the_text_of_mending_keeps_the_order_and_the_values() -> None:
    fixed, edits = fix({"print_iter_log": True, "use_torch_sampler": True, "stream_interval": 2}, "1.2.0rc6")
    assert list(fixed.items()) == [("print_iter_log", True), ("sampler_type", "TorchSampler"), ("stream_interval", 2)]
    assert [str(edit) for edit in edits] == [
        "use_torch_sampler: write `sampler_type: TorchSampler`: TensorRT-LLM 1.2.0rc6 does not know this key:"
        " sampling by"
        " TorchSampler is said otherwise there"
    ]


def test_a_file_that_lost_its_indentation_is_put_together_where_that_is_sure() -> None:
    flat = {"enable_block_reuse": False, "tp_size": 8, "free_gpu_memory_fraction": 0.8}
    fixed, _ = fix(flat, "1.2.0rc0")
    assert fixed == {
        "kv_cache_config": {"enable_block_reuse": False, "free_gpu_memory_fraction": 0.8},
        "tensor_parallel_size": 8,
    }


def test_another_version_s_defaults_are_told_where_they_are_not_set_text() -> None:
    (changed,) = changed_defaults(published("s003_low_latency"), "1.2.0rc6", "1.3.0rc1", TRT)
    assert changed.sentence == "is not set; its default was CUTLASS and is AUTO in TensorRT-LLM 1.3.0rc1"


# Values that both copies of the data take as the same: the stand-in's was written from other notes.
SCALARS = st.sampled_from([None, True, False, 0, 1, 3, 0.5, 1.5, "auto", "fp8", "x", [-1], [1, 2], {"a": 1}])
SPECULATIVE = st.fixed_dictionaries(
    {
        "decoding_type": st.sampled_from(
            ["Eagle", "Eagle3", "DraftTarget", "Draft_Target", "NGram", "UserProvided", "User_Provided", "eagle"]
        )
    },
    optional={
        "max_draft_len": st.integers(1, 5),
        "speculative_model_dir": st.just("/draft"),
        "speculative_model": st.just("/draft"),
        "eagle3_layers_to_capture": st.sampled_from([[-1], [1, 17]]),
        "eagle3_one_model": st.booleans(),
        "acceptance_window": st.integers(0, 3),
        "acceptance_rate_window_size": st.integers(0, 3),
    },
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "trust_remote_code": SCALARS,
        "use_torch_sampler": st.booleans(),
        "sampler_type": st.sampled_from(["auto", "TorchSampler", "TRTLLMSampler"]),
        "enable_attention_dp": SCALARS,
        "enable_autotuner": SCALARS,
        "print_iter_log": SCALARS,
        "disable_overlap_scheduler": SCALARS,
        "stream_interval": SCALARS,
        "tensor_parallel_size": SCALARS,
        "kv_cache_free_gpu_memory_fraction": st.just(0.9),
        "kv_cache_config": st.fixed_dictionaries(
            {},
            optional={
                "enable_block_reuse": SCALARS,
                "free_gpu_memory_fraction": SCALARS,
                "onboard_blocks": st.booleans(),
            },
        ),
        "cuda_graph_config": st.none()
        | st.fixed_dictionaries({}, optional={"max_batch_size": st.integers(0, 64), "enable_padding": SCALARS}),
        "moe_config": st.fixed_dictionaries(
            {},
            optional={"backend": st.sampled_from(["CUTLASS", "TRTLLM", "TRITON", "WIDEEP", "AUTO", "MARLIN", "FAST"])},
        ),
        "speculative_config": st.none() | SPECULATIVE,
    },
)


def standin_refuses(options: dict[str, Any], version: str) -> bool:
    try:
        merged = update_llm_args_with_extra_dict({"model": "/m"}, options, version=version)
        standin.torch_llm_args(version)(**merged)
    except (ValidationError, ValueError, TypeError):
        return True
    return False


@pytest.fixture(scope="module")
def eight_gpus() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpus, "count", lambda: 8)
        yield


@pytest.mark.usefixtures("eight_gpus")
@settings(max_examples=400, deadline=None)
@given(options=OPTIONS, version=st.sampled_from(VERSIONS))
def test_two_independent_copies_of_the_data_agree(options: dict[str, Any], version: str) -> None:
    section = options.get("speculative_config") or {}
    if {"speculative_model", "speculative_model_dir"} <= set(section):
        return  # two names of one option: the stand-in keeps them apart
    assert bool(refused(check_options(TRT, version, options))) == standin_refuses(options, version)


@settings(max_examples=300, deadline=None)
@given(options=OPTIONS, version=st.sampled_from(VERSIONS))
def test_accepted_options_render_yaml_that_parses_back_equal(options: dict[str, Any], version: str) -> None:
    fixed, _ = fix(options, version)
    if not refused(check_options(TRT, version, fixed)):
        assert load_yaml(render_engine_yaml(fixed)) == fixed


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(sorted({path[0] for path in lines(TRT)["1.3.0rc27"].all_keys()}))


@settings(max_examples=300, deadline=None)
@given(options=st.dictionaries(KEYS, JSON, max_size=4), version=st.sampled_from(VERSIONS))
def test_no_value_crashes_a_check(options: dict[str, Any], version: str) -> None:
    check_options(TRT, version, options)
    fix(options, version)
    list(changed_defaults(options, version, "1.4.0rc1", TRT))


NAMED: list[tuple[str, str, dict[str, Any], list[str], int]] = [
    ("sglang", "v0.5.8", {"tp": 8}, [], 8),
    ("sglang", "v0.5.8", {"tp-size": 4, "dp-size": 2}, [], 8),
    ("sglang", "v0.5.8", {"tp": 8, "dp": 8, "enable-dp-attention": True}, [], 8),
    ("sglang", "v0.5.8", {"tp": 16, "nnodes": 2}, [], 8),
    ("vllm", "v0.14.1", {"tensor_parallel_size": 8, "max_num_batched_tokens": "8k"}, [], 8),
    ("vllm", "v0.14.1", {"tensor-parallel-size": "4", "data-parallel-size": 2}, [], 8),
    ("vllm", "v0.14.1", {"compilation-config.pass_config.eliminate_noops": True, "tensor-para": 2}, [], 2),
    ("vllm", "v0.33.0", {"speculative-config": {"method": "ngram", "num_speculative_tokens": 3}}, [], 1),
    ("vllm", "v0.33.0", {"speculative-config": {"num_speculative_tokenz": 3}}, ["speculative-config"], 1),
    ("vllm", "v0.33.0", {"max-num-batched-tokens": "many"}, ["max-num-batched-tokens"], 1),
]


@pytest.mark.parametrize(("engine", "version", "options", "wrong", "gpus_"), NAMED, ids=lambda value: str(value)[:50])
def test_every_name_of_a_key_counts(
    engine: str, version: str, options: dict[str, Any], wrong: list[str], gpus_: int
) -> None:
    assert [str(one.path[0]) for one in refused(check_options(engine, version, options))] == wrong
    version_line = line_for(engine, version.removeprefix("v"))[0]
    assert EngineOptions(engine, version, by_key(version_line, options)).gpus == gpus_


def test_words_of_the_command_line_count_too() -> None:
    version_line = line_for("vllm", "0.14.1")[0]
    found = by_key(version_line, {"tensor-parallel-size": 2}, ["-tp", "4", "--data-parallel-size=2", "--enforce-eager"])
    assert found == {"tensor-parallel-size": "4", "data-parallel-size": "2", "enforce-eager": True}
