"""Known draft models, and whether an endpoint uses one as it must be used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rackwright_engines.data import table
from rackwright_engines.finding import Finding, Level
from rackwright_engines.fit.sizes import EngineOptions
from rackwright_engines.move import Move
from rackwright_engines.serving import Serving
from rackwright_engines.version import bare, not_before

DRAFT = ("draft", "repository")


@dataclass(frozen=True)
class Draft:
    """A draft model: what it drafts for, how, and who loads it."""

    repository: str
    revision: str
    target: str
    method: str
    context: str
    layers: list[int] | None
    length: int
    engines: dict[str, str]
    source: str
    slower: str = field(default="")
    slower_with: str = field(default="")
    """The engine that it was measured with; empty when that is the only one."""
    slower_beyond: str = field(default="")


def drafts() -> list[Draft]:
    """Return all known draft models."""
    return [Draft(**row) for row in table("drafts")]


def draft_of(endpoint: Serving) -> Draft | None:
    """Return the facts of an endpoint's draft model."""
    name = endpoint.draft.repository if endpoint.draft else None
    return next((draft for draft in drafts() if draft.repository == name), None)


def check_draft(endpoint: Serving, plan: EngineOptions) -> list[Finding]:
    """Return what does not fit between a draft model with facts, its target, the engine and the options."""
    draft = draft_of(endpoint)
    if draft is None:
        return list(_foreign_layers(endpoint, plan))
    return [*_target(endpoint, draft), *_engine(plan, draft), *_layers(plan, draft), *_length(plan, draft)]


def _target(endpoint: Serving, draft: Draft) -> Iterator[Finding]:
    repositories = {row["repository"] for row in table("models")}
    model = endpoint.model.repository if endpoint.model else ""
    if model in repositories and model != draft.target:
        yield Finding(DRAFT, f"{draft.repository} drafts for {draft.target}, not for {model}", code="RW0307")


def _engine(plan: EngineOptions, draft: Draft) -> Iterator[Finding]:
    since = draft.engines.get(plan.engine_kind)
    if since is None:
        text = f"{draft.repository} is not published with this engine; known: {_known(draft)}"
        yield Finding(DRAFT, text, Level.WARN, code="RW0307")
    elif not not_before(bare(plan.version), since):
        text = f"{draft.repository} is published for {since} and later, not for {plan.version}"
        yield Finding(DRAFT, text, Level.WARN, code="RW0307")


def _known(draft: Draft) -> str:
    return ", ".join(f"{engine} {since}" for engine, since in draft.engines.items()) or "none"


def _layers(plan: EngineOptions, draft: Draft) -> Iterator[Finding]:
    if plan.engine_kind != "tensorrt-llm":
        return
    path, found = plan.path("layers"), plan.value("layers")
    if draft.layers is not None and _sorted(found) != draft.layers:
        text = (
            f"{draft.repository} was trained on layers {draft.layers} of its target, so it does not load without them"
        )
        yield Finding(path, text, right=Move(path, draft.layers), code="RW0309")
    if draft.layers is None and found is not None:
        text = f"belongs to another draft model: {draft.repository} takes the engine's own choice of layers"
        yield Finding(path, text, right=Move(None), code="RW0309")


def _sorted(layers: Any) -> Any:
    return sorted(layers) if isinstance(layers, list | set | tuple) else layers


def _foreign_layers(endpoint: Serving, plan: EngineOptions) -> Iterator[Finding]:
    if endpoint.draft is None and plan.value("length") is not None and plan.value("layers") is not None:
        yield Finding(
            plan.path("layers"), "no `draft:` is set, so the draft model cannot be checked", Level.NOTE, code="RW0314"
        )


def _length(plan: EngineOptions, draft: Draft) -> Iterator[Finding]:
    length = plan.value("length")
    if draft.slower and draft.slower_with in ("", plan.engine_kind):
        yield Finding(
            DRAFT, f"was measured slower than no drafting: {draft.slower} ({draft.source})", Level.WARN, code="RW0317"
        )
    if draft.slower_beyond and isinstance(length, int) and length > draft.length:
        yield Finding(
            plan.path("length"),
            f"was measured slower: {draft.slower_beyond} ({draft.source})",
            Level.WARN,
            code="RW0317",
        )
    elif isinstance(length, int) and length != draft.length:
        text = f"is {length}; {draft.repository} is published with {draft.length} ({draft.source})"
        yield Finding(plan.path("length"), text, Level.NOTE, code="RW0317")
