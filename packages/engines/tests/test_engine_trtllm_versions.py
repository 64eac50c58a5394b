"""What TensorRT-LLM's releases and newest candidates take and refuse, as their own documentation shows their source.

1.0.0, 1.1.0, 1.2.1 and 1.3.0rc22 to 1.3.0rc24: `_modules/tensorrt_llm/llmapi/llm_args.html` of that version.
1.3.0rc27 and 1.4.0rc1: `llm-api/reference/CLASS.html` of that version.
"""

from __future__ import annotations

from typing import Any

import pytest

from rackwright_engines.finding import Level, refused
from rackwright_engines.key_path import dotted
from rackwright_engines.options.check import check_options
from rackwright_engines.options.schema import line_for, lines

TRT = "tensorrt-llm"
DSPARK = {"decoding_type": "DSpark", "max_draft_len": 4, "block_size": 5, "markov_head_type": "gated"}
ENCODE = {"mode": "encode", "num_tokens": [128, 256], "seq_lens": [64], "max_seq_len": 64}
EAGLE = {"decoding_type": "Eagle3", "speculative_model": "/m", "max_draft_len": 3}


def mtp(**more: object) -> dict[str, object]:
    return {"speculative_config": {"decoding_type": "MTP", "num_nextn_predict_layers": 3, **more}}


TAKEN: list[tuple[str, dict[str, Any]]] = [
    ("1.0.0", {"enable_trtllm_sampler": True}),
    ("1.1.0", {"sampler_type": "TorchSampler"}),
    ("1.1.0", {"batch_wait_timeout_iters": 10, "kv_cache_config": {"tokens_per_block": 64}}),
    ("1.2.0", {"speculative_config": {**EAGLE, "decoding_type": "Eagle"}}),
    ("1.2.1", {"nvfp4_gemm_config": {"allowed_backends": ["cutlass"]}, "pp_partition": [4, 4]}),
    ("1.2.1", mtp(mtp_eagle_one_model=True, max_concurrency=0)),
    ("1.3.0rc9", {"kv_cache_config": {"mamba_ssm_stochastic_rounding": True, "mamba_ssm_philox_rounds": 10}}),
    ("1.3.0rc12", {"moe_config": {"backend": "MARLIN"}}),
    ("1.3.0rc12", mtp(mtp_eagle_one_model=True, max_concurrency=0)),
    ("1.3.0rc22", {"kv_cache_config": {"block_reuse_policy": "per_request", "disk_prefetch_num_reqs": 2}}),
    ("1.3.0rc22.post1", {"kv_cache_config": {"block_reuse_policy": "per_conversation", "max_util_for_resume": 0}}),
    ("1.3.0rc22.post1", mtp(acceptance_rate_threshold=0.5, max_concurrency=8)),
    ("1.3.0rc23", {"kv_cache_config": {"block_reuse_policy": "per_request", "mamba_state_cache_interval": 128}}),
    ("1.3.0rc23.post1", {"kv_cache_config": {"block_reuse_policy": "per_conversation"}}),
    ("1.3.0rc23.post1", {"cuda_graph_config": {"num_tokens": [128]}, "num_serve_frontends": 4}),
    ("1.3.0rc23.post1", mtp(use_dynamic_tree=True, dynamic_tree_max_topK=4, acceptance_rate_threshold=0.5)),
    ("1.3.0rc24", {"speculative_config": DSPARK}),
    ("1.3.0rc24", {"sampler_type": "TRTLLMSampler", "num_serve_frontends": 4, "hf_revision": "main"}),
    ("1.3.0rc24", {"moe_config": {"backend": "WIDEEP"}, "max_stats_len": -1}),
    ("1.3.0rc24", mtp(mtp_eagle_one_model=False, acceptance_rate_threshold=0.5, allow_advanced_sampling=True)),
    ("1.3.0rc24", {"speculative_config": {**EAGLE, "greedy_sampling": False, "draft_len_schedule": {4: 3}}}),
    ("1.3.0rc24", {"kv_cache_config": {"block_reuse_config": {"policy": "per_request"}, "pool_ratio": [0.5, 0.5]}}),
    ("1.3.0rc24", {"cuda_graph_config": {"num_tokens": [128]}}),
    ("1.3.0rc24", {"cuda_graph_config": {"max_batch_size": 8, "enable_padding": True}}),
    ("1.3.0rc27", {"speculative_config": DSPARK}),
    ("1.3.0rc27", {"cuda_graph_config": {"num_tokens": [128]}}),
    ("1.3.0rc27", {"cuda_graph_config": ENCODE}),
    ("1.3.0rc27", {"cuda_graph_config": {"max_batch_size": 8}}),
    ("1.3.0rc29", {"kv_cache_config": {"block_reuse_config": {"policy": "per_request", "max_num_turns": 2}}}),
    ("1.3.0rc27", {"moe_config": {"backend": "MARLIN"}}),
    ("1.4.0rc1", {"speculative_config": {**EAGLE, "moe_backend": "TRITON", "spec_dec_variant": 3}}),
    ("1.4.0rc1", {"speculative_config": {**DSPARK, "attention_backend": "CUTEDSL"}}),
]


@pytest.mark.parametrize(("version", "options"), TAKEN, ids=str)
def test_what_a_version_takes_is_not_refused(version: str, options: dict[str, Any]) -> None:
    assert refused(check_options(TRT, version, options)) == []


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (
        "1.0.0",
        {"use_torch_sampler": True},
        "use_torch_sampler: TensorRT-LLM 1.0.0 does not know this key: sampling by TorchSampler needs no key there,"
        " it is the default there",
    ),
    (
        "1.0.0",
        {"sampler_type": "auto"},
        "sampler_type: TensorRT-LLM 1.0.0 does not know this key: it is known from 1.1.0 on",
    ),
    (
        "1.1.0",
        {"use_torch_sampler": True},
        "use_torch_sampler: TensorRT-LLM 1.1.0 does not know this key: sampling by TorchSampler is said"
        " otherwise there",
    ),
    (
        "1.2.1",
        {"speculative_config": EAGLE},
        "speculative_config.decoding_type: TensorRT-LLM 1.2.1 does not know Eagle3: drafting by an Eagle3 head is said"
        " otherwise there",
    ),
    (
        "1.2.1",
        {"moe_config": {"backend": "AUTO"}},
        "moe_config.backend: must be one of CUTLASS, CUTEDSL, WIDEEP, TRTLLM, DEEPGEMM, VANILLA, TRITON, not 'AUTO'",
    ),
    (
        "1.2.1",
        {"kv_cache_config": {"enable_block_reus": True}},
        "kv_cache_config.enable_block_reus: TensorRT-LLM 1.2.1 does not know this key (did you mean"
        " enable_block_reuse?)",
    ),
    (
        "1.3.0rc22",
        {"kv_cache_config": {"block_reuse_policy": "per_conversation"}},
        "kv_cache_config.block_reuse_policy: must be one of all_reusable, per_request, not 'per_conversation'",
    ),
    (
        "1.3.0rc22.post1",
        {"num_serve_frontends": 4},
        "num_serve_frontends: TensorRT-LLM 1.3.0rc22.post1 does not know this key",
    ),
    (
        "1.3.0rc22.post1",
        mtp(use_dynamic_tree=True),
        "speculative_config.use_dynamic_tree: TensorRT-LLM 1.3.0rc22.post1 does not know this key",
    ),
    (
        "1.3.0rc23",
        {"kv_cache_config": {"max_util_for_resume": 0}},
        "kv_cache_config.max_util_for_resume: must be above 0 and at most 1, not 0",
    ),
    (
        "1.3.0rc23",
        {"kv_cache_config": {"mamba_state_config": {}}},
        "kv_cache_config.mamba_state_config: TensorRT-LLM 1.3.0rc23 does not know this key",
    ),
    (
        "1.3.0rc23",
        {"kv_cache_config": {"mamba_state_cache_interval": 0}},
        "kv_cache_config.mamba_state_cache_interval: must be above 0, not 0",
    ),
    (
        "1.3.0rc23.post1",
        {"kv_cache_config": {"block_reuse_config": {"policy": "per_request"}}},
        "kv_cache_config.block_reuse_config: TensorRT-LLM 1.3.0rc23.post1 does not know this key",
    ),
    (
        "1.3.0rc23.post1",
        {"moe_config": {"backend": "MEGAMOE_CUTEDSL"}},
        "moe_config.backend: must be one of AUTO, CUTLASS, CUTEDSL, WIDEEP, TRTLLM, DEEPGEMM, DENSEGEMM, VANILLA,"
        " TRITON, MARLIN, MEGAMOE_DEEPGEMM (did you mean CUTEDSL?), not 'MEGAMOE_CUTEDSL'",
    ),
    (
        "1.3.0rc23.post1",
        {"generation_config": "auto"},
        "generation_config: TensorRT-LLM 1.3.0rc23.post1 does not know this key",
    ),
    (
        "1.3.0rc24",
        {"kv_cache_config": {"block_reuse_policy": "per_conversation"}},
        "kv_cache_config.block_reuse_policy: TensorRT-LLM 1.3.0rc24 does not know this key: which cached blocks are"
        " kept for reuse is said otherwise there",
    ),
    (
        "1.3.0rc24",
        {"kv_cache_config": {"onboard_blocks": False}},
        "kv_cache_config.onboard_blocks: TensorRT-LLM 1.3.0rc24 does not know this key: it is gone since 1.3.0rc22",
    ),
    (
        "1.3.0rc24",
        {"speculative_config": {**EAGLE, "enable_penalty": True}},
        "speculative_config.enable_penalty: TensorRT-LLM 1.3.0rc24 does not know this key: it is known from 1.3.0rc27",
    ),
    (
        "1.3.0rc24",
        {"num_serve_frontends": 65},
        "num_serve_frontends: must be at least 1 and at most 64, not 65",
    ),
    (
        "1.3.0rc27",
        mtp(mtp_eagle_one_model=True),
        "speculative_config.mtp_eagle_one_model: TensorRT-LLM 1.3.0rc27 does not know this key: the one-model form of"
        " MTP needs no key there, the one-model form is the only one there",
    ),
    (
        "1.3.0rc27",
        mtp(max_concurrency=0),
        "speculative_config.max_concurrency: must be above 0, not 0",
    ),
    (
        "1.3.0rc27",
        {"kv_cache_config": {"block_reuse_policy": "per_conversation"}},
        "kv_cache_config.block_reuse_policy: TensorRT-LLM 1.3.0rc27 does not know this key: which cached blocks are"
        " kept for reuse is said otherwise there",
    ),
    (
        "1.3.0rc27",
        {"cuda_graph_config": {"mode": "decode", "num_tokens": [128]}},
        "cuda_graph_config.num_tokens: TensorRT-LLM 1.3.0rc27 does not know this key with this mode; encode has it",
    ),
    (
        "1.3.0rc27",
        {"cuda_graph_config": {"mode": "encoder"}},
        "cuda_graph_config.mode: TensorRT-LLM 1.3.0rc27 does not know encoder (did you mean encode?)",
    ),
    ("1.3.0rc27", {"cuda_graph_config": True}, "cuda_graph_config: must be a mapping of `key: value` lines, not True"),
    (
        "1.3.0rc29",
        {"speculative_config": {**EAGLE, "moe_backend": "TRITON"}},
        "speculative_config.moe_backend: TensorRT-LLM 1.3.0rc29 does not know this key",
    ),
    (
        "1.4.0rc1",
        {"speculative_config": {**EAGLE, "spec_dec_variant": 0}},
        "speculative_config.spec_dec_variant: must be above 0, not 0",
    ),
]


@pytest.mark.parametrize(("version", "options", "expected"), REFUSED, ids=lambda value: str(value)[:50])
def test_what_a_version_does_not_take_is_refused_with_the_way_out(
    version: str, options: dict[str, Any], expected: str
) -> None:
    (found,) = refused(check_options(TRT, version, options))
    assert f"{dotted(found.path)}: {found.text}".startswith(expected)


@pytest.mark.parametrize(
    "version",
    [
        "1.0.0",
        "1.1.0",
        "1.2.0",
        "1.2.1",
        "1.3.0rc22",
        "1.3.0rc22.post1",
        "1.3.0rc23",
        "1.3.0rc23.post1",
        "1.3.0rc24",
        "1.3.0rc27",
        "1.3.0rc29",
        "1.4.0rc1",
    ],
)
def test_these_versions_are_known_exactly(version: str) -> None:
    assert line_for(TRT, version)[1]


def test_a_release_s_keys_say_where_they_were_read() -> None:
    for version in (
        "1.0.0",
        "1.1.0",
        "1.2.0",
        "1.3.0rc22",
        "1.3.0rc22.post1",
        "1.3.0rc23",
        "1.3.0rc23.post1",
        "1.3.0rc24",
    ):
        keys = lines(TRT)[version].all_keys()
        assert keys["kv_cache_config", "dtype"].origin == f"tensorrt_llm/llmapi/llm_args.py of {version}"
        assert keys["speculative_config", "eagle_choices"].origin.endswith(f"of {version}")
    newest = lines(TRT)["1.4.0rc1"].all_keys()
    assert newest["speculative_config", "moe_backend"].origin == "tensorrt_llm/llmapi/llm_args.py of 1.4.0rc1"
    assert newest["kv_cache_config", "block_reuse_config", "policy"].origin.endswith("of 1.3.0rc27")


def test_what_was_not_seen_in_a_source_says_so_text() -> None:
    key = lines(TRT)["1.1.0"].all_keys()["sparse_attention_config",]
    assert key.unsure
    assert key.origin == ""
    (note,) = check_options(TRT, "1.1.0", {"sparse_attention_config": {}})
    assert (note.level, note.text) == (
        Level.NOTE,
        "not sure that TensorRT-LLM 1.1.0 has this key; the image decides",
    )
