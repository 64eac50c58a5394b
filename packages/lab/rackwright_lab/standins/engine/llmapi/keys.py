"""The engine's options as data: which key each version knows, its type, default and limits.

Taken from the table of accepted keys per version that the tests check (tests/fixtures/engine-yaml). Keys that
no public recipe for these models uses are taken as present in every version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

DISCRIMINATED = "1.3.0rc4"
"""First version whose decoding types are a discriminated union (`Draft_Target` instead of `DraftTarget`)."""
TYPED_DECODING = "1.3.0rc1"
"""First version that validates an Eagle section with pydantic instead of setting attributes one by one."""
TRIMMED = "1.3.0rc27"
"""First version seen without the keys that were deprecated in spring 2026."""

REQUIRED: Any = ...
PositiveInt = Annotated[int, Field(gt=0)]
NaturalInt = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class Key:
    """One option: `kind` is a type, or `Section` for a nested one. Known in versions [since, gone)."""

    name: str
    kind: Any
    default: Any = None
    since: str = ""
    gone: str = ""


@dataclass(frozen=True)
class Section:
    """A nested section; `nullable` sections may be switched off with an explicit null."""

    name: str
    nullable: bool = False


@dataclass(frozen=True)
class Decoding:
    """A kind of speculative decoding, by the tag that `decoding_type` names."""

    tag: str
    title: str
    keys: tuple[Key, ...] = ()
    since: str = ""
    gone: str = ""
    pytorch: bool = True


def _optional(kind: Any) -> Any:
    return kind | None


KV_CACHE = (
    Key("enable_block_reuse", bool, True),
    Key("max_tokens", _optional(int)),
    Key("max_attention_window", _optional(list[int])),
    Key("sink_token_length", _optional(int)),
    Key("free_gpu_memory_fraction", _optional(Fraction), 0.9),
    Key("host_cache_size", _optional(int)),
    Key("onboard_blocks", bool, True, gone=TRIMMED),
    Key("cross_kv_cache_fraction", _optional(float)),
    Key("secondary_offload_min_priority", _optional(int)),
    Key("event_buffer_max_size", int, 0),
    Key("enable_partial_reuse", bool, True),
    Key("copy_on_partial_reuse", bool, True),
    Key("use_uvm", bool, False),
    Key("attention_dp_events_gather_period_ms", int, 5),
    Key("dtype", str, "auto"),
    Key("mamba_ssm_cache_dtype", str, "auto"),
    Key("mamba_ssm_stochastic_rounding", bool, False, since="1.3.0rc9"),
    Key("mamba_ssm_philox_rounds", PositiveInt, 10, since="1.3.0rc9"),
    Key("tokens_per_block", int, 32),
    Key("max_gpu_total_bytes", NaturalInt, 0, since="1.2.0rc0"),
)

CUDA_GRAPH = (
    Key("batch_sizes", _optional(list[int])),
    Key("max_batch_size", NaturalInt, 0),
    Key("enable_padding", bool, False),
)

MOE_BACKENDS: tuple[tuple[str, str, str], ...] = (
    ("CUTLASS", "", ""),
    ("CUTEDSL", "", ""),
    ("WIDEEP", "", TRIMMED),
    ("TRTLLM", "", ""),
    ("DEEPGEMM", "", ""),
    ("VANILLA", "", ""),
    ("TRITON", "", ""),
    ("AUTO", "1.3.0rc1", ""),
    ("DENSEGEMM", TRIMMED, ""),
    ("MARLIN", TRIMMED, ""),
    ("MEGAMOE_DEEPGEMM", TRIMMED, ""),
    ("MEGAMOE_CUTEDSL", TRIMMED, ""),
    ("CUTEDSL_FC12", "1.4.0rc1", ""),
)
"""(name, since, gone) of `moe_config.backend`; AUTO is the default from the version that knows it."""

MOE = (
    Key("max_num_tokens", _optional(int)),
    Key("load_balancer", _optional(Any)),
    Key("disable_finalize_fusion", bool, False),
    Key("use_low_precision_moe_combine", bool, False),
)

ATTENTION_DP = (
    Key("enable_balance", bool, False),
    Key("timeout_iters", int, 50),
    Key("batching_wait_iters", int, 10),
)

TORCH_LLM_ARGS = (
    Key("model", str, REQUIRED),
    Key("tokenizer", _optional(str)),
    Key("tokenizer_mode", Literal["auto", "slow"], "auto"),
    Key("custom_tokenizer", _optional(str), since="1.2.0rc6"),
    Key("skip_tokenizer_init", bool, False),
    Key("trust_remote_code", bool, False),
    Key("backend", Literal["pytorch", "_autodeploy"], "pytorch"),
    Key("dtype", str, "auto"),
    Key("revision", _optional(str)),
    Key("tokenizer_revision", _optional(str)),
    Key("tensor_parallel_size", PositiveInt, 1),
    Key("pipeline_parallel_size", PositiveInt, 1),
    Key("context_parallel_size", PositiveInt, 1),
    Key("gpus_per_node", _optional(int)),
    Key("moe_cluster_parallel_size", _optional(int)),
    Key("moe_tensor_parallel_size", _optional(int)),
    Key("moe_expert_parallel_size", _optional(int)),
    Key("enable_attention_dp", bool, False),
    Key("attention_dp_config", Section("AttentionDpConfig", nullable=True)),
    Key("enable_chunked_prefill", bool, False),
    Key("guided_decoding_backend", _optional(Literal["xgrammar", "llguidance"])),
    Key("batched_logits_processor", _optional(Any)),
    Key("iter_stats_max_iterations", _optional(int)),
    Key("request_stats_max_iterations", _optional(int)),
    Key("kv_cache_config", Section("KvCacheConfig")),
    Key("peft_cache_config", _optional(dict[str, Any])),
    Key("scheduler_config", _optional(dict[str, Any])),
    Key("cache_transceiver_config", _optional(dict[str, Any])),
    Key("speculative_config", Section("SpeculativeConfig", nullable=True)),
    Key("enable_lora", bool, False),
    Key("lora_config", _optional(dict[str, Any])),
    Key("max_batch_size", _optional(PositiveInt), 2048),
    Key("max_input_len", _optional(int), 1024),
    Key("max_seq_len", _optional(PositiveInt)),
    Key("max_beam_width", _optional(PositiveInt), 1),
    Key("max_num_tokens", _optional(PositiveInt), 8192),
    Key("gather_generation_logits", bool, False),
    Key("num_postprocess_workers", NaturalInt, 0),
    Key("postprocess_tokenizer_dir", _optional(str)),
    Key("reasoning_parser", _optional(str)),
    Key("otlp_traces_endpoint", _optional(str), since="1.2.0rc0"),
    Key("return_perf_metrics", bool, False, since="1.2.0rc0"),
    Key("perf_metrics_max_requests", NaturalInt, 0, since="1.2.0rc0"),
    Key("fail_fast_on_attention_window_too_large", bool, False),
    Key("garbage_collection_gen0_threshold", int, 20000),
    Key("cuda_graph_config", Section("CudaGraphConfig", nullable=True), {}),
    Key("disable_overlap_scheduler", bool, False),
    Key("moe_config", Section("MoeConfig"), {}),
    Key("attn_backend", str, "TRTLLM"),
    Key("use_torch_sampler", bool, False, gone="1.2.0rc0"),
    Key(
        "sampler_type",
        Literal["auto", "TorchSampler", "TRTLLMSampler"],
        "auto",
        since="1.2.0rc0",
        gone=TRIMMED,
    ),
    Key("enable_iter_perf_stats", bool, False),
    Key("enable_iter_req_stats", bool, False),
    Key("print_iter_log", bool, False),
    Key("batch_wait_timeout_ms", float, 0),
    Key("batch_wait_timeout_iters", int, 0),
    Key("batch_wait_max_tokens_ratio", float, 0),
    Key("torch_compile_config", _optional(dict[str, Any])),
    Key("enable_autotuner", bool, True),
    Key("enable_layerwise_nvtx_marker", bool, False),
    Key("load_format", str, "AUTO"),
    Key("enable_min_latency", bool, False),
    Key("stream_interval", PositiveInt, 1),
    Key("force_dynamic_quantization", bool, False),
    Key("allreduce_strategy", str, "AUTO"),
    Key("checkpoint_format", _optional(str)),
    Key("mm_encoder_only", bool, False),
    Key("build_config", _optional(dict[str, Any]), gone="1.3.0rc4"),
    Key("env_overrides", _optional(dict[str, str]), since="1.2.0rc6"),
)

_DRAFT_MODEL = (
    Key("speculative_model_dir", _optional(str)),
    Key("speculative_model", _optional(str), since="1.3.0rc1"),
)
# The base of all kinds has the draft model's folder, those that draft without a model included.
_COMMON = (
    *_DRAFT_MODEL,
    Key("max_concurrency", _optional(int), since="1.2.0rc0"),
    Key("draft_len_schedule", _optional(dict[int, int]), since="1.2.0rc6"),
    Key("load_format", _optional(str)),
    Key("acceptance_window", _optional(NaturalInt), since="1.2.0rc0", gone=TRIMMED),
    Key("acceptance_length_threshold", _optional(float), since="1.2.0rc0", gone=TRIMMED),
    Key("acceptance_rate_window_size", _optional(NaturalInt), since=TRIMMED),
    Key("acceptance_rate_threshold", _optional(float), since=TRIMMED),
    Key("allow_advanced_sampling", bool, False, since="1.2.0rc6"),
)
_EAGLE = (
    *_COMMON,
    Key("max_draft_len", PositiveInt, REQUIRED),
    Key("eagle_choices", _optional(list[list[int]]), gone="1.4.0rc1"),
    Key("greedy_sampling", _optional(bool), True, gone=TRIMMED),
    Key("posterior_threshold", _optional(float), gone=TRIMMED),
    Key("use_dynamic_tree", _optional(bool), False),
    Key("dynamic_tree_max_topK", _optional(int)),
    Key("num_eagle_layers", _optional(int)),
    Key("max_non_leaves_per_layer", _optional(int)),
    Key("eagle3_one_model", _optional(bool), True, gone=TRIMMED),
    Key("eagle3_layers_to_capture", _optional(set[int]), since="1.2.0rc0"),
)
_LENGTH = Key("max_draft_len", _optional(NaturalInt))
_OWN = (*_COMMON, _LENGTH, Key("drafter", _optional(Any)), Key("resource_manager", _optional(Any)))

_DSPARK = (
    Key("block_size", _optional(PositiveInt)),
    Key("target_layer_ids", _optional(list[int])),
    Key("markov_rank", _optional(int)),
)

DRAFTED = ("Eagle", "Eagle3", "DraftTarget", "Draft_Target", "PARD", "Medusa")
"""Kinds that refuse to start without a draft model."""

DECODINGS = (
    Decoding(
        "DraftTarget",
        "DraftTargetDecodingConfig",
        (*_COMMON, Key("max_draft_len", PositiveInt, REQUIRED)),
        gone=DISCRIMINATED,
    ),
    Decoding(
        "Draft_Target",
        "DraftTargetDecodingConfig",
        (*_COMMON, Key("max_draft_len", PositiveInt, REQUIRED)),
        since=DISCRIMINATED,
    ),
    Decoding("Eagle", "EagleDecodingConfig", _EAGLE),
    Decoding("Eagle3", "Eagle3DecodingConfig", _EAGLE, since="1.3.0rc1"),
    Decoding(
        "MTP",
        "MTPDecodingConfig",
        (
            *_COMMON,
            _LENGTH,
            Key("num_nextn_predict_layers", int, 1),
            Key("use_relaxed_acceptance_for_thinking", bool, False),
            Key("relaxed_topk", int, 1),
            Key("relaxed_delta", float, 0.0),
            Key("use_mtp_vanilla", bool, False),
        ),
    ),
    Decoding(
        "NGram",
        "NGramDecodingConfig",
        (
            *_COMMON,
            _LENGTH,
            Key("max_matching_ngram_size", int, 2),
            Key("is_keep_all", bool, True),
            Key("is_use_oldest", bool, True),
            Key("is_public_pool", bool, True),
        ),
    ),
    Decoding("UserProvided", "UserProvidedDecodingConfig", _OWN, gone=DISCRIMINATED),
    Decoding("User_Provided", "UserProvidedDecodingConfig", _OWN, since=DISCRIMINATED),
    Decoding(
        "SaveState",
        "SaveHiddenStatesDecodingConfig",
        (*_DRAFT_MODEL, _LENGTH, Key("output_directory", str, REQUIRED), Key("write_interval", int, 20)),
        since="1.2.0rc0",
    ),
    Decoding("PARD", "PARDDecodingConfig", (*_COMMON, _LENGTH), since=DISCRIMINATED),
    Decoding("AUTO", "AutoDecodingConfig", (*_COMMON, _LENGTH)),
    Decoding("SA", "SADecodingConfig", (*_COMMON, _LENGTH), since=TRIMMED),
    Decoding("DFlash", "DFlashDecodingConfig", (*_COMMON, _LENGTH), since=TRIMMED),
    Decoding("DSpark", "DSparkDecodingConfig", (*_COMMON, _LENGTH, *_DSPARK), since=TRIMMED),
    Decoding("Medusa", "MedusaDecodingConfig", (*_DRAFT_MODEL, _LENGTH), gone=DISCRIMINATED, pytorch=False),
    Decoding("Lookahead", "LookaheadDecodingConfig", (*_DRAFT_MODEL, _LENGTH), gone=DISCRIMINATED, pytorch=False),
)
