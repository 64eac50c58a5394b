"""Check that a draft model's config.json fits its model's, before an engine has loaded either. Pure.

Refused is what an engine cannot load: weights of another width, taps of layers that the model does not have, a head
that the named method cannot read. What the two config.json do not show is left to the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rackwright_engines.fit.sizes import UNNAMED
from rackwright_engines.key_path import KeyPath

NESTED = (
    ("text_config",),
    ("llm_config",),
    ("language_config",),
    ("thinker_config", "text_config"),
    ("transformer_layer_config",),
)
"""Sections with the language model's numbers, of a multimodal model or a head in the form of vLLM's `speculators`."""
WIDTH, LAYERS, VOCABULARY = ("hidden_size", "n_embd", "d_model"), ("num_hidden_layers", "n_layer"), ("vocab_size",)
MODELS_WIDTH = ("target_hidden_size", "backbone_hidden_size")
"""Under which a draft that has a width of its own says its model's."""
TAPS = "eagle_aux_hidden_state_layer_ids"
HEADS = frozenset({"eagle", "eagle3"})
"""Methods whose draft reads its model's hidden states, by any engine's word in small letters."""


@dataclass(frozen=True)
class Misfit:
    """A misfit between a draft and its model, in words that follow `the draft's config.json`."""

    text: str
    certain: bool = True
    """False where an engine may load it anyway."""


def misfits(
    base: Mapping[str, Any], draft: Mapping[str, Any], engine_kind: str, method: str, any_vocabulary: bool = False
) -> list[Misfit]:
    """Return what does not fit. base, draft: the two config.json. method: how the options draft, in the engine's word.

    any_vocabulary: the options let the two have vocabularies of their own.
    """
    named = method.casefold()
    is_head = named in HEADS or (named == UNNAMED and "eagle" in _architecture(draft).casefold())
    whole = engine_kind == "vllm" and named == "draft_model" and not any_vocabulary
    found = [*_method(draft, engine_kind, named), *_vocabulary(base, draft, whole)]
    return [*_width(base, draft), *_taps(base, draft), *found] if is_head else found


def _width(base: Mapping[str, Any], draft: Mapping[str, Any]) -> Iterator[Misfit]:
    """Its first layer reads the model's hidden states; `target_hidden_size` is their width where its own differs."""
    wanted, key = _number(base, WIDTH), next((name for name in MODELS_WIDTH if _number(draft, (name,))), WIDTH[0])
    width = _number(draft, WIDTH if key == WIDTH[0] else (key,))
    if width and wanted and width != wanted:
        yield Misfit(f"has {key} {width}, and the model's has hidden_size {wanted}: it was made for another model")


def _taps(base: Mapping[str, Any], draft: Mapping[str, Any]) -> Iterator[Misfit]:
    layers, taps = _number(base, LAYERS), draft.get(TAPS)
    section = draft.get("eagle_config")
    taps = section.get(TAPS) if taps is None and isinstance(section, Mapping) else taps
    if not layers or not isinstance(taps, list) or not all(_is_number(tap) for tap in taps):
        return
    beyond = [tap for tap in taps if tap > layers]
    if beyond:
        yield Misfit(
            f"has {TAPS} {taps}, and the model's has num_hidden_layers {layers}: it reads layers that are not there"
        )


def _method(draft: Mapping[str, Any], engine_kind: str, named: str) -> Iterator[Misfit]:
    """Refuse an Eagle3 head as Eagle, or the reverse: vLLM names the class by the method; others accept no token."""
    architecture = _architecture(draft)
    kind = "eagle3" if "eagle3" in architecture.casefold() else "eagle" if "eagle" in architecture.casefold() else ""
    # TensorRT-LLM's word for an Eagle3 head is Eagle in some versions.
    if named in HEADS and kind and kind != named and engine_kind != "tensorrt-llm":
        yield Misfit(f"has the architecture {architecture}, and the options draft by {named}", engine_kind == "vllm")
    speculators = draft.get("speculators_model_type")
    if named in HEADS and isinstance(speculators, str) and speculators.casefold() not in ("", named):
        yield Misfit(f"has speculators_model_type {speculators}, and the options draft by {named}", certain=False)


def _vocabulary(base: Mapping[str, Any], draft: Mapping[str, Any], whole: bool) -> Iterator[Misfit]:
    """whole: vLLM drafts by a whole model (verify_equal_vocab_size_if_draft_model in its config/speculative.py)."""
    size, wanted = _number(draft, VOCABULARY), _number(base, VOCABULARY)
    few = _number(draft, ("draft_vocab_size",))
    if size and wanted and size != wanted:
        yield Misfit(f"has vocab_size {size}, and the model's has vocab_size {wanted}", certain=whole)
    if few and wanted and few > wanted:
        yield Misfit(f"has draft_vocab_size {few}, and the model's has vocab_size {wanted}", certain=False)


def _architecture(config: Mapping[str, Any]) -> str:
    names = config.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""


def _number(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """Return the number under the first of these names, where a language model's numbers are or else at the top."""
    for path in (*NESTED, ()):
        section = _section(config, path)
        for name in names:
            if _is_number(section.get(name)) and section[name] > 0:
                return int(section[name])
    return None


def _section(config: Mapping[str, Any], path: KeyPath) -> Mapping[str, Any]:
    for name in path:
        inner = config.get(str(name))
        if not isinstance(inner, Mapping):
            return {}
        config = inner
    return config


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
