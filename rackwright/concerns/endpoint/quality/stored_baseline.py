"""JudgedAnswers of a release that serves, kept on this machine for the comparison with the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rackwright.concerns.endpoint.quality.quality_check import AskedRelease, QualityCheck
from rackwright.quality.chat_answer import ChatAnswer
from rackwright.quality.kept_answers import LARGEST, DamagedAnswersError, keep, kept_from, verdicts
from rackwright.record.answer_files import answers_file, store_answers, stored_answers


@dataclass(frozen=True)
class BaselineAnswers:
    """The release before as a new one is compared with it: its answers, and where they come from."""

    answers: Mapping[str, ChatAnswer] = field(default_factory=dict)
    right: Mapping[str, bool] = field(default_factory=dict)
    source: str = "no release was proven here before"


def stored_baseline(records: Path, check: QualityCheck, of: AskedRelease) -> BaselineAnswers | None:
    """Return a release's kept answers to a check's questions; None without them, or where they are damaged.

    records: the folder of the runs' records.
    """
    text = stored_answers(answers_file(records, of.release, check.hash), LARGEST)
    try:
        found = None if text is None else kept_from(text)
    except DamagedAnswersError:
        return None
    if found is None or not found.fits(check.hash) or found.release != of.release:
        return None
    right = verdicts(check.questions, found.answers, check.folder, check.seconds)
    source = f"release {of.release}, answers of {found.taken:%Y-%m-%d %H:%M}"
    missing = len(found.answers) - len(right)
    return BaselineAnswers(
        found.answers, right, f"{source}, {missing} not judged in {check.seconds} s" if missing else source
    )


def store_baseline(records: Path, check: QualityCheck, of: AskedRelease, answers: Mapping[str, ChatAnswer]) -> None:
    """Keep a release's answers to all questions of a check."""
    store_answers(answers_file(records, of.release, check.hash), keep(check.hash, of.release, answers).to_json())
