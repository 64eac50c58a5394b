"""Input of the checks: an engine with its options, and the GPUs of its host, as plain values or as any like object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

EngineKind = Literal["tensorrt-llm", "vllm", "sglang"]


class Source(Protocol):
    """A model or a draft model."""

    @property
    def repository(self) -> str:
        """Return its name on the hub: `owner/name`."""


class Serving(Protocol):
    """One engine as it is to be started. Findings name these attributes in their paths."""

    @property
    def engine_kind(self) -> EngineKind:
        """Return which engine it is."""

    @property
    def version(self) -> str:
        """Return its version, or the tag of its image."""

    @property
    def image(self) -> str:
        """Return the name of its image with the tag; empty without an image."""

    @property
    def engine(self) -> Mapping[str, Any]:
        """Return the options of its file."""

    @property
    def arguments(self) -> Sequence[str]:
        """Return the words of its command line."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Return its environment."""

    @property
    def model(self) -> Source | None:
        """Return its model, if that is known."""

    @property
    def draft(self) -> Source | None:
        """Return what drafts for the model, if anything does."""

    @property
    def size(self) -> int:
        """Return how many hosts serve together."""


class GpuHost(Protocol):
    """Facts of the GPUs of a host, each several where it may be one of several."""

    @property
    def gpu_models(self) -> Sequence[str]:
        """Return product names, or parts of them."""

    @property
    def compute_capability(self) -> Sequence[str]:
        """Return compute capabilities where they are stated; else they follow from the products."""


@dataclass(frozen=True)
class NamedModel:
    """A model by its name on the hub."""

    repository: str


@dataclass(frozen=True)
class PlainServing:
    """One engine by plain values."""

    engine_kind: EngineKind
    version: str
    engine: Mapping[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    model: NamedModel | None = None
    draft: NamedModel | None = None
    image: str = ""
    size: int = 1


@dataclass(frozen=True)
class PlainGpus:
    """GPUs by their names."""

    gpu_models: tuple[str, ...] = ()
    compute_capability: tuple[str, ...] = ()
