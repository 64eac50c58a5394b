"""Detect an engine that hangs: a token that comes back while the engine's own count of steps moves. Pure.

/health and the gauges of running requests prove nothing: a real vLLM whose core was stopped answered 200 and 0 while a
request hung. A missing answer alone proves nothing either, because a request may wait behind a full batch: an engine
hangs when neither a token comes nor its own count moves.
"""

from __future__ import annotations

import json
import re
import shlex

from rackwright.concerns.endpoint.proof.proof_row import LOGIN, Answer, Question, Verdict
from rackwright.concerns.endpoint.proof.several import counters, grown, post_several, replies, row_script

SECONDS = 60
"""Seconds that a token may take. The request is short, and has no company after a switch."""
COUNTED = {
    "vllm": "vllm:iteration_tokens_total_count|vllm:generation_tokens_total",
    "sglang": "sglang:generation_tokens_total",
}
"""Counters of /metrics: vllm/v1/metrics/loggers.py; sglang/srt/metrics/collector.py, where `enable-metrics` is set.

TensorRT-LLM has none that reading does not drain: there the token decides.
"""
INFO = re.compile(r"^info (\d{3})$", re.MULTILINE)


def engine_steps(base: str, model: str, engine_kind: str) -> Question:
    """Refuse an engine that gives no token and takes no step."""

    def judge(answer: Answer) -> Verdict:
        found = replies(answer)
        if not found:
            return Verdict(False, "nothing came back")
        status, seconds, moved = found[0].status, found[0].seconds, _steps_made(answer)
        if status not in (0, 200):
            return Verdict(False, f"a short chat is answered with {status}")
        return _with_a_token(moved, seconds, engine_kind) if status == 200 else _without(moved)

    body = {"model": model, "messages": [{"role": "user", "content": "Name one colour of the rainbow."}]}
    request = json.dumps({**body, "max_tokens": 8})
    post = post_several(f"{base}/v1/chat/completions", 1, SECONDS)
    return Question(
        "engine steps", row_script(*_around(base, engine_kind, post)), judge, request, timeout=SECONDS + 100
    )


def _around(base: str, engine_kind: str, post: str) -> list[str]:
    names = COUNTED.get(engine_kind)
    lines = [counters(base, names, "before"), post, counters(base, names, "after")] if names else [post]
    return [*lines, _info(base)] if engine_kind == "sglang" else lines


def _info(base: str) -> str:
    """SGLang's scheduler itself answers /server_info, which older versions name /get_server_info (http_server.py)."""
    curl = f"curl --silent --noproxy '*' --max-time 20 {LOGIN} --output /dev/null --write-out 'info %{{http_code}}\\n'"
    first, older = (shlex.quote(f"{base}/{name}") for name in ("server_info", "get_server_info"))
    return f"reply=$({curl} {first})\n[ \"$reply\" = 'info 404' ] && reply=$({curl} {older})\nprintf '%s\\n' \"$reply\""


def _steps_made(answer: Answer) -> str | None:
    """Return what moved, as text; empty when nothing did; None when the server has nothing that could."""
    counts = grown(answer)
    moved = {name: by for name, by in counts.items() if by > 0}
    if moved:
        # Of vLLM's two, its iterations rather than its tokens.
        name = max(moved)
        return f"{name} grew by {moved[name]:.0f}"
    statuses = INFO.findall(answer.body)
    if statuses[-1:] == ["200"]:
        return "its scheduler answers"
    return "" if counts or statuses[-1:] == ["000"] else None


def _with_a_token(moved: str | None, seconds: float, engine_kind: str) -> Verdict:
    came = f"a token in {seconds:.1f} s"
    if moved is None:
        return Verdict(True, f"{came}; {engine_kind} shows no count of steps here")
    if not moved:
        return Verdict(False, f"{came}, and its count of steps stands still: not measurable", measured=False)
    return Verdict(True, f"{came}, and {moved}")


def _without(moved: str | None) -> Verdict:
    none = f"no token in {SECONDS} s"
    if moved:
        return Verdict(False, f"{none}, but {moved}: it is busy, and does not hang", measured=False)
    return Verdict(False, none if moved is None else f"{none}, and its count of steps stands still: it hangs")
