"""The rows of the full gate that apply to an endpoint, by what its settings let it do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from rackwright.concerns.endpoint.proof.acceptance import KEEPS, KEEPS_LOOSELY
from rackwright.concerns.endpoint.proof.drafts import drafts_accepted
from rackwright.concerns.endpoint.proof.engine_steps import engine_steps
from rackwright.concerns.endpoint.proof.full import (
    HARMONY,
    TOOLS,
    calls_a_tool,
    channels,
    gpu_counters,
    no_loop,
    no_tools,
    streams,
)
from rackwright.concerns.endpoint.proof.plain_text import plain_text
from rackwright.concerns.endpoint.proof.proof_row import Question, Severity
from rackwright.concerns.endpoint.proof.sampling import sampled_answers
from rackwright.concerns.endpoint.proof.speed import speed
from rackwright.settings.host_settings import EndpointSettings
from rackwright_engines.fit.sizes import UNNAMED, plan_of

TOOL_KEYS = {"vllm": ("enable-auto-tool-choice", "tool-call-parser"), "sglang": ("tool-call-parser",)}
"""Flags with which a server parses tool calls; TensorRT-LLM does it for gpt-oss automatically."""
TOOL_PARSER = {"tensorrt-llm": "tool_parser"}
"""The same for other models."""


def abilities(endpoint: EndpointSettings) -> frozenset[str]:
    """Return an endpoint's capabilities by its settings."""
    found = {HARMONY: endpoint.harmony, TOOLS: not tool_keys_missing(endpoint)}
    return frozenset(name for name, has in found.items() if has)


def tool_keys_missing(endpoint: EndpointSettings) -> list[str]:
    """Options without which this server makes no tool calls, as its own command line names them."""
    always = TOOL_KEYS.get(endpoint.engine_kind, ())
    needed = always or (() if endpoint.harmony else (TOOL_PARSER[endpoint.engine_kind],))
    return [key for key in needed if not _is_given(endpoint, key)]


def _is_given(endpoint: EndpointSettings, key: str) -> bool:
    names = {key, key.replace("-", "_")}
    words = {argument.split("=")[0].removeprefix("--") for argument in endpoint.arguments if argument.startswith("--")}
    return bool(names & words) or any(endpoint.engine.get(name) for name in names)


def drafting_of(endpoint: EndpointSettings) -> str:
    """Return the endpoint's way of drafting, in its engine's own term; empty when it does not draft."""
    return plan_of(endpoint).drafting or (UNNAMED if endpoint.draft is not None else "")


def full_questions(base: str, model: str, endpoint: EndpointSettings, keeps: float = KEEPS) -> tuple[Question, ...]:
    """Return the rows of the full gate that apply to an endpoint.

    base: its URL on the host. model: the name that it serves. keeps: as `drafts_accepted` has it.
    """
    has, missing, method = abilities(endpoint), tool_keys_missing(endpoint), drafting_of(endpoint)
    kind = endpoint.engine_kind
    rows = (
        engine_steps(base, model, kind),
        streams(base, model),
        no_loop(base, model),
        channels(base, model),
        no_tools(kind, missing) if missing and endpoint.harmony else calls_a_tool(base, model),
        *((drafts_accepted(base, model, kind, method, keeps), sampled_answers(base, model, method)) if method else ()),
        *([plain_text(base, model)] if endpoint.gate.plain_text else []),
        speed(base, model),
    )
    return (*(row for row in rows if row.needs <= has), gpu_counters())


def compared_questions(
    base: str, model: str, endpoint: EndpointSettings, spec: Mapping[str, Any]
) -> tuple[Question, ...]:
    """Return the rows to ask of what serves now, so that the next release can be compared with it.

    spec: spec.json of what serves now. Other ways of drafting win in other texts, so their figures are not compared.
    """
    drafts_alike = drafting_of(endpoint) == _drafted_before(endpoint, spec)
    same_model = endpoint.model is not None and endpoint.model.repository in spec.get("models", {})
    rows = full_questions(base, model, endpoint, KEEPS if same_model else KEEPS_LOOSELY)
    return tuple(row for row in rows if _is_compared(row) and (row.name != "accepted drafts" or drafts_alike))


def _is_compared(row: Question) -> bool:
    return row.severity is Severity.NO_WORSE or row.compare is not None


def _drafted_before(endpoint: EndpointSettings, spec: Mapping[str, Any]) -> str | None:
    """Return how the release of a spec.json drafts, read as this endpoint's engine reads it; None if unknown."""
    try:
        options = yaml.safe_load(spec["files"][endpoint.engine_file])
        words = [str(argument) for argument in spec["argv"]]
        had = endpoint.draft if len(spec["models"]) > 1 else None
    except (KeyError, TypeError, yaml.YAMLError):
        return None
    if not isinstance(options, dict | None):
        return None
    return drafting_of(endpoint.model_copy(update={"engine": options or {}, "arguments": words, "draft": had}))
