"""Which rows of the full gate apply to an endpoint, by what its settings let it do."""

from __future__ import annotations

from rackwright.engines.fit.sizes import UNNAMED, plan_of
from rackwright.proof.basic import Question, Severity
from rackwright.proof.drafts import drafts_accepted
from rackwright.proof.full import (
    HARMONY,
    TOOLS,
    calls_a_tool,
    channels,
    gpu_counters,
    no_loop,
    no_tools,
    speed,
    streams,
)
from rackwright.proof.sampling import sampled_answers
from rackwright.proof.steps import engine_steps
from rackwright.settings.model import EndpointSettings

TOOL_KEYS = {"vllm": ("enable-auto-tool-choice", "tool-call-parser"), "sglang": ("tool-call-parser",)}
"""What a server must be given before it makes tool calls of an answer; TensorRT-LLM does it for gpt-oss by itself."""
TOOL_PARSER = {"tensorrt-llm": "tool_parser"}
"""What it needs for other models."""


def abilities(endpoint: EndpointSettings) -> frozenset[str]:
    """What an endpoint can do by its settings."""
    found = {HARMONY: endpoint.harmony, TOOLS: not tool_keys_missing(endpoint)}
    return frozenset(name for name, has in found.items() if has)


def tool_keys_missing(endpoint: EndpointSettings) -> list[str]:
    """Options without which this server makes no tool calls, as its own command line names them."""
    always = TOOL_KEYS.get(endpoint.engine_kind, ())
    needed = always or (() if endpoint.harmony else (TOOL_PARSER[endpoint.engine_kind],))
    return [key for key in needed if not _is_given(endpoint, key)]


def _is_given(endpoint: EndpointSettings, key: str) -> bool:
    names = {key, key.replace("-", "_")}
    words = {word.split("=")[0].removeprefix("--") for word in endpoint.arguments if word.startswith("--")}
    return bool(names & words) or any(endpoint.engine.get(name) for name in names)


def drafting_of(endpoint: EndpointSettings) -> str:
    """How an endpoint drafts, in its engine's own word; empty when it does not."""
    return plan_of(endpoint).drafting or (UNNAMED if endpoint.draft is not None else "")


def full_questions(base: str, model: str, endpoint: EndpointSettings) -> tuple[Question, ...]:
    """The rows of the full gate that apply to an endpoint.

    base: its URL on the host. model: the name that it serves.
    """
    has, missing, method = abilities(endpoint), tool_keys_missing(endpoint), drafting_of(endpoint)
    rows = (
        engine_steps(base, model, endpoint.engine_kind),
        streams(base, model),
        no_loop(base, model),
        channels(base, model),
        no_tools(endpoint.engine_kind, missing) if missing and endpoint.harmony else calls_a_tool(base, model),
        *(_drafted(base, model, endpoint.engine_kind, method) if method else ()),
        speed(base, model),
    )
    return (*(row for row in rows if row.needs <= has), gpu_counters())


def _drafted(base: str, model: str, engine_kind: str, method: str) -> tuple[Question, ...]:
    return drafts_accepted(base, model, engine_kind, method), sampled_answers(base, model, method)


def compared_questions(base: str, model: str, endpoint: EndpointSettings) -> tuple[Question, ...]:
    """The rows to ask of what serves now, so that the next release can be compared with it."""
    return tuple(row for row in full_questions(base, model, endpoint) if row.severity is Severity.NO_WORSE)
