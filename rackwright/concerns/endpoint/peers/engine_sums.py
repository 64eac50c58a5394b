"""Questions to a host while a canary serves beside its peers: its engine's sums, or two requests of one pair. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rackwright.concerns.endpoint.peers.peer_check import OWN_LIMIT
from rackwright.concerns.endpoint.proof.asking import asking_script, known_script
from rackwright.concerns.endpoint.proof.proof_row import LOGIN, parse_answer
from rackwright.concerns.endpoint.proof.several import TimedReply, post_each, replies, row_script
from rackwright.concerns.endpoint.quality.quality_check import AskedRelease
from rackwright.plan.change import Shell
from rackwright.quality.beside import HostPace
from rackwright_engines.pace_counters import PACE, PaceCounters

FEWEST = 3
"""Requests of a window, below which a host's means say nothing."""
TOKENS, LEAST_TOKENS = 128, 16
"""Tokens of one of Rackwright's own answers, and how few of them are enough."""
NOTHING = 1.005
"""Tokens a step below which a draft wins nothing."""
SCRAPING = 20
"""Seconds for the engine's metrics."""
SERIES = re.compile(r"^([\w:]+)(?:\{.*\})? ([-+\d.eE]+)$")


@dataclass(frozen=True)
class EngineSums:
    """An engine's sums at one moment, by name, over all labels."""

    sums: Mapping[str, float]


def sums_script(of: AskedRelease, path: str) -> Shell:
    """Return the command that prints an engine's sums."""
    names = shlex.quote(f"^({'|'.join(sorted(PACE[of.engine].all))})[ {{]")
    curl = f"curl --silent --noproxy '*' --max-time {SCRAPING} {LOGIN} {shlex.quote(of.base + path)}"
    script = f"{curl} | grep -E {names}\nexit 0\n"
    return Shell(_before(of) + script, timeout=SCRAPING + 10)


def _before(of: AskedRelease) -> str:
    return asking_script(of.endpoint) if of.keyed else known_script(of.endpoint)


def parse_sums(lines: Sequence[str]) -> EngineSums | None:
    """Return what `sums_script` printed; None without any sum."""
    sums: dict[str, float] = {}
    for name, value in (match.groups() for row in lines if (match := SERIES.match(row))):
        try:
            sums[name] = sums.get(name, 0.0) + float(value)
        except ValueError:
            continue
    return EngineSums(sums) if sums else None


def pace_between(engine: str, before: EngineSums | None, after: EngineSums | None) -> HostPace:
    """Return how fast an engine was between two looks. One whose sums began again was restarted: it shows nothing."""
    if before is None or after is None or began_again(before, after):
        return HostPace()
    names = PACE[engine]
    grown = {name: value - before.sums.get(name, 0.0) for name, value in after.sums.items()}
    requests = _first_of(grown, [f"{name}_count" for name in names.first])
    if requests is None or requests < FEWEST:
        return HostPace()
    first = _first_of(grown, [f"{name}_sum" for name in names.first])
    return HostPace(
        _mean(first, requests), _mean(_first_of(grown, names.token_seconds), _first_of(grown, names.tokens))
    )


def began_again(before: EngineSums, after: EngineSums) -> bool:
    """Return True if an engine counts from 0 again."""
    return any(after.sums.get(name, 0.0) < value for name, value in before.sums.items())


def _first_of(grown: Mapping[str, float], names: Sequence[str]) -> float | None:
    return next((grown[name] for name in names if name in grown), None)


def _mean(total: float | None, count: float | None) -> float | None:
    return total / count if total and count and total > 0 and count > 0 else None


def drafts_between(engine: str, before: EngineSums | None, after: EngineSums | None) -> str:
    """Return how many drafted tokens were accepted, as text; empty where the engine counts none."""
    if before is None or after is None or began_again(before, after):
        return ""
    names: PaceCounters = PACE[engine]
    grown = {name: value - before.sums.get(name, 0.0) for name, value in after.sums.items()}
    drafted, accepted = _first_of(grown, names.drafted), _first_of(grown, names.accepted)
    if not drafted or accepted is None:
        return ""
    if accepted <= 0:
        return f"its draft never wins: none of {drafted:,.0f} drafted tokens was accepted"
    return f"its draft: {accepted:,.0f} of {drafted:,.0f} tokens accepted"


def drafts_by_rate(rates: Sequence[float]) -> str:
    """Return what drafts won, by the tokens a step of answers, as text; empty where no answer says it."""
    if not rates:
        return ""
    rate = sum(rates) / len(rates)
    return (
        f"its draft never wins: {rate:.2f} tokens a step" if rate < NOTHING else f"its draft: {rate:.2f} tokens a step"
    )


def own_script(of: AskedRelease, number: int) -> Shell:
    """Return the command that sends one host the two requests of a pair.

    One of one token, whose time is that of the first token, then one of many. number: of the pair, so that no cache has
    the prompt from the pair before.
    """
    bodies = "\n".join(json.dumps(_request(of.model, number, tokens)) for tokens in (1, TOKENS))
    script = row_script(post_each(f"{of.base}/v1/completions", OWN_LIMIT))
    return Shell(_before(of) + script, stdin=bodies, timeout=2 * OWN_LIMIT + 10)


def _request(model: str, number: int, tokens: int) -> Mapping[str, object]:
    prompt = f"Story {number + 1}. Tell a short story about a lighthouse."
    return {"model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True}


@dataclass(frozen=True)
class AnsweredPair:
    """The speed of a host's answers to the two requests of a pair, and tokens a step where the answer says it."""

    pace: HostPace
    rate: float | None = None
    why: str = ""
    """The reason for a missing measurement; empty otherwise."""


def parse_own(lines: Sequence[str]) -> AnsweredPair:
    """Return what `own_script` printed."""
    try:
        found = replies(parse_answer(lines))
    except (ValueError, IndexError):
        return AnsweredPair(HostPace(), why=" ".join(lines)[-100:] or "nothing came back")
    wrong = [reply.status for reply in found if reply.status != 200]
    if wrong or len(found) != 2:
        return AnsweredPair(HostPace(), why=f"a request answers {wrong[0]}" if wrong else "no answer came back")
    return _own(*found)


def _own(first: TimedReply, whole: TimedReply) -> AnsweredPair:
    tokens = (whole.body.get("usage") or {}).get("completion_tokens")
    if not isinstance(tokens, int) or tokens < LEAST_TOKENS or whole.seconds <= first.seconds:
        return AnsweredPair(HostPace(), why=f"an answer of {tokens} tokens")
    choices = whole.body.get("choices") or [{}]
    rate = choices[0].get("avg_decoded_tokens_per_iter") if isinstance(choices[0], dict) else None
    each = (whole.seconds - first.seconds) / (tokens - 1)
    return AnsweredPair(HostPace(first.seconds, each), rate if isinstance(rate, int | float) else None)
