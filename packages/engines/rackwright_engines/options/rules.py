"""Rules between TensorRT-LLM's options that no single key shows: what its validators refuse, and what they ignore."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from rackwright_engines.finding import Finding, Level
from rackwright_engines.options.commandline import spelled
from rackwright_engines.options.drafting import DISCRIMINATED, drafting_rules, is_number
from rackwright_engines.options.schema import VersionLine
from rackwright_engines.version import not_before

DRAFT = "speculative_config"


def rules(schema: VersionLine, options: Mapping[str, Any]) -> list[Finding]:
    """Return what is wrong between keys; single keys were checked before and may be wrong themselves."""
    found = [*_graphs(schema, options), *_attention_dp(options), *_lengths(options), *_batches(options)]
    section = options.get(DRAFT)
    if isinstance(section, Mapping):
        found += [finding.below(DRAFT) for finding in drafting_rules(schema, options, section)]
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
    if not isinstance(sizes, list) or not sizes or not is_number(largest) or not largest:
        return
    padding, any_list = bool(graphs.get("enable_padding")), not_before(schema.name, DISCRIMINATED)
    if not any_list and all(map(is_number, sizes)) and sorted(sizes) != generated_sizes(largest, padding):
        text = f"must not be set together with max_batch_size: {largest}, which makes its own list: keep one of them"
        yield Finding(("cuda_graph_config", "batch_sizes"), text, code="RW0310")
    elif all(map(is_number, sizes)) and max(sizes) != largest:
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
    if is_number(sequence) and is_number(tokens) and sequence > tokens and not options.get("enable_chunked_prefill"):
        text = (
            f"{sequence} is more than max_num_tokens, {tokens}: prompts longer than that are refused"
            " unless enable_chunked_prefill is true"
        )
        yield Finding(("max_seq_len",), text, Level.WARN, code="RW0322")


def _batches(options: Mapping[str, Any]) -> Iterator[Finding]:
    graphs, batch = options.get("cuda_graph_config"), options.get("max_batch_size")
    largest = graphs.get("max_batch_size") if isinstance(graphs, Mapping) else None
    if not is_number(largest) or not is_number(batch) or not largest or largest == batch:
        return
    below = "batches above it run without a CUDA graph, slowly"
    above = "graphs above the batch limit only cost memory and start-up time"
    text = f"is {largest} and the endpoint's max_batch_size is {batch}: {below if largest < batch else above}"
    yield Finding(("cuda_graph_config", "max_batch_size"), text, Level.WARN, code="RW0310")
