"""The rows that are asked over HTTP: model, key, version, and a chat with a checkable answer. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rackwright.concerns.endpoint.proof.final_answer import has_number, why_no_answer
from rackwright.concerns.endpoint.proof.gibberish import loops, nonsense
from rackwright.concerns.endpoint.proof.proof_row import Answer, Question, Severity, Verdict, answered, host_rule, http

WAIT, WAIT_FOR_COMPILER = 110, 300
"""Seconds for the first answer. A real SGLang 0.5.11 compiled kernels at its first request: for 86 s on 32 cores."""


@host_rule
def model_name(base: str, expected: str) -> Question:
    """/v1/models must answer the directory's name (facts on TensorRT-LLM's server, part 2)."""

    def judge(answer: Answer) -> Verdict:
        names = [entry["id"] for entry in answer.json()["data"]]
        return Verdict(expected in names, f"/v1/models answers {', '.join(names) or 'nothing'}, expected {expected}")

    return Question("the model's name", http(f"{base}/v1/models", 30, post=False), answered(judge), timeout=40)


@host_rule
def asks_for_key(base: str) -> Question:
    """Check that an endpoint that is to ask for a key refuses requests without one."""

    def judge(answer: Answer) -> Verdict:
        refused = answer.status in (401, 403)
        text = f"without it /v1/models answers {answer.status}"
        return Verdict(refused, text if refused else f"{text}, expected 401: anybody is let in")

    script = "rackwright_login=\n" + http(f"{base}/v1/models", 30, post=False)
    return Question("its key is asked for", script, answered(judge), timeout=40)


@host_rule
def version(base: str, expected: str) -> Question:
    """/version is the cheapest proof of which image serves."""

    def judge(answer: Answer) -> Verdict:
        served = str(answer.json()["version"])
        return Verdict(served == expected, f"/version answers {served}, the image's tag says {expected}")

    script = http(f"{base}/version", 30, post=False)
    return Question("the engine's version", script, answered(judge), timeout=40, severity=Severity.WARN)


@host_rule
def chat(base: str, model: str, wait: int = WAIT) -> Question:
    """Ask for a chat completion with a checkable answer; only chat notices a missing vocabulary.

    512 tokens, because gpt-oss thinks first and would otherwise end with empty content (DECISIONS 28). wait: seconds.
    """
    request: Mapping[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": "What is 17 + 25? Answer with the number only."}],
        "max_tokens": 512,
        "stream": False,
    }

    def judge(answer: Answer) -> Verdict:
        if answer.status != 200:
            return Verdict(False, f"chat answers {answer.status}: {answer.body[:300]}")
        message = answer.json()["choices"][0]["message"]
        content = str(message["content"] or "")
        if loops(content):
            return Verdict(False, f"chat repeats one token: {content[:60]!r}")
        text = f"17 + 25 is answered with {content.strip()[:80]!r} in {answer.seconds:.1f} s"
        if not has_number(content):
            return Verdict(False, text)
        why = why_no_answer(content) or spoilt_thoughts(message)
        return Verdict(not why, f"{text}: {why}" if why else text)

    script = http(f"{base}/v1/chat/completions", wait, post=True)
    return Question("a chat answer", script, answered(judge), json.dumps(request), timeout=wait + 10)


def spoilt_thoughts(message: Mapping[str, Any]) -> str:
    """Return why the thoughts beside an answer make no sense; empty when they do, or when it has none."""
    texts = (str(message.get(key) or "") for key in ("reasoning_content", "reasoning"))
    return next((f"its thoughts make no sense: {why}" for why in map(nonsense, texts) if why), "")
