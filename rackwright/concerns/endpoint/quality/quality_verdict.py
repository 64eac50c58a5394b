"""The verdict on a release's answers beside those of the release before, as a row of the gate. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rackwright.concerns.endpoint.proof.proof_row import Verdict
from rackwright.concerns.endpoint.quality.quality_check import QualityCheck
from rackwright.quality.pairs import compare

ROW = "quality of answers"
"""Name of the row."""


@dataclass(frozen=True)
class Baseline:
    """Right and wrong answers of the release before, by the question's id; empty where `source` says why."""

    right: Mapping[str, bool]
    source: str
    """Their source, or the reason for their absence."""


def quality_verdict(
    check: QualityCheck,
    before: Baseline,
    right: Mapping[str, bool],
    why_not_all: str,
    is_gone: bool = False,
    unserved: int = 0,
) -> Verdict:
    """Return the verdict on the answers to a check's questions.

    why_not_all: why some were not asked; empty when all were. is_gone: True where the server ended under the questions,
    which refuses it whatever it had answered. unserved: wrong ones of `right` that have no answer of the model.
    """
    score, number = sum(right.values()), len(right)
    text = f"{score} of {number} right"
    if unserved:
        text += f", {unserved} without an answer"
    if why_not_all:
        text += f", {len(check.questions) - number} not asked ({why_not_all})"
    both = {one for one in right if one in before.right}
    if not number:
        return Verdict(False, text, measured=is_gone)
    if not both:
        return Verdict(not is_gone, f"{text}, no baseline: {before.source}", score / number)
    found = compare({one: before.right[one] for one in both}, {one: right[one] for one in both}, check.worse_by)
    text += f"; before: {sum(before.right[one] for one in both)} of {len(both)} ({before.source}); {found.sentence}"
    return Verdict(not found.worse and not is_gone, text, score / number)
