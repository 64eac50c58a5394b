"""The full gate: what a release must do beyond answering, as rows of data. Pure; `proof` has the basic rows.

DECISIONS 28 and 29: a row names what it needs, and what cannot be measured is shown as such and never passed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from rackwright.concerns.endpoint.proof.container_rows import GPUS_INSIDE
from rackwright.concerns.endpoint.proof.gibberish import loops, nonsense
from rackwright.concerns.endpoint.proof.gpu_errors import GPU_ERRORS
from rackwright.concerns.endpoint.proof.proof_row import Answer, Question, Severity, Verdict, answered, http, is_refused

TOOLS, HARMONY = "tools", "harmony"
AGAIN = 1
"""Seconds before a sampled answer that was refused is drawn once more: at a model's own temperature one may slip."""
CHANNEL_MARKS = re.compile(r"<\|(?:channel|start|message|end|call|return)\|>|\bassistant(?:final|analysis)")


def _chat(
    base: str, model: str, text: str, tokens: int, judge: Callable[[Answer], Verdict], **more: Any
) -> dict[str, Any]:
    request: Mapping[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": tokens,
        **more,
    }
    script = http(f"{base}/v1/chat/completions", 110, post=True)
    return {"script": script, "judge": answered(_ok(judge)), "stdin": json.dumps(request)}


def _ok(judge: Callable[[Answer], Verdict]) -> Callable[[Answer], Verdict]:
    def judge_answer(answer: Answer) -> Verdict:
        if answer.status != 200:
            return Verdict(False, f"chat answers {answer.status}: {answer.body[:200]}")
        return judge(answer)

    return judge_answer


def _message(answer: Answer) -> dict[str, Any]:
    found: dict[str, Any] = answer.json()["choices"][0]["message"]
    return found


def calls_a_tool(base: str, model: str) -> Question:
    """Check that a tool call comes back as one; a draft model alone may drop it, so the release before is asked too."""
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool = {"name": "get_weather", "description": "The weather of a city now.", "parameters": city}

    def judge(answer: Answer) -> Verdict:
        calls = _message(answer).get("tool_calls") or []
        if not calls:
            return Verdict(False, f"no tool call came back, but {str(_message(answer).get('content'))[:60]!r}")
        called = calls[0]["function"]
        arguments = json.loads(called["arguments"])
        right = called["name"] == "get_weather" and isinstance(arguments.get("city"), str)
        return Verdict(right, f"{called['name']}({json.dumps(arguments)[:60]})")

    text = "What is the weather in Paris now? Use the tool."
    request = _chat(base, model, text, 512, judge, tools=[{"type": "function", "function": tool}])
    tools_only = frozenset({TOOLS})
    return Question("a tool call", **request, severity=Severity.NO_WORSE, needs=tools_only, again_after=AGAIN)


def no_tools(engine_kind: str, missing: list[str]) -> Question:
    """Return the row of a model that can call tools behind a server that was not set up to parse them."""
    text = f"not measurable on this {engine_kind}: it makes no tool calls without {' and '.join(missing)}"
    return Question("a tool call", "echo; echo 0 0", lambda _: Verdict(False, text, measured=False))


def channels(base: str, model: str) -> Question:
    """Harmony's channels must be taken apart by the server: no mark of them may reach the content."""

    def judge(answer: Answer) -> Verdict:
        content = str(_message(answer).get("content") or "")
        mark = CHANNEL_MARKS.search(content)
        if mark:
            return Verdict(False, f"the content carries {mark[0]!r}")
        return Verdict(bool(content.strip()), "content without marks" if content.strip() else "the content is empty")

    request = _chat(base, model, "Name one colour of the rainbow.", 512, judge)
    return Question("harmony channels", **request, needs=frozenset({HARMONY}))


def no_loop(base: str, model: str) -> Question:
    """Ask for a longer answer, read for an endless run of one token, and for nonsense."""

    def judge(answer: Answer) -> Verdict:
        message = _message(answer)
        texts = [str(message.get(key) or "") for key in ("content", "reasoning_content", "reasoning")]
        looped = next((text for text in texts if loops(text)), None)
        if looped is not None:
            return Verdict(False, f"repeats one token: {looped[:60]!r}")
        for text in texts:
            if why := nonsense(text):
                return Verdict(False, f"makes no sense: {why}: {text[:60]!r}")
        return Verdict(any(texts), f"{len(''.join(texts))} characters without a loop" if any(texts) else "it is empty")

    return Question("no repeated token", **_chat(base, model, "Describe the sea in five sentences.", 300, judge))


def streams(base: str, model: str) -> Question:
    """Check that a streamed answer comes in several pieces, ends as one, and reports its usage."""

    def judge(answer: Answer) -> Verdict:
        lines = [row.removeprefix("data: ") for row in answer.body.split("\n") if row.startswith("data: ")]
        events = [json.loads(row) for row in lines if row != "[DONE]"]
        deltas = [choice["delta"] for event in events for choice in event.get("choices") or []]
        pieces = sum(any(delta.get(key) for key in ("content", "reasoning_content", "reasoning")) for delta in deltas)
        missing = [
            text
            for text, is_missing in (
                ("several pieces", pieces < 2),
                ("an end", "[DONE]" not in lines),
                ("usage", not any(event.get("usage") for event in events)),
            )
            if is_missing
        ]
        return Verdict(not missing, f"{pieces} pieces" + (f", without {' and '.join(missing)}" if missing else ""))

    more = {"stream": True, "stream_options": {"include_usage": True}}
    return Question("streaming", **_chat(base, model, "Count from one to ten in words.", 200, judge, **more))


def gpu_counters() -> Question:
    """Uncorrectable ECC errors and row remaps of all GPUs; what grew during the switch is the host's fault."""

    def judge(answer: Answer) -> Verdict:
        words = re.findall(r"[\w/\[\]]+", answer.body)
        numbers = [int(cell) for cell in words if cell.isdigit()] + [1 for cell in words if cell == "Yes"]
        if answer.status != 0 or not numbers:
            return Verdict(False, "not measurable on this host: nvidia-smi has no counters", measured=False)
        return Verdict(True, f"{sum(numbers)} uncorrectable errors and remaps", figure=float(sum(numbers)))

    query = f"nvidia-smi --query-gpu={COUNTERS} --format=csv,noheader"
    script = f"o=$(timeout 30 {query} 2>&1); r=$?; printf '%s\\n%s 0' \"$o\" $r"
    return Question(GPU_COUNTERS, script, judge, timeout=60, severity=Severity.NO_WORSE, compare=_no_more)


COUNTERS = "ecc.errors.uncorrected.volatile.total,remapped_rows.uncorrectable,remapped_rows.pending"
"""nvidia-smi's counts of errors that no other release cures."""
GPU_COUNTERS = "GPU error counters"
HOST_ROWS = frozenset({GPU_ERRORS, GPUS_INSIDE, GPU_COUNTERS})
"""Rows that look at the host's GPUs: when one of them is refused, the others' refusals do not blame the release."""


def _no_more(before: Verdict, now: Verdict) -> Verdict:
    if before.figure is None or now.figure is None or not now.passed:
        return now
    if now.figure <= before.figure:
        return Verdict(True, f"{now.text} (before: {before.text})", now.figure)
    return Verdict(False, f"{now.text}, worse than before: {before.text}", now.figure)


def compared(question: Question, before: Verdict | None, now: Verdict) -> Verdict:
    """Return the verdict beside the release before's: a row that failed there too, or is not worse, does not refuse."""
    if question.compare is None or before is None or not before.measured or not now.measured:
        return now
    return question.compare(before, now)


def refuses(question: Question, before: Verdict | None, now: Verdict) -> bool:
    """Return True if a verdict, already compared, stops the switch."""
    if question.severity is Severity.NO_WORSE:
        return now.measured and not now.passed and before is not None and before.passed
    return is_refused(question, now)
