"""Variants that need no file: a draft length (`draft_3`), a size, a published draft model. Pure but for a data file.

`lengths` and `heads` stand for all of them, the endpoint without its draft first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from rackwright.messages import SettingsError
from rackwright.settings.host_settings import EndpointSettings
from rackwright_engines.fit.sizes import plan_of
from rackwright_engines.options.commandline import parsed
from rackwright_engines.quick_yaml import load_yaml

MODEL = "gpt-oss-120b"
"""The last part of the repository's name that the draft models were trained for."""
LENGTHS = (1, 2, 3, 4, 8)
LENGTH = re.compile(r"draft_([1-9]\d?)\Z")
SIZE = re.compile(r"(batch|tokens)_([1-9]\d{0,6})\Z")
SIZES = {
    "batch": {"tensorrt-llm": "max_batch_size", "vllm": "max-num-seqs", "sglang": "max-running-requests"},
    "tokens": {"tensorrt-llm": "max_num_tokens", "vllm": "max-num-batched-tokens", "sglang": "chunked-prefill-size"},
}
"""Requests that are worked on at once, and tokens of a step (SGLang: of a prompt's chunk), in each engine's words."""
BASE = "baseline"
NEXT = "next: write it under `variants` in the suite's file; nothing was measured"


@dataclass(frozen=True)
class Head:
    """A published draft model, and how many tokens it drafts at a time."""

    repository: str
    length: int


@cache
def heads() -> Mapping[str, Head]:
    """Return the published draft models by their short names."""
    text = (files("rackwright_bench") / "data" / "heads.yaml").read_text()
    return {name: Head(**row) for name, row in load_yaml(text).items()}


def groups() -> dict[str, tuple[str, ...]]:
    """Return what a single name of `--compare` stands for."""
    return {"heads": (BASE, *heads()), "lengths": (BASE, *(f"draft_{length}" for length in LENGTHS))}


def ready_names() -> list[str]:
    """Return the names of all of these variants; N stands for a number of yours."""
    return [*heads(), *(f"draft_{length}" for length in LENGTHS), *(f"{size}_N" for size in SIZES)]


def ready_keys(name: str, endpoint: EndpointSettings) -> dict[str, Any] | None:
    """Return a variant as settings of the endpoint over its own; None for any other name.

    Raises SettingsError for an endpoint that it does not fit.
    """
    if found := LENGTH.match(name):
        return {"engine": _length_keys(name, endpoint, int(found[1]))}
    if found := SIZE.match(name):
        return {"engine": _size_keys(name, endpoint, SIZES[found[1]][endpoint.engine_kind], int(found[2]))}
    if name in heads():
        return _head_keys(name, endpoint, heads()[name])
    return None


def _head_keys(name: str, endpoint: EndpointSettings, head: Head) -> dict[str, Any]:
    model = endpoint.model.repository if endpoint.model else "no model"
    if endpoint.draft is None or model.rpartition("/")[2] != MODEL:
        served = f"{model} without a draft model" if endpoint.draft is None else model
        raise _misfit(
            name, f"{head.repository} drafts for {MODEL} in the place of a draft model, and it serves {served}"
        )
    engine = _length_keys(name, endpoint, head.length)
    if plan_of(endpoint).value("layers") is not None:
        engine["speculative_config"]["eagle3_layers_to_capture"] = None
    return {"draft": {"repository": head.repository, "mount": endpoint.draft.mount}, "engine": engine}


def _size_keys(name: str, endpoint: EndpointSettings, key: str, size: int) -> dict[str, Any]:
    """Return the key with which the settings name the size, or the engine's own."""
    words = (argument.partition("=")[0].lstrip("-").replace("_", "-") for argument in endpoint.arguments)
    if key.replace("_", "-") in words:
        raise _misfit(name, f"its {key} is in `arguments`, which cannot be distinguished from others")
    written = {one.lstrip("-").replace("_", "-"): one for one in endpoint.engine}
    return {written.get(key.replace("_", "-"), key): size}


def _length_keys(name: str, endpoint: EndpointSettings, length: int) -> dict[str, Any]:
    """Return the engine's own keys for so many drafted tokens a step."""
    if not plan_of(endpoint).drafting:
        raise _misfit(name, "its engine's settings do not draft")
    return KEYS[endpoint.engine_kind](name, endpoint, length)


def _trtllm_keys(name: str, endpoint: EndpointSettings, length: int) -> dict[str, Any]:
    section = parsed(endpoint.engine.get("speculative_config"))
    if not isinstance(section, Mapping):
        raise _misfit(name, "its drafting is not in engine.speculative_config")
    key = "num_nextn_predict_layers" if "num_nextn_predict_layers" in section else "max_draft_len"
    return {"speculative_config": {key: length}}


def _vllm_keys(name: str, endpoint: EndpointSettings, length: int) -> dict[str, Any]:
    written = {key.lstrip("-").replace("_", "-"): key for key in endpoint.engine}
    key = written.get("speculative-config", "")
    section = parsed(endpoint.engine.get(key))
    if not isinstance(section, Mapping):
        raise _misfit(name, "its drafting is not in engine.speculative-config")
    changed = {**section, "num_speculative_tokens": length}
    return {key: json.dumps(changed, separators=(",", ":")) if isinstance(endpoint.engine[key], str) else changed}


def _sglang_keys(name: str, endpoint: EndpointSettings, length: int) -> dict[str, Any]:
    """Return the keys of a chain of drafts: as many steps, and one token more to check."""
    if "speculative-algorithm" not in endpoint.engine:
        raise _misfit(name, "its drafting is not in engine.speculative-algorithm")
    steps = {"speculative-num-steps": length, "speculative-num-draft-tokens": length + 1}
    return {**steps, "speculative-eagle-topk": 1}


KEYS = {"tensorrt-llm": _trtllm_keys, "vllm": _vllm_keys, "sglang": _sglang_keys}


def _misfit(name: str, why: str) -> SettingsError:
    return SettingsError(f"--compare {name}: does not fit this endpoint: {why}; {NEXT}", code="RW1527")
