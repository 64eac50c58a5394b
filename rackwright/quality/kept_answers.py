"""Answers of a release, kept until the next one is judged against them: to JSON and back, with a version. Pure."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from rackwright.quality.chat_answer import ChatAnswer
from rackwright.quality.command_judge import judge
from rackwright.quality.question import QualityQuestion

FORMAT = 1
LARGEST = 64 << 20
"""Characters of the file at most."""


class DamagedAnswersError(ValueError):
    """Kept answers that cannot be read: damaged, or of a newer version."""


class KeptAnswers(BaseModel):
    """What a release answered, and to which questions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    questions: str
    """`questions_hash` of the questions and of the sampling."""
    release: str
    taken: AwareDatetime
    answers: Mapping[str, ChatAnswer]
    """By the id of the question."""

    def to_json(self) -> str:
        """Return them as a file's text."""
        return self.model_dump_json() + "\n"

    def fits(self, questions_hash: str) -> bool:
        """Return True if they answer the same questions, asked in the same way."""
        return self.questions == questions_hash


def kept_from(text: str) -> KeptAnswers:
    """Return what a file has. Raises DamagedAnswersError."""
    try:
        return KeptAnswers.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DamagedAnswersError(f"{where}: {first['msg']}" if where else first["msg"]) from None


def keep(questions_hash: str, release: str, answers: Mapping[str, ChatAnswer]) -> KeptAnswers:
    """Return the answers of a release, taken now."""
    return KeptAnswers(questions=questions_hash, release=release, taken=datetime.now(UTC), answers=dict(answers))


def verdicts(
    questions: Sequence[QualityQuestion],
    answers: Mapping[str, ChatAnswer],
    folder: Path | None = None,
    seconds: float = math.inf,
) -> dict[str, bool]:
    """Return right or wrong by id, for the questions that were answered.

    folder: in which commands that judge run. seconds: after which no other answer is judged.
    """
    found: dict[str, bool] = {}
    until = time.monotonic() + seconds
    for question in questions:
        if question.id in answers and time.monotonic() < until:
            found[question.id] = judge(question, answers[question.id], folder)
    return found
