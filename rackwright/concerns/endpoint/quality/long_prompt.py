"""One prompt of nine tenths of the longest sequence, asked alone: faults of memory show there. Pure."""

from __future__ import annotations

from rackwright.concerns.endpoint.proof.gibberish import loops
from rackwright.concerns.endpoint.proof.proof_row import Answer, Question, Verdict
from rackwright.concerns.endpoint.proof.several import TimedReply, replies
from rackwright.hostside import host_script

ROW = "a long prompt"
"""Name of the row."""
CODE = "4719"
"""The word that the answer must have (ask_long.sh)."""
LEAST = 4096
"""Tokens of the longest sequence below which no prompt is long."""
TOKENS = 512
"""Tokens of the answer, and of a short sequence a twentieth."""
REQUESTS = 3
"""Two short ones, by which the long one is measured."""
UNKNOWN = 0
"""Longest sequence of settings that do not name it: the server is asked."""


def long_prompt(base: str, model: str, longest: int, limit: int) -> Question:
    """Refuse a server that does not answer a prompt of nine tenths of its longest sequence.

    longest: that sequence, in tokens, or UNKNOWN. limit: seconds for an answer.
    """

    def judge(answer: Answer) -> Verdict:
        first, *found = replies(answer)
        tokens = int(first.body.get("longest", UNKNOWN))
        if tokens < LEAST:
            return Verdict(False, f"not measurable: {_why_short(tokens)}", measured=False)
        if len(found) < REQUESTS:
            return Verdict(False, f"not measurable: {_why(found)}", measured=False)
        return _judged(found[-1], tokens, limit)

    script = host_script(
        "ask_long",
        url=f"{base}/v1/chat/completions",
        models=f"{base}/v1/models",
        model=model,
        longest=longest,
        least=LEAST,
        tokens=TOKENS,
        limit=limit,
    )
    return Question(ROW, script, judge, timeout=3 * limit + 40)


def _why_short(tokens: int) -> str:
    if tokens == UNKNOWN:
        return "neither the settings nor the server say how long a sequence may be"
    return f"the longest sequence has {tokens} tokens only"


def _why(found: list[TimedReply]) -> str:
    wrong = next((reply for reply in found if reply.status != 200), None)
    return "the answers do not count the prompt's tokens" if wrong is None else f"a short one answers {wrong.status}"


def _judged(reply: TimedReply, longest: int, limit: int) -> Verdict:
    if reply.status == 0 and reply.seconds < limit - 1:
        return Verdict(False, f"nine tenths of {longest} tokens end the connection after {reply.seconds:.1f} s")
    if reply.status == 0:
        return Verdict(False, f"no answer within {limit} s to nine tenths of {longest} tokens", measured=False)
    if reply.status != 200:
        return Verdict(False, f"nine tenths of {longest} tokens answer {reply.status}: {str(dict(reply.body))[:200]}")
    tokens = reply.body["usage"]["prompt_tokens"]
    message = reply.body["choices"][0]["message"]
    content = str(message.get("content") or "")
    text = f"{tokens} tokens in {reply.seconds:.1f} s"
    if loops(content):
        return Verdict(False, f"{text}: it repeats one token: {content[:60]!r}")
    if CODE in content:
        return Verdict(True, f"{text}, and what stands at their beginning is found")
    # Weak models lose it, and say so in sentences: memory is not the cause.
    return Verdict(False, f"{text}, and what stands at their beginning is not found: {content[:60]!r}", warns=True)
