"""The share of drafted tokens that is accepted, asked of each server by its own interface. Pure.

vLLM counts for Prometheus: what the row's own requests have added is compared. SGLang and TensorRT-LLM say it in the
answer, of that request alone; TensorRT-LLM's /metrics and /perf_metrics are never read, because reading drains them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rackwright.concerns.endpoint.proof.acceptance import KEEPS, WEAK, Drafted, worse
from rackwright.concerns.endpoint.proof.proof_row import Answer, Question, Verdict
from rackwright.concerns.endpoint.proof.several import (
    TimedReply,
    counters,
    grown,
    grown_by_label,
    post_several,
    replies,
    row_script,
)

PROSE = (
    "When the lamp went out, the keeper's daughter climbed the stairs with a lantern and rang the bell until morning, "
    "and every boat on the bay found its way home before the storm came in from the west."
)
BEGUN = "When the lamp went out, the keeper's daughter"
FOLLOWS = "climbed the stairs"
PROMPT = f"{PROSE}\n\n{PROSE}\n\n{BEGUN}"
"""What every way of drafting can win: prose for a draft model, and words already in the text for prompt lookup.

No chat: a model that thinks first says words of its own, and TensorRT-LLM's chat answers of gpt-oss do not tell
(handle_non_streaming_response in tensorrt_llm/serve/harmony_adapter.py, beside serve/postprocess_handlers.py).
"""
TOKENS = 48
ASKED = 2
"""SGLang's NGRAM drafts from the output, and not from the prompt (_update_ngram_cache in its ngram_worker.py), and
vLLM's suffix decoding from both: the same answer comes twice, so the second one can be drafted."""
LOOKUPS = frozenset({"ngram", "ngram_gpu", "suffix", "lookahead", "auto"})
"""Ways of drafting that repeat what is there: an answer that repeats nothing leaves them nothing to win."""
USELESS = f"below {WEAK} tokens a step a draft hardly pays; does it belong to this model?"
NO_TEXTS = frozenset({400, 404, 405, 501})
"""Answers of a server that does not continue plain text, or not for so long."""


@dataclass(frozen=True)
class DraftProbe:
    """The requests for one engine, and where it reports its drafts."""

    path: str
    body: Callable[[str], dict[str, Any]]
    """The request, by the model's name."""
    counted: str
    """Names of counters that are read before and after, as an expression; empty without counters."""
    drafted: Callable[[Answer, Sequence[TimedReply]], Drafted | None]
    """None where the server does not say."""
    silent: str
    """Why it may not say."""


def drafts_accepted(base: str, model: str, engine_kind: str, method: str, keeps: float = KEEPS) -> Question:
    """Refuse drafts of which none is accepted, in requests that their method can win, or clearly fewer than before.

    keeps: of a release that is asked to be compared with, the part of its gain that the next one must keep.
    """
    way = WAYS[engine_kind]

    def judge(answer: Answer) -> Verdict:
        found = replies(answer)
        wrong = {reply.status for reply in found} - {200}
        if wrong & NO_TEXTS:
            return _unmeasured(engine_kind, f"{way.path} answers {max(wrong & NO_TEXTS)}")
        if wrong or len(found) < ASKED:
            well = sum(reply.status == 200 for reply in found)
            return Verdict(False, f"{well} of {ASKED} requests were answered")
        drafted = way.drafted(answer, found)
        if drafted is None:
            return _unmeasured(engine_kind, way.silent)
        if drafted.accepted < 0 or (drafted.steps or 0) < 0:
            return _unmeasured(engine_kind, "its counters began again while it was asked")
        return _judged(method, replace(drafted, keeps=keeps), found)

    read = [counters(base, way.counted, when) if way.counted else "" for when in ("before", "after")]
    lines = (read[0], post_several(f"{base}{way.path}", ASKED, 110), read[1])
    script = row_script(*filter(None, lines))
    return Question("accepted drafts", script, judge, json.dumps(way.body(model)), timeout=300, compare=_compared)


def _unmeasured(engine_kind: str, why: str) -> Verdict:
    return Verdict(False, f"not measurable on this {engine_kind}: {why}", measured=False)


def _judged(method: str, drafted: Drafted, found: Sequence[TimedReply]) -> Verdict:
    looks_up, text = method.casefold() in LOOKUPS, drafted.in_words(method)
    repeats = any(FOLLOWS in _text(reply) for reply in found)
    if looks_up and not repeats and (drafted.accepted <= 0 or drafted.is_weak):
        return Verdict(False, f"{text}, in answers that repeat nothing: not measurable", measured=False)
    if looks_up and not repeats:
        drafted = replace(drafted, keeps=0)
    if drafted.accepted <= 0:
        return Verdict(False, text, drafted.rate, detail=drafted)
    if drafted.is_weak:
        return Verdict(False, f"{text}: {USELESS}", drafted.rate, warns=True, detail=drafted)
    return Verdict(True, text, drafted.rate, detail=drafted)


def _compared(before: Verdict, now: Verdict) -> Verdict:
    """Return the verdict beside the release before's, which drafted in the same way."""
    old, new = before.detail, now.detail
    if not isinstance(old, Drafted) or not isinstance(new, Drafted) or new.accepted <= 0:
        return now
    if worse(old, new):
        return Verdict(False, f"{now.text.removesuffix(f': {USELESS}')}, worse than before: {before.text}", now.figure)
    return replace(now, text=f"{now.text} (before: {before.text})")


def _text(reply: TimedReply) -> str:
    choices = reply.body.get("choices")
    return str(choices[0]["text"] if choices else reply.body.get("text"))


def _openai(model: str) -> dict[str, Any]:
    return {"model": model, "prompt": PROMPT, "max_tokens": TOKENS, "temperature": 0}


def _sglang(_: str) -> dict[str, Any]:
    return {"text": PROMPT, "sampling_params": {"max_new_tokens": TOKENS, "temperature": 0}}


VLLM_COUNTERS = "vllm:spec_decode_num_"
EACH_POSITION = f"{VLLM_COUNTERS}accepted_tokens_per_pos"


def _vllm_drafts(answer: Answer, found: Sequence[TimedReply]) -> Drafted | None:
    counts = {name.removeprefix(VLLM_COUNTERS): value for name, value in grown(answer).items()}
    drafted = drafted_by_vllm(counts)
    if drafted is None:
        return None
    places = tuple(grown_by_label(answer, EACH_POSITION, "position").values())
    sums_up = len(places) > 0 and abs(sum(places) - drafted.accepted) < 0.5
    return replace(drafted, positions=places if sums_up else (), shared=_is_shared(counts, found))


def _is_shared(counts: Mapping[str, float], found: Sequence[TimedReply]) -> bool:
    """Return True if drafts made more tokens than the row's answers have; a draft may reach past an answer's end."""
    tokens = sum(float((reply.body.get("usage") or {}).get("completion_tokens", math.inf)) for reply in found)
    drafts, proposed = counts.get("drafts", 0.0), counts.get("draft_tokens", 0.0)
    longest = proposed / drafts + 1 if drafts else 0.0
    return drafts + counts["accepted_tokens"] > tokens + ASKED * longest


def drafted_by_vllm(counts: Mapping[str, float]) -> Drafted | None:
    """Return the difference of its counters (vllm/v1/spec_decode/metrics.py); versions without `drafts` lack a rate."""
    if "accepted_tokens" not in counts:
        return None
    accepted, drafts = counts["accepted_tokens"], counts.get("drafts")
    return Drafted(accepted, counts.get("draft_tokens"), 1 + accepted / drafts if drafts else None, drafts)


def _sglang_drafts(_: Answer, found: Sequence[TimedReply]) -> Drafted | None:
    """Each of its verifications gives one token and what it accepted; the prompt itself gives the first token."""
    infos = [reply.body.get("meta_info") or {} for reply in found]
    if not all("spec_verify_ct" in one for one in infos):
        return None
    tokens, steps = (sum(one[name] for one in infos) for name in ("completion_tokens", "spec_verify_ct"))
    accepted = max(0, tokens - len(infos) - steps)
    places = _places([_histogram(one) for one in infos], steps)
    return Drafted(accepted, rate=1 + accepted / steps if steps else None, steps=steps, positions=places)


def _histogram(info: Mapping[str, Any]) -> Sequence[int]:
    """Return how many checks accepted 0, 1, 2, ... tokens (update_spec_acceptance_histogram in schedule_batch.py)."""
    found = info.get("spec_correct_drafts_histogram") or info.get("spec_accept_histogram")
    return found if isinstance(found, list) else ()


def _places(histograms: Sequence[Sequence[int]], steps: float) -> tuple[float, ...]:
    """Return accepted tokens by position; nothing where the histograms do not count each verification."""
    if sum(map(sum, histograms)) != steps:
        return ()
    longest = max(map(len, histograms))
    return tuple(float(sum(sum(one[position:]) for one in histograms)) for position in range(1, longest))


def _trtllm_drafts(_: Answer, found: Sequence[TimedReply]) -> Drafted | None:
    """Return tokens a step of each answer (serve/postprocess_handlers.py); above one, drafts were accepted."""
    answers = [(reply.body["choices"][0], reply.body["usage"]["completion_tokens"]) for reply in found]
    rates = [(choice.get("avg_decoded_tokens_per_iter"), tokens) for choice, tokens in answers]
    if any(rate is None for rate, _ in rates):
        return None
    tokens, steps = sum(tokens for _, tokens in rates), sum(tokens / max(rate, 1.0) for rate, tokens in rates)
    return Drafted(round(tokens - steps, 2), rate=tokens / steps if steps else None, steps=steps)


WAYS = {
    "vllm": DraftProbe("/v1/completions", _openai, VLLM_COUNTERS, _vllm_drafts, "its /metrics counts no drafts"),
    "sglang": DraftProbe("/generate", _sglang, "", _sglang_drafts, "its answers do not tell how often it verified"),
    "tensorrt-llm": DraftProbe("/v1/completions", _openai, "", _trtllm_drafts, "its answers do not tell"),
}
