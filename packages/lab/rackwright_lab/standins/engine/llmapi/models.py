"""pydantic models built from the data in `keys`, one set for each version."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator

from .. import gpus
from ..versions import within
from . import keys
from .keys import Decoding, Key, Section

Model = type[BaseModel]


class Strict(BaseModel):
    """Refuses unknown keys at any depth, as the real options do."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=(), arbitrary_types_allowed=True)


def _graph_sizes(largest: int, padding: bool) -> list[int]:
    sizes = [1, 2, 4, *range(8, 129, 8)] if padding else [*range(1, 32), 32, 64, 128]
    while sizes[-1] * 2 <= largest:
        sizes.append(sizes[-1] * 2)
    return sorted({size for size in sizes if size <= largest} | {largest})


def _check_graph(value: Any) -> Any:
    sizes, largest = value.batch_sizes, value.max_batch_size
    if sizes and largest and sorted(sizes) != _graph_sizes(largest, value.enable_padding):
        raise ValueError("Please don't set both cuda_graph_config.batch_sizes and cuda_graph_config.max_batch_size.")
    return value


def _check_draft(value: Any) -> Any:
    if value.draft() is None:
        raise ValueError("Draft model must be provided: speculative_model_dir is not set.")
    return value


class DecodingBase(Strict):
    """What all kinds of speculative decoding share."""

    decoding_type: str = "AUTO"

    def draft(self) -> str | None:
        """Return the draft checkpoint's folder, under either of its two names, or None."""
        return getattr(self, "speculative_model", None) or getattr(self, "speculative_model_dir", None)


def _after(check: Callable[[Any], Any]) -> Any:
    return model_validator(mode="after")(check)


def _section(title: str, fields: Iterable[tuple[Key, Any]], checks: dict[str, Any], base: Model = Strict) -> Model:
    spec: dict[str, Any] = {key.name: (kind, key.default) for key, kind in fields}
    return create_model(title, __base__=base, __validators__=checks, **spec)


def _known(version: str, table: Iterable[Key]) -> list[Key]:
    return [key for key in table if within(version, key.since, key.gone)]


def _plain(title: str, version: str, table: Iterable[Key], **checks: Callable[[Any], Any]) -> Model:
    fields = [(key, key.kind) for key in _known(version, table)]
    return _section(title, fields, {name: _after(check) for name, check in checks.items()})


def _moe(version: str) -> Model:
    names = tuple(name for name, since, gone in keys.MOE_BACKENDS if within(version, since, gone))
    backend = Key("backend", Literal[names], "AUTO" if "AUTO" in names else "CUTLASS")
    return _plain("MoeConfig", version, (backend, *keys.MOE))


@lru_cache
def decodings(version: str) -> dict[str, Model]:
    """Return the models of speculative decoding that `version` knows, by their tag, in its order."""
    return {one.tag: _decoding(version, one) for one in keys.DECODINGS if within(version, one.since, one.gone)}


def _decoding(version: str, one: Decoding) -> Model:
    fields = [(key, key.kind) for key in _known(version, one.keys)]
    checks: dict[str, Any] = {}
    if one.tag in keys.DRAFTED:
        checks["draft_given"] = _after(_check_draft)
    tag = (Key("decoding_type", Literal[one.tag], one.tag), Literal[one.tag])
    return _section(one.title, [tag, *fields], checks, DecodingBase)


def decoding_from_dict(version: str, data: dict[str, Any]) -> DecodingBase:
    """Build one decoding section as versions before the discriminated union did.

    Raises ValueError for an unknown `decoding_type` or, before typed sections, an unknown key.
    """
    wanted = dict(data)
    tag = data.get("decoding_type")
    models = decodings(version)
    if tag not in models:
        raise ValueError(f"Invalid decoding type: {tag}")
    if tag == "Eagle" and within(version, gone=keys.TYPED_DECODING):
        _set_one_by_one(models[tag], wanted)
    return models[tag](**wanted)  # type: ignore[return-value]


def _set_one_by_one(model: Model, data: dict[str, Any]) -> None:
    for name in data:
        if name not in model.model_fields:
            raise ValueError(f'"EagleDecodingConfig" object has no field "{name}"')


def _speculative(version: str) -> Any:
    if within(version, since=keys.DISCRIMINATED):
        union: Any = None
        for model in decodings(version).values():
            union = model if union is None else union | model
        return Annotated[union, Field(discriminator="decoding_type")]
    convert = BeforeValidator(lambda data: decoding_from_dict(version, data) if isinstance(data, dict) else data)
    return Annotated[DecodingBase, convert]


def _check_gpu(value: Any) -> Any:
    if gpus.count() == 0:
        raise ValueError("No GPU devices found on the node")
    return value


def _check_backend(value: Any) -> Any:
    wanted = value.speculative_config
    if wanted is None:
        return value
    fit = {one.tag: one.pytorch for one in keys.DECODINGS}
    if not fit[wanted.decoding_type]:
        raise ValueError(f"Decoding type {wanted.decoding_type} is not supported by the PyTorch backend")
    return value


@lru_cache
def torch_llm_args(version: str) -> Model:
    """Return the strict model of the whole options file (`TorchLlmArgs`) for a version."""
    sections: dict[str, Any] = {
        "KvCacheConfig": _plain("KvCacheConfig", version, keys.KV_CACHE),
        "CudaGraphConfig": _plain("CudaGraphConfig", version, keys.CUDA_GRAPH, sizes_agree=_check_graph),
        "MoeConfig": _moe(version),
        "AttentionDpConfig": _plain("AttentionDpConfig", version, keys.ATTENTION_DP),
        "SpeculativeConfig": _speculative(version),
    }
    fields = [_resolved(key, sections) for key in _known(version, keys.TORCH_LLM_ARGS)]
    checks = {"gpu_visible": _after(_check_gpu), "backend_fits": _after(_check_backend)}
    return _section("TorchLlmArgs", fields, checks)


def _resolved(key: Key, sections: dict[str, Any]) -> tuple[Key, Any]:
    if not isinstance(key.kind, Section):
        return key, key.kind
    kind = sections[key.kind.name]
    # An absent section takes its own defaults; pydantic validates a default only with validate_default.
    default: Any = None if key.kind.nullable and key.default is None else {}
    filled = Key(key.name, kind, Field(default=default, validate_default=True))
    return filled, (kind | None if key.kind.nullable else kind)
