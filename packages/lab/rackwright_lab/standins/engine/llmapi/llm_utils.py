"""How the command line and the YAML file become one set of options; the rule changed three times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from .. import __version__, log
from ..versions import within
from . import keys
from .models import decoding_from_dict

KV_DEEP_MERGE = "1.3.0rc1"
"""From here on a YAML kv_cache_config is merged into the command line's, key by key."""
CLI_WINS = "1.3.0rc27"
"""From here on an option that was typed beats the YAML file."""
SIZES_FROM_YAML = "1.2.0rc0"
"""Before this, the command line's three sizes beat the YAML file's, because build_config overrode them."""
_SIZES = ("max_batch_size", "max_num_tokens", "max_seq_len")


def update_llm_args_with_extra_dict(
    llm_args: dict[str, Any],
    llm_args_dict: dict[str, Any],
    extra_llm_api_options: str | None = None,
    *,
    version: str = __version__,
    typed: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Return the options that the engine is built with.

    `llm_args` come from the command line, `llm_args_dict` from the YAML file, `typed` names the options that
    the user really gave on the command line. Raises what the real function raises on a null or wrong section.
    """
    extra = dict(llm_args_dict)
    if "speculative_config" in extra and within(version, gone=keys.DISCRIMINATED):
        extra["speculative_config"] = decoding_from_dict(version, extra["speculative_config"])
    merged = llm_args | extra
    if within(version, since=KV_DEEP_MERGE) and "kv_cache_config" in extra:
        merged["kv_cache_config"] = llm_args.get("kv_cache_config", {}) | extra["kv_cache_config"]
    if within(version, gone=SIZES_FROM_YAML):
        merged |= {name: llm_args[name] for name in _SIZES if llm_args.get(name) is not None}
    if within(version, since=CLI_WINS):
        merged |= _typed_values(llm_args, extra, typed, extra_llm_api_options)
    return _trimmed(merged, version)


def _typed_values(
    llm_args: dict[str, Any], extra: dict[str, Any], typed: frozenset[str], file: str | None
) -> dict[str, Any]:
    values = {name: llm_args[name] for name in typed if name in llm_args and name in extra}
    if "kv_cache_config" in values:
        values["kv_cache_config"] = extra["kv_cache_config"] | llm_args["kv_cache_config"]
    for name in values:
        log.emit(f"{name}: the command line's value is used, that of {file} is ignored.", "W")
    return values


def _trimmed(merged: dict[str, Any], version: str) -> dict[str, Any]:
    if within(version, since=keys.DISCRIMINATED):
        merged.pop("build_config", None)
        _warn_eagle(merged.get("speculative_config"))
    if within(version, since=keys.TRIMMED) and "sampler_type" in merged:
        if merged["sampler_type"] not in ("auto", "TorchSampler"):
            raise ValueError(f"sampler_type {merged['sampler_type']} was removed")
        log.emit("sampler_type is deprecated and ignored.", "W")
        del merged["sampler_type"]
    return merged


def _warn_eagle(section: Any) -> None:
    if isinstance(section, dict) and section.get("decoding_type") == "Eagle":
        log.emit("decoding_type 'Eagle' is deprecated on the PyTorch backend and read as 'Eagle3'.", "W")


def update_llm_args_with_extra_options(
    llm_args: dict[str, Any], extra_llm_api_options: str | None, *, typed: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Merge the YAML file at that path (None: no file) into the command line's options."""
    extra: dict[str, Any] = {}
    if extra_llm_api_options is not None:
        extra = yaml.safe_load(Path(extra_llm_api_options).read_text(encoding="utf-8"))
    return update_llm_args_with_extra_dict(llm_args, extra or {}, extra_llm_api_options, typed=typed)
