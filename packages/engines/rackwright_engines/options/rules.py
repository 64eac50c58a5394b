"""Rules between TensorRT-LLM's options that no single key shows: what its validators refuse, and what they ignore."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from rackwright_engines.finding import Finding, Level
from rackwright_engines.move import Move
from rackwright_engines.options.commandline import spelled
from rackwright_engines.options.schema import VersionLine
from rackwright_engines.version import not_before

DRAFT = "speculative_config"
DRAFT_MODEL = ("speculative_model_dir", "speculative_model")
TWO_MODELS = frozenset({"Eagle", "Eagle3", "DraftTarget", "Draft_Target"})
"""Kinds of drafting that need a draft model and a length."""
TENSORRT_ONLY = frozenset({"Medusa", "Lookahead"})
PYTORCH_ONLY = frozenset({"DraftTarget", "Draft_Target", "NGram", "MTP"})
WITHOUT_OVERLAP = frozenset({"DraftTarget", "Draft_Target", "NGram"})
DISCRIMINATED = "1.3.0rc4"
NEWEST_RULES = "1.3.0rc22"


def rules(schema: VersionLine, options: Mapping[str, Any]) -> list[Finding]:
    """Return what is wrong between keys; single keys were checked before and may be wrong themselves."""
    found = [*_graphs(schema, options), *_attention_dp(options), *_lengths(options), *_batches(options)]
    section = options.get(DRAFT)
    if isinstance(section, Mapping):
        found += [finding.below(DRAFT) for finding in _drafting(schema, options, section)]
    return found


def switches(schema: VersionLine, options: Mapping[str, Any]) -> list[Finding]:
    """Keys of vLLM's file that are false: it makes words of its command line of the file, and leaves those out."""
    off = {str(name): spelled(schema, str(name)) for name, value in options.items() if value is False}
    flags = {name: meant for name, meant in off.items() if meant and meant.key.type == "bool"}
    lost = {name: meant for name, meant in flags.items() if meant.negated or not schema.negates}
    return [_left_out(name, "" if meant.negated else f"no-{meant.key.name}") for name, meant in lost.items()]


def _left_out(name: str, opposite: str) -> Finding:
    text = f"vLLM leaves out what is false in its file{f': write `{opposite}: true`, or nothing' if opposite else ''}"
    return Finding((name,), text, Level.WARN, code="RW0322")


def _graphs(schema: VersionLine, options: Mapping[str, Any]) -> Iterator[Finding]:
    graphs = options.get("cuda_graph_config")
    if not isinstance(graphs, Mapping):
        return
    sizes, largest = graphs.get("batch_sizes"), graphs.get("max_batch_size")
    if not isinstance(sizes, list) or not sizes or not _is_number(largest) or not largest:
        return
    padding, any_list = bool(graphs.get("enable_padding")), not_before(schema.name, DISCRIMINATED)
    if not any_list and all(map(_is_number, sizes)) and sorted(sizes) != generated_sizes(largest, padding):
        text = f"must not be set together with max_batch_size: {largest}, which makes its own list: keep one of them"
        yield Finding(("cuda_graph_config", "batch_sizes"), text, code="RW0310")
    elif all(map(_is_number, sizes)) and max(sizes) != largest:
        text = f"must be the largest of batch_sizes, {max(sizes)}, or be left out; it is {largest}"
        yield Finding(("cuda_graph_config", "max_batch_size"), text, code="RW0310")


def generated_sizes(largest: int, padding: bool) -> list[int]:
    """Return the batch sizes for which the engine captures graphs on its own, up to and with `largest`."""
    sizes = {1, 2, 4, *range(8, 129, 8)} if padding else {*range(1, 33), 64, 128}
    sizes |= {2**power for power in range(8, math.ceil(math.log2(largest)) if largest > 1 else 0)}
    return sorted({size for size in sizes if size <= largest} | {largest})


def _attention_dp(options: Mapping[str, Any]) -> Iterator[Finding]:
    if options.get("attention_dp_config") is not None and not options.get("enable_attention_dp"):
        yield Finding(
            ("attention_dp_config",), "does nothing without enable_attention_dp: true", Level.WARN, code="RW0315"
        )


def _lengths(options: Mapping[str, Any]) -> Iterator[Finding]:
    sequence, tokens = options.get("max_seq_len"), options.get("max_num_tokens", 8192)
    if _is_number(sequence) and _is_number(tokens) and sequence > tokens and not options.get("enable_chunked_prefill"):
        text = (
            f"{sequence} is more than max_num_tokens, {tokens}: prompts longer than that are refused"
            " unless enable_chunked_prefill is true"
        )
        yield Finding(("max_seq_len",), text, Level.WARN, code="RW0322")


def _batches(options: Mapping[str, Any]) -> Iterator[Finding]:
    graphs, batch = options.get("cuda_graph_config"), options.get("max_batch_size")
    largest = graphs.get("max_batch_size") if isinstance(graphs, Mapping) else None
    if not _is_number(largest) or not _is_number(batch) or not largest or largest == batch:
        return
    below = "batches above it run without a CUDA graph, slowly"
    above = "graphs above the batch limit only cost memory and start-up time"
    text = f"is {largest} and the endpoint's max_batch_size is {batch}: {below if largest < batch else above}"
    yield Finding(("cuda_graph_config", "max_batch_size"), text, Level.WARN, code="RW0310")


def _drafting(schema: VersionLine, options: Mapping[str, Any], section: Mapping[str, Any]) -> Iterator[Finding]:
    kind = str(section.get("decoding_type"))
    backend = options.get("backend", "pytorch")
    if kind in TWO_MODELS:
        yield from _draft_model(section)
    if kind in TENSORRT_ONLY and backend == "pytorch":
        yield Finding(
            ("decoding_type",), f"{kind} does not run on the PyTorch backend, which trtllm-serve uses", code="RW0308"
        )
    if kind in PYTORCH_ONLY and backend not in ("pytorch", "_autodeploy", None):
        yield Finding(("decoding_type",), f"{kind} runs on the PyTorch backend only, not on {backend}", code="RW0308")
    if kind in WITHOUT_OVERLAP and not options.get("disable_overlap_scheduler"):
        text = f"NVIDIA's guides pair {kind} with disable_overlap_scheduler: true"
        yield Finding(("decoding_type",), text, Level.WARN, code="RW0308")
    if kind == "Eagle" and not_before(schema.name, DISCRIMINATED):
        text = "is read as Eagle3, with a warning in the engine's log"
        yield Finding(("decoding_type",), text, Level.NOTE, Move(("decoding_type",), "Eagle3"), code="RW0308")
    yield from _schedule(schema, section)


def _draft_model(section: Mapping[str, Any]) -> Iterator[Finding]:
    given = [key for key in DRAFT_MODEL if section.get(key)]
    if not given:
        yield Finding(
            ("speculative_model_dir",), "is missing: the draft model's folder in the container", code="RW0307"
        )
    if len(given) > 1 and section[given[0]] != section[given[1]]:
        yield Finding((given[1],), f"and {given[0]} are the same option under two names: keep one", code="RW0306")
    length = section.get("max_draft_len")
    if length is None or length == 0:
        yield Finding(("max_draft_len",), "must be above 0: how many tokens the draft model proposes", code="RW0309")


def _schedule(schema: VersionLine, section: Mapping[str, Any]) -> Iterator[Finding]:
    schedule, length = section.get("draft_len_schedule"), section.get("max_draft_len")
    if not isinstance(schedule, Mapping) or not schedule:
        return
    numbers = {batch: tokens for batch, tokens in schedule.items() if _is_number(batch) and _is_number(tokens)}
    newest = not_before(schema.name, NEWEST_RULES)
    if newest and section.get("max_concurrency") is not None:
        yield Finding(("draft_len_schedule",), "and max_concurrency exclude each other: keep one", code="RW0309")
    if not newest and 1 not in numbers:
        yield Finding(
            ("draft_len_schedule",), f"must say the length for batch size 1 as well: 1: {length}", code="RW0309"
        )
    elif numbers and _is_number(length) and numbers[min(numbers)] != length:
        first = f"{min(numbers)}: {numbers[min(numbers)]}"
        yield Finding(
            ("draft_len_schedule",), f"must begin with max_draft_len, {length}; it has {first}", code="RW0309"
        )
    elif _is_number(length) and any(tokens > length for tokens in numbers.values()):
        yield Finding(("draft_len_schedule",), f"has lengths above max_draft_len, {length}", code="RW0309")


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
