"""Time of a token, beside the release before: both asked warm, greedily, and often enough to measure noise. Pure.

One release on a real H200 gave 2.6 to 4.3 ms in different minutes, while the first answer was asked cold and with
drafts that sampling accepted by lot.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from rackwright.concerns.endpoint.proof.proof_row import Answer, Question, Severity, Verdict
from rackwright.concerns.endpoint.proof.several import post_several, replies, row_script

BUDGET = 1.75
"""Times as long as before that a token may take, for answers without any noise; above what real GPUs showed (1.65)."""
SLACK = 0.0005
"""Seconds a token that are never counted as slower."""
TRIES, LEAST = 5, 3
"""Measured answers, and how few of them are enough where the time is up."""
PAUSE = 20
"""Seconds: five answers of a small model take two, and one burst of other load covers them all."""
SECONDS, ONE = 120, 60
"""After which no other answer is asked for, and within which each must come."""


@dataclass(frozen=True)
class Pace:
    """Seconds a token of each measured answer."""

    each: Sequence[float]

    @property
    def middle(self) -> float:
        """The median: neither a busy moment nor a lucky one."""
        return median(self.each)

    @property
    def noise(self) -> float:
        """The slowest answer over the fastest, without one outlier on each side: 1 where all are alike."""
        inner = sorted(self.each)[1:-1] if len(self.each) >= TRIES else sorted(self.each)
        return max(inner) / min(inner) if min(inner) > 0 else 1.0


def speed(base: str, model: str) -> Question:
    """Measure seconds a token, the median of several greedy answers after an unmeasured one: no worse than before."""
    request = {
        "model": model,
        "messages": [{"role": "user", "content": "Tell a short story about a lighthouse."}],
        "max_tokens": 128,
        "temperature": 0,
    }
    script = row_script(post_several(f"{base}/v1/chat/completions", 1 + TRIES, ONE, within=SECONDS))
    timeout, severity = SECONDS + ONE + 20, Severity.NO_WORSE
    return Question(
        "speed", script, _judged, json.dumps(request), timeout, severity, compare=_compared, again_after=PAUSE
    )


def _judged(answer: Answer) -> Verdict:
    found = replies(answer)
    well = [reply for reply in found if reply.status == 200]
    if len(well) < len(found) or len(found) <= LEAST:
        return Verdict(False, f"{len(well)} of {max(len(found), 1 + TRIES)} requests were answered")
    pace = Pace([reply.seconds / max(1, reply.body["usage"]["completion_tokens"]) for reply in well[1:]])
    return Verdict(True, f"{pace.middle * 1000:.1f} ms a token", figure=pace.middle, detail=pace)


def _compared(before: Verdict, now: Verdict) -> Verdict:
    old, new = before.detail, now.detail
    if not isinstance(old, Pace) or not isinstance(new, Pace):
        return now
    if new.middle <= old.middle * BUDGET * max(old.noise, new.noise) + SLACK:
        return Verdict(True, f"{now.text} (before: {before.text})", now.figure)
    return Verdict(False, f"{now.text}, worse than before: {before.text}", now.figure)
