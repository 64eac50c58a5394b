"""Rules between the keys of TensorRT-LLM's speculative_config: what its validators refuse, and what guides advise.

The code of the engine that each refusal rests on is in data/tensorrt-llm/checks.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rackwright_engines.finding import Finding, Level
from rackwright_engines.move import Move
from rackwright_engines.options.schema import VersionLine
from rackwright_engines.version import not_before

DRAFT_MODEL = ("speculative_model_dir", "speculative_model")
TWO_MODELS = frozenset({"Eagle", "Eagle3", "DraftTarget", "Draft_Target"})
"""Kinds of drafting that need a draft model and a length."""
LENGTH_ALONE = frozenset({"NGram", "PARD", "SA", "DFlash"})
"""Kinds of which the length alone is judged, once their kind is read by its tag: the others have it from the model."""
TREES = frozenset({"Eagle", "Eagle3"})
TENSORRT_ONLY = frozenset({"Medusa", "Lookahead"})
PYTORCH_ONLY = frozenset({"DraftTarget", "Draft_Target", "NGram", "MTP"})
WITHOUT_OVERLAP = frozenset({"DraftTarget", "Draft_Target", "NGram"})
DISCRIMINATED = "1.3.0rc4"
NEWEST_RULES = "1.3.0rc22"
TREES_OF_MTP = "1.3.0rc27"
LONGEST_POOLED = 64
"""Tokens at most of a suffix that is sought in a pool of all requests."""
NO_LENGTH = "must be above 0: how many tokens {drafter} proposes"


def drafting_rules(schema: VersionLine, options: Mapping[str, Any], section: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong between keys of a section; single keys were checked before and may be wrong themselves."""
    kind = str(section.get("decoding_type"))
    yield from _backends(kind, options.get("backend", "pytorch"))
    if kind in TWO_MODELS:
        yield from _draft_model(section)
    if kind in LENGTH_ALONE and not_before(schema.name, DISCRIMINATED) and not section.get("max_draft_len"):
        yield Finding(("max_draft_len",), NO_LENGTH.format(drafter=kind), code="RW0309")
    if kind in WITHOUT_OVERLAP and not options.get("disable_overlap_scheduler"):
        text = f"NVIDIA's guides pair {kind} with disable_overlap_scheduler: true"
        yield Finding(("decoding_type",), text, Level.WARN, code="RW0308")
    if kind == "Eagle" and not_before(schema.name, DISCRIMINATED):
        text = "is read as Eagle3, with a warning in the engine's log"
        yield Finding(("decoding_type",), text, Level.NOTE, Move(("decoding_type",), "Eagle3"), code="RW0308")
    if kind in TREES and not_before(schema.name, DISCRIMINATED):
        yield from _tree(schema, section)
    if kind == "MTP":
        yield from _mtp(schema, section)
    if kind == "SA" and not_before(schema.name, NEWEST_RULES):
        yield from _suffixes(section)
    yield from _schedule(schema, section)


def _backends(kind: str, backend: Any) -> Iterator[Finding]:
    if kind in TENSORRT_ONLY and backend == "pytorch":
        text = f"{kind} does not run on the PyTorch backend, which trtllm-serve uses"
        yield Finding(("decoding_type",), text, code="RW0308")
    if kind in PYTORCH_ONLY and backend not in ("pytorch", "_autodeploy", None):
        yield Finding(("decoding_type",), f"{kind} runs on the PyTorch backend only, not on {backend}", code="RW0308")


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
        yield Finding(("max_draft_len",), NO_LENGTH.format(drafter="the draft model"), code="RW0309")


def _tree(schema: VersionLine, section: Mapping[str, Any]) -> Iterator[Finding]:
    if not section.get("use_dynamic_tree"):
        return
    if section.get("eagle_choices") is not None:
        yield Finding(("use_dynamic_tree",), "and eagle_choices exclude each other: keep one", code="RW0373")
    if not section.get("dynamic_tree_max_topK"):
        text = "needs dynamic_tree_max_topK above 0: how many tokens it follows at each step"
        yield Finding(("use_dynamic_tree",), text, code="RW0373")
    elif not_before(schema.name, NEWEST_RULES):
        yield from _tree_size(section)


def _tree_size(section: Mapping[str, Any]) -> Iterator[Finding]:
    keys = ("max_total_draft_tokens", "max_draft_len", "dynamic_tree_max_topK")
    numbers = [section[key] for key in keys if is_number(section.get(key))]
    if len(numbers) < len(keys):
        return
    total, length, each = numbers
    if length and not length <= total <= each * length:
        text = f"must be from max_draft_len, {length}, to {each * length}, dynamic_tree_max_topK for each of them"
        yield Finding(("max_total_draft_tokens",), f"{text}; it is {total}", code="RW0373")


def _mtp(schema: VersionLine, section: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong with a model's own drafting, whose length is the model's where none is given."""
    key = "max_draft_len" if section.get("max_draft_len") is not None else "num_nextn_predict_layers"
    if section.get(key) == 0 and not_before(schema.name, NEWEST_RULES):
        yield Finding((key,), NO_LENGTH.format(drafter="the model"), code="RW0309")
    if not section.get("use_dynamic_tree") or not not_before(schema.name, TREES_OF_MTP):
        return
    if section.get(key) is None:
        yield Finding(("use_dynamic_tree",), "needs max_draft_len: how deep the tree is", code="RW0373")
    yield from _tree(schema, section)


def _suffixes(section: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong with drafts by suffixes of what was said."""
    size, pooled = section.get("max_matching_ngram_size", -1), section.get("enable_global_pool")
    if is_number(size) and size == 0:
        text = "must be above 0, or -1 for the longest match"
        yield Finding(("max_matching_ngram_size",), text, code="RW0382")
    elif is_number(size) and pooled and size != -1 and not 1 <= size <= LONGEST_POOLED:
        text = f"must be -1, or from 1 to {LONGEST_POOLED} with enable_global_pool; it is {size}"
        yield Finding(("max_matching_ngram_size",), text, code="RW0382")
    if section.get("global_pool_size") is not None and not pooled:
        yield Finding(("global_pool_size",), "counts with enable_global_pool: true alone", code="RW0382")


def _schedule(schema: VersionLine, section: Mapping[str, Any]) -> Iterator[Finding]:
    schedule, length = section.get("draft_len_schedule"), section.get("max_draft_len")
    if not isinstance(schedule, Mapping) or not schedule:
        return
    numbers = {batch: tokens for batch, tokens in schedule.items() if is_number(batch) and is_number(tokens)}
    newest = not_before(schema.name, NEWEST_RULES)
    if newest and section.get("max_concurrency") is not None:
        yield _scheduled("and max_concurrency exclude each other: keep one")
    if wrong := [f"{batch}: {tokens}" for batch, tokens in numbers.items() if batch < 1 or tokens < 0]:
        yield _scheduled(f"must have batch sizes from 1 on and lengths from 0 on; it has {wrong[0]}")
    elif not newest and 1 not in numbers:
        yield _scheduled(f"must say the length for batch size 1 as well: 1: {length}")
    elif numbers and is_number(length) and numbers[min(numbers)] != length:
        yield _scheduled(f"must begin with max_draft_len, {length}; it has {min(numbers)}: {numbers[min(numbers)]}")
    elif is_number(length) and any(tokens > length for tokens in numbers.values()):
        yield _scheduled(f"has lengths above max_draft_len, {length}")


def _scheduled(text: str) -> Finding:
    return Finding(("draft_len_schedule",), text, code="RW0309")


def is_number(value: Any) -> bool:
    """Return True for a whole number, which a switch is not."""
    return isinstance(value, int) and not isinstance(value, bool)
