"""Asks `/v1/completions` as NVIDIA's playbook on speculative decoding does: plain text in, plain text out. Pure.

The other rows ask it for text that is in the prompt already; here the model makes its own, as users have it sampled.
"""

from __future__ import annotations

import json
import re

from rackwright.concerns.endpoint.proof.gibberish import loops, nonsense
from rackwright.concerns.endpoint.proof.proof_row import Answer, Question, Verdict, answered, http

PROMPT = (
    "Solve the following problem step by step. If a train travels 180 km in 3 hours, and then slows down by 20% for "
    "the next 2 hours, what is the total distance traveled? Show all intermediate calculations and provide a final "
    "numeric answer."
)
DISTANCE = re.compile(r"(?<![\d.,])276(?![.,]?\d)")
"""3 hours at 60 km/h, and 2 hours at 48 km/h."""
TOKENS, TEMPERATURE = 300, 0.7
SECONDS = 110


def plain_text(base: str, model: str) -> Question:
    """Refuse plain text that is missing, endless or nonsense; another distance than the right one warns."""
    request = {"model": model, "prompt": PROMPT, "max_tokens": TOKENS, "temperature": TEMPERATURE}
    script = http(f"{base}/v1/completions", SECONDS, post=True)
    return Question("plain text", script, answered(_judged), json.dumps(request), timeout=SECONDS + 10, again_after=1)


def _judged(answer: Answer) -> Verdict:
    if answer.status != 200:
        return Verdict(False, f"/v1/completions answers {answer.status}: {answer.body[:200]}")
    text = str(answer.json()["choices"][0]["text"] or "").strip()
    if loops(text):
        return Verdict(False, f"repeats one token: {text[:60]!r}")
    if why := nonsense(text) or ("" if text else "it is empty"):
        return Verdict(False, f"makes no sense: {why}: {text[:60]!r}")
    if DISTANCE.search(text):
        return Verdict(True, f"276 km, in {answer.seconds:.1f} s")
    return Verdict(False, f"276 km is not in its {len(text)} characters, which end with {text[-60:]!r}", warns=True)
