"""Loading: the checks and the time between the bound socket and the first answer."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from . import gpus, log
from .checkpoint import Checkpoint, load_shards, open_checkpoint, resolve
from .faults import Faults
from .llmapi import mpi_ranks

_BYTES_PER_SECOND = 50_000_000
_STAGES = ("Loading weights concurrently", "Running autotuner warmup", "Capturing CUDA graphs")
_OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.29 GiB. GPU 0 has a total capacity of 178.35 GiB "
    "of which 1.12 GiB is free. Including non-PyTorch memory, this process has 177.21 GiB memory in use."
)


class OutOfMemoryError(RuntimeError):
    """What the fault `die_at_end_of_load` raises."""


def load(options: dict[str, Any], faults: Faults) -> Checkpoint:
    """Check GPUs and checkpoints and take the time that loading takes; return the base model.

    Raises what the real engine ends with: missing or broken files, too few GPUs, a MoE backend that the GPU lacks.
    """
    _check_parallelism(options)
    base = open_checkpoint(resolve(str(options["model"])))
    drafted = _open_draft(options, base)
    _check_moe(options, base)
    for checkpoint in filter(None, (base, drafted)):
        load_weights(checkpoint)
    take_time(base.bytes_on_disk(), faults)
    return base


def _check_parallelism(options: dict[str, Any]) -> None:
    tensor, experts = options["tensor_parallel_size"], options.get("moe_expert_parallel_size")
    world = tensor * options["pipeline_parallel_size"] * options["context_parallel_size"]
    visible = gpus.count()
    log.emit(f"world size {world}, {visible} GPU(s) visible")
    if mpi_ranks.are_there():
        mpi_ranks.check(world, str(options["model"]))
    elif world > visible:
        raise RuntimeError(f"CUDA error: invalid device ordinal (world size {world}, but {visible} GPU(s) are visible)")
    if experts and tensor % experts:
        raise ValueError(f"tensor_parallel_size {tensor} is not divisible by moe_expert_parallel_size {experts}")


def _open_draft(options: dict[str, Any], base: Checkpoint) -> Checkpoint | None:
    section = options.get("speculative_config") or {}
    folder = section.get("speculative_model") or section.get("speculative_model_dir")
    if not folder:
        return None
    return open_draft(str(folder), base, eagle=str(section["decoding_type"]).startswith("Eagle"))


def open_draft(folder: str, base: Checkpoint, eagle: bool) -> Checkpoint:
    """Return the draft model at `folder`; an Eagle head shares its target's width too.

    Raises ValueError when it was not made for `base`, OSError when it is not there.
    """
    draft = open_checkpoint(resolve(folder))
    for name in ["vocab_size"] + ["hidden_size"] * eagle:
        if draft.config.get(name, base.config.get(name)) != base.config.get(name):
            raise ValueError(
                f"Draft model does not match: {name} is {draft.config[name]}, target has {base.config.get(name)}"
            )
    return draft


def _check_moe(options: dict[str, Any], base: Checkpoint) -> None:
    backend = options["moe_config"]["backend"]
    reason = gpus.MOE_UNFIT.get((gpus.compute_capability(), backend))
    if base.is_gpt_oss and reason:
        raise RuntimeError(reason)


def load_weights(checkpoint: Checkpoint) -> None:
    """Read each weight file as far as its length tells whether it is whole. Raises SafetensorError."""
    total = len(checkpoint.shards)
    for done, shard in enumerate(load_shards(checkpoint), start=1):
        log.emit(f"Loading weights: {100 * done // total:3d}%| {done}/{total} {shard.name}")


def take_time(weight_bytes: int, faults: Faults, stages: tuple[str, ...] = _STAGES) -> None:
    """Wait as long as loading takes, saying which stage it is at. Raises OutOfMemoryError when a fault says so."""
    active = faults.active()
    usual = float(os.environ.get("TRTLLM_STANDIN_LOAD_SECONDS", 1 + weight_bytes / _BYTES_PER_SECOND))
    seconds = float(active.get("load_seconds", usual))
    began = time.monotonic()
    for stage in stages:
        log.emit(f"{stage}...")
        time.sleep(seconds / len(stages))
    while faults.active().get("never_ready"):
        log.emit(f"{stages[-2]}...")
        time.sleep(1)
    if "die_at_end_of_load" in faults.active():
        raise OutOfMemoryError(_OUT_OF_MEMORY)
    log.emit(f"Model init total -- {time.monotonic() - began:.2f}s")


def model_name(model: str) -> str:
    """Return what /v1/models answers: a folder's own name, or the string that was given."""
    folder = Path(model)
    return folder.name if folder.is_dir() else model


def exit_at_once(_number: int, _frame: object) -> None:
    """Signal handler: end with 0, whatever is going on (as PID 1 the default would be to ignore the signal)."""
    sys.exit(0)
