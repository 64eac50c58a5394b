"""Everything that is known of one engine with its options, its model and its GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from rackwright_engines.data import table
from rackwright_engines.finding import Finding, Level
from rackwright_engines.fit.gpu import capabilities
from rackwright_engines.fit.known_bad import check_known_bad
from rackwright_engines.fit.known_drafts import check_draft
from rackwright_engines.fit.length import check_length
from rackwright_engines.fit.memory import check_memory
from rackwright_engines.fit.other_engine import image_facts
from rackwright_engines.fit.sizes import EngineOptions, plan_of
from rackwright_engines.fit.unified import check_unified
from rackwright_engines.key_path import dotted
from rackwright_engines.options.check import check_arguments, check_options
from rackwright_engines.options.inexact import DECIDES
from rackwright_engines.options.schema import VersionLine
from rackwright_engines.serving import GpuHost, Serving


def check_serving(
    serving: Serving, hardware: GpuHost, image: VersionLine | None = None, judge: str = DECIDES
) -> list[Finding]:
    """Return what is wrong, with paths that begin with an attribute of `serving`.

    image: what the very image accepts, where it was asked. judge: who decides what is not known here, in words.
    """
    plan = plan_of(serving)
    facts = image_facts(serving, judge)
    found = check_options(plan.engine_kind, plan.version, serving.engine, image, facts, serving.arguments)
    written = check_arguments(plan.engine_kind, plan.version, serving.arguments, image, facts)
    return [
        *(one.below("engine") for one in found),
        *(one.below("arguments") for one in written),
        *_experts(plan),
        *_command_line(serving),
        *check_draft(serving, plan),
        *check_length(serving, plan),
        *check_memory(serving, plan, hardware),
        *check_unified(serving, plan, hardware),
        *check_known_bad(serving, hardware),
        *_moe(serving, plan, hardware),
    ]


def smaller(plan: EngineOptions, given: int) -> str:
    """Return the way out where there are too few GPUs: the sizes that fit, the experts' with them."""
    groups = math.prod(plan.sizes.values()) // plan.number("tp")
    tensor = given * plan.number("nodes") // groups
    if not tensor:
        return f"for {given} set it and {dotted(plan.path('pp'))} to 1"
    experts = plan.value("ep")
    uneven = isinstance(experts, int) and experts > 0 and tensor % experts
    also = f", and {dotted(plan.path('ep'))} to {tensor} with it" if uneven else ""
    return f"for {given} set it to {tensor}{also}"


def _experts(plan: EngineOptions) -> Iterator[Finding]:
    tensor, experts, shards = plan.number("tp"), plan.value("ep"), plan.value("moe_tp")
    if isinstance(experts, int) and experts > 0 and tensor % experts:
        yield Finding(plan.path("ep"), f"{experts} does not divide the tensor parallel size, {tensor}", code="RW0311")
    elif isinstance(experts, int) and isinstance(shards, int) and experts > 0 < shards and experts * shards != tensor:
        yield Finding(plan.path("ep"), f"{experts} x moe_tensor_parallel_size {shards} must be {tensor}", code="RW0311")


def _command_line(endpoint: Serving) -> Iterator[Finding]:
    """Warn of values on the command line: whether they or the YAML win has changed three times."""
    for index, argument in enumerate(endpoint.arguments if endpoint.engine_kind == "tensorrt-llm" else ()):
        option = argument.split("=")[0]
        if option in COMMAND_LINE:
            text = f"{option}: write it as engine.{COMMAND_LINE[option]}; whether it wins here depends on the version"
            yield Finding(("arguments", index), text, Level.WARN, code="RW0321")


COMMAND_LINE = {
    "--tp_size": "tensor_parallel_size",
    "--pp_size": "pipeline_parallel_size",
    "--ep_size": "moe_expert_parallel_size",
    "--max_batch_size": "max_batch_size",
    "--max_num_tokens": "max_num_tokens",
    "--max_seq_len": "max_seq_len",
    "--trust_remote_code": "trust_remote_code",
    "--kv_cache_free_gpu_memory_fraction": "kv_cache_config.free_gpu_memory_fraction",
    "--free_gpu_memory_fraction": "kv_cache_config.free_gpu_memory_fraction",
    "--kv_cache_dtype": "kv_cache_config.dtype",
}


def _moe(endpoint: Serving, plan: EngineOptions, hardware: GpuHost) -> Iterator[Finding]:
    backend = plan.effective("moe")
    experts = {row["repository"] for row in table("models") if row.get("moe") == "mxfp4"}
    if endpoint.model is None or endpoint.model.repository not in experts or backend in (None, "AUTO"):
        return
    for capability in capabilities(hardware):
        row: Mapping[str, str] = table("moe").get(capability, {"fails": ""})
        if backend in row["fails"]:
            right = f"use {row['auto']}" if row["auto"] else "no backend does"
            text = f"{backend} does not run on compute capability {capability}: {right}"
            yield Finding(plan.path("moe"), text, link=row["link"], code="RW0305", overridable=True)
