"""Checks that sampled answers make sense while drafting: one text, asked greedily and as users ask. Pure.

With drafts a server samples in another way than without. A real vLLM 0.32.0 (CPU) passed every row that a greedy or a
short answer can pass, and answered nonsense at any temperature but 0: github.com/vllm-project/vllm/issues/55005.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from statistics import median_low

from rackwright.concerns.endpoint.proof.drafts import BEGUN, NO_TEXTS, PROMPT, PROSE, TOKENS
from rackwright.concerns.endpoint.proof.proof_row import Answer, Question, Verdict
from rackwright.concerns.endpoint.proof.several import TimedReply, post_each, replies, row_script

SECONDS = 40
"""Seconds that one of the short answers may take."""
OWN, MILD = 3, 2
"""Requests for the text at the model's own temperature, as by a user who sets none, and at a mild one."""
MILD_TEMPERATURE = 0.3
"""Here even a model whose own temperature is high stays with a text that is in the prompt twice."""
REST = frozenset(pairwise(PROSE.removeprefix(BEGUN).split()))
"""How the text continues, as pairs of neighbouring words; output after its end does not count."""
PART = 0.9
"""Share of it that an answer must have: one word may be another one. Of the real nonsense the best answer had 0.4."""


def sampled_answers(base: str, model: str, method: str) -> Question:
    """Refuse a server whose greedy answer follows a text while its sampled ones do not, even at a mild temperature."""

    def judge(answer: Answer) -> Verdict:
        found = replies(answer)
        wrong = {reply.status for reply in found} - {200}
        if wrong & NO_TEXTS:
            return _unmeasured(f"/v1/completions answers {max(wrong & NO_TEXTS)}")
        if wrong or len(found) < 1 + OWN + MILD:
            well = sum(reply.status == 200 for reply in found)
            return Verdict(False, f"{well} of {1 + OWN + MILD} requests were answered")
        return _judged([_text(reply) for reply in found], method)

    request = {"model": model, "prompt": PROMPT, "max_tokens": TOKENS}
    bodies = [{**request, "temperature": 0}, *[request] * OWN, *[{**request, "temperature": MILD_TEMPERATURE}] * MILD]
    script = row_script(post_each(f"{base}/v1/completions", SECONDS))
    lines = "\n".join(json.dumps(body) for body in bodies)
    return Question("sampled answers", script, judge, lines, timeout=SECONDS * len(bodies) + 20)


def part_followed(text: str) -> float:
    """Return the share of the rest of the text that an answer has."""
    return len(REST & set(pairwise(text.split()))) / len(REST)


def _text(reply: TimedReply) -> str:
    return str(reply.body["choices"][0]["text"])


def _judged(texts: Sequence[str], method: str) -> Verdict:
    greedy, *sampled = (part_followed(text) for text in texts)
    if greedy < PART:
        return _unmeasured(f"its greedy answer does not follow the text: {texts[0].strip()[:60]!r}")
    # Of three the middle one, of two the lower one: a healthy model may leave the text once, nonsense may be short.
    usual, mild = median_low(sampled[:OWN]), median_low(sampled[OWN:])
    if usual >= PART:
        return Verdict(True, f"{usual:.0%} of the text comes back, {greedy:.0%} when asked greedily")
    if mild >= PART:
        return Verdict(
            True, f"{mild:.0%} of the text comes back at temperature {MILD_TEMPERATURE}, {usual:.0%} at its own"
        )
    shares = (
        f"{usual:.0%} of the text comes back, {mild:.0%} at temperature {MILD_TEMPERATURE}, {greedy:.0%} when greedy"
    )
    return Verdict(
        False, f"drafting ({method}) spoils all but greedy answers: {shares}; one is {texts[1].strip()[:60]!r}"
    )


def _unmeasured(why: str) -> Verdict:
    return Verdict(False, f"not measurable: {why}", measured=False)
