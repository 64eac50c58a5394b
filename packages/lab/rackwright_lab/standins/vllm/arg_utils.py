"""The engine's options as an object: made from keywords or from a command line, checked when the engine's config is."""

from __future__ import annotations

import argparse
import dataclasses
import os
from dataclasses import dataclass
from typing import Any

from ..common import flags as data
from ..engine import gpus
from ..engine.checkpoint import Checkpoint, open_checkpoint, resolve
from ..engine.loading import open_draft
from . import nodes
from .flags import ABSENT, ENGINE, TABLE
from .sections import ALONE, ASYNCHRONOUS, EAGLE, LOOKUPS, CompilationConfig, SpeculativeConfig


@dataclass(frozen=True)
class VllmConfig:
    """What the engine is built from: the models on disk, and the options in full."""

    base: Checkpoint
    draft: Checkpoint | None
    speculative: SpeculativeConfig | None
    options: dict[str, Any]

    @property
    def longest(self) -> int:
        """Return the longest sequence, in tokens."""
        return int(self.options["max_model_len"] or self.base.config.get("max_position_embeddings", 131072))


def _default(flag: data.Flag) -> Any:
    return dataclasses.field(default=flag.default)


_FIELDS = [("model", str, dataclasses.field(default="Qwen/Qwen3-0.6B"))]


class _Checked:
    """The checks; the fields are made from the table of flags."""

    def create_engine_config(self, headless: bool = False) -> VllmConfig:
        """Return the engine's config. Raises ValueError or RuntimeError with what does not fit, as the server does."""
        options = dataclasses.asdict(self)  # type: ignore[call-overload]
        check_values(options)
        nodes.check(options, headless)
        _check_gpus(options)
        base = open_checkpoint(resolve(options["model"]))
        _check_sizes(options, base)
        speculative = _speculative(options["speculative_config"])
        draft = _draft(speculative, options, base) if speculative else None
        return VllmConfig(base, draft, speculative, options)

    @staticmethod
    def add_cli_args(parser: Any) -> Any:
        """Give a parser the engine's flags."""
        parser.add_argument("--model", type=str, default="Qwen/Qwen3-0.6B")
        data.add(parser, ENGINE)
        return parser

    @classmethod
    def from_cli_args(cls, args: argparse.Namespace) -> Any:
        """Return the options that a command line sets."""
        names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        return cls(**{name: getattr(args, name) for name in names if hasattr(args, name)})


EngineArgs: Any = dataclasses.make_dataclass(
    "EngineArgs", [*_FIELDS, *((flag.field, Any, _default(flag)) for flag in (*ENGINE, *ABSENT))], bases=(_Checked,)
)
AsyncEngineArgs = EngineArgs


def check_values(options: dict[str, Any]) -> None:
    """Raise ValueError for a value outside of its choices, and for a section that this version does not have."""
    for flag in ENGINE:
        value = options[flag.field]
        if flag.choices and value is not None and data.FOLDS[flag.fold](value) not in flag.choices:
            raise ValueError(f"{flag.field}: Input should be {', '.join(map(repr, flag.choices))}")
    if not 0 < options["gpu_memory_utilization"] <= 1:
        raise ValueError("gpu_memory_utilization: Input should be greater than 0 and less than or equal to 1")
    if TABLE:
        TABLE.check(options)
    else:
        CompilationConfig.model_validate(options["compilation_config"] or {})


def _speculative(section: dict[str, Any] | None) -> SpeculativeConfig | None:
    if not section:
        return None
    # The keys of a version with a table were checked by it.
    return SpeculativeConfig.model_construct(**section) if TABLE else SpeculativeConfig.model_validate(section)


def _check_gpus(options: dict[str, Any]) -> None:
    visible = gpus.count()
    if visible == 0:
        raise RuntimeError("Failed to infer device type: no GPU is visible.")
    world = options["tensor_parallel_size"] * options["pipeline_parallel_size"] * options["data_parallel_size"]
    if -(-world // (options["nnodes"] or 1)) > visible:
        raise ValueError(f"World size ({world}) is larger than the number of available GPUs ({visible}) in this node.")


def _check_sizes(options: dict[str, Any], base: Checkpoint) -> None:
    derived, wanted = base.config.get("max_position_embeddings", 131072), options["max_model_len"]
    if wanted and wanted > derived and os.environ.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") != "1":
        raise ValueError(
            f"User-specified max_model_len ({wanted}) is greater than the derived max_model_len "
            f"(max_position_embeddings={derived} in the model's config.json)."
        )
    batched, sequences = options["max_num_batched_tokens"], options["max_num_seqs"]
    if batched and sequences and batched < sequences:
        raise ValueError(
            f"max_num_batched_tokens ({batched}) must be greater than or equal to max_num_seqs ({sequences})."
        )


def _draft(section: SpeculativeConfig, options: dict[str, Any], base: Checkpoint) -> Checkpoint | None:
    if section.num_speculative_tokens is None:
        raise ValueError("num_speculative_tokens must be provided with speculative model unless its config has it.")
    if options["async_scheduling"] and not TABLE and section.method not in ASYNCHRONOUS:
        raise ValueError(f"async scheduling is not supported with speculative decoding by {section.method}.")
    if section.draft_tensor_parallel_size not in (None, 1, options["tensor_parallel_size"]):
        raise ValueError(
            f"draft_tensor_parallel_size={section.draft_tensor_parallel_size} must be 1 or the target's "
            f"tensor_parallel_size={options['tensor_parallel_size']}."
        )
    if section.method in LOOKUPS or (section.method in ALONE and section.model is None):
        return None
    if section.model is None:
        raise ValueError("model must be provided in the speculative config for this method.")
    return open_draft(section.model, base, eagle=section.method in EAGLE)
