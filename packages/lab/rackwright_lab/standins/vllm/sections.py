"""The sections that flags carry as JSON; unknown keys are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Method = Literal["ngram", "medusa", "mlp_speculator", "draft_model", "suffix", "eagle", "eagle3", "mtp"]
Positive = Annotated[int, Field(gt=0)]
EAGLE = ("eagle", "eagle3")
LOOKUPS = ("ngram", "ngram_gpu", "suffix")
"""Methods that find the next words where they stood before."""
ALONE = ("mtp", "dspark")
"""Methods whose layers are part of the model itself where no other model is given."""
ASYNCHRONOUS = (*EAGLE, "mtp")
"""Methods that go together with asynchronous scheduling."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class SpeculativeConfig(_Section):
    """`--speculative-config`."""

    method: Method | None = None
    model: str | None = None
    num_speculative_tokens: Positive | None = None
    draft_tensor_parallel_size: Positive | None = None
    quantization: str | None = None
    max_model_len: Positive | None = None
    revision: str | None = None
    code_revision: str | None = None
    enforce_eager: bool | None = None
    disable_by_batch_size: Positive | None = None
    disable_padded_drafter_batch: bool = False
    speculative_token_tree: str | None = None
    prompt_lookup_max: Positive | None = None
    prompt_lookup_min: Positive | None = None


class PassConfig(_Section):
    """`pass_config` of `--compilation-config`."""

    fuse_norm_quant: bool | None = None
    fuse_act_quant: bool | None = None
    fuse_attn_quant: bool | None = None
    eliminate_noops: bool = True
    enable_sp: bool | None = None
    fuse_gemm_comms: bool | None = None
    fuse_allreduce_rms: bool | None = None
    enable_qk_norm_rope_fusion: bool = False
    fi_allreduce_fusion_max_size_mb: float | None = None


class CompilationConfig(_Section):
    """`--compilation-config`."""

    level: int | None = None
    mode: int | str | None = None
    backend: str = ""
    cache_dir: str = ""
    debug_dump_path: str | None = None
    custom_ops: list[str] = Field(default_factory=list)
    splitting_ops: list[str] | None = None
    compile_sizes: list[int | str] | None = None
    compile_mm_encoder: bool = False
    inductor_compile_config: dict[str, Any] = Field(default_factory=dict)
    inductor_passes: dict[str, str] = Field(default_factory=dict)
    cudagraph_mode: str | None = None
    cudagraph_num_of_warmups: int = 0
    cudagraph_capture_sizes: list[int] | None = None
    max_cudagraph_capture_size: int | None = None
    cudagraph_copy_inputs: bool = False
    cudagraph_specialize_lora: bool = True
    use_inductor_graph_partition: bool | None = None
    pass_config: PassConfig = Field(default_factory=PassConfig)
