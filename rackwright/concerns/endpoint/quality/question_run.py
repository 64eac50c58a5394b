"""Ask a release all questions on its host, and judge the answers here: a canary before its drain, and on trial."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from rackwright.adapter.command_output import tail
from rackwright.adapter.host import Host
from rackwright.concerns.endpoint.quality.batch import (
    NO_ANSWER,
    BatchAnswers,
    NotAskedError,
    NotListeningError,
    batch_script,
    parse_batch,
)
from rackwright.concerns.endpoint.quality.quality_check import AskedRelease, QualityCheck
from rackwright.messages import RackwrightError
from rackwright.quality.chat_answer import ChatAnswer, answer_of
from rackwright.quality.command_judge import judge
from rackwright.quality.judges import Command
from rackwright.quality.requests import request_body
from rackwright.remote.commands import command_of, remote
from rackwright.remote.errors import StepFailedError

UNSERVED = (NO_ANSWER, 429)
BROKEN = 500
"""Status from which on a server says that it could not answer."""
BATCH = 20
"""Questions that travel in one command."""


@dataclass
class JudgedAnswers:
    """A release's answers to the questions of a check, as far as they have come."""

    answers: dict[str, ChatAnswer] = field(default_factory=dict)
    right: dict[str, bool] = field(default_factory=dict)
    why_not_all: str = ""
    """The reason for questions that were not asked; empty when all were."""
    waited: bool = False
    """True where other clients' requests held the last questions up."""
    is_gone: bool = False
    """True where the endpoint's container no longer ran."""
    unserved: int = 0
    """Questions that the server was too busy or too broken for: they say nothing of its model."""

    @property
    def cut(self) -> int:
        """Wrong answers that ended at `max_tokens`."""
        return sum(not self.right[name] and answer.finish_reason == "length" for name, answer in self.answers.items())

    @property
    def are_the_release_s(self) -> bool:
        """True if every question has an answer of the model, so that they can be kept for a comparison."""
        return not self.why_not_all and not self.unserved

    @property
    def score(self) -> int:
        """Right answers."""
        return sum(self.right.values())


def _nothing() -> None:
    """Do nothing: no host waits for the end of the questions."""


@dataclass(frozen=True)
class QuestionRun:
    """One release of a connected host, and who hears how asking it goes."""

    host: Host
    check: QualityCheck
    of: AskedRelease
    tell: Callable[[str], None]
    """Shows a line of progress."""
    hold: Callable[[], None] = _nothing
    """Called before each command, and before a judge that takes time: a host waits for another commit deadline."""

    def ask(self) -> JudgedAnswers:
        """Ask every question, and judge each answer. Raises StepFailedError where the host is lost."""
        found, began = JudgedAnswers(), time.monotonic()
        bodies = {
            number: json.dumps(request_body(question, self.of.model, self.of.engine))
            for number, question in enumerate(self.check.questions)
        }
        while bodies and not found.why_not_all:
            if time.monotonic() - began >= self.check.seconds:
                found.why_not_all = f"{self.check.seconds} s are over"
                break
            self.hold()
            self._ask_some(found, bodies)
            self.tell(self._progress(found))
        return found

    def _ask_some(self, found: JudgedAnswers, bodies: dict[int, str]) -> None:
        """Ask the next questions; the reason where that failed is in `found`."""
        try:
            batch = self._sent(dict(islice(bodies.items(), BATCH)))
            for number, raw in batch.answers.items():
                self._judge(found, number, answer_of(raw.body, raw.status))
                found.unserved += raw.status in UNSERVED or raw.status >= BROKEN
                del bodies[number]
            found.waited = batch.waited
        except NotAskedError as error:
            found.why_not_all, found.is_gone = str(error), isinstance(error, NotListeningError)
        except StepFailedError:
            raise
        except RackwrightError as error:
            found.why_not_all = error.text

    def _sent(self, bodies: Mapping[int, str]) -> BatchAnswers:
        ok, output = remote(self.host, command_of(batch_script(self.check, self.of, bodies)), twice=True)
        if not ok:
            raise NotAskedError(f"could not be asked: {tail(output)}")
        return parse_batch(output.stdout_lines)

    def _judge(self, found: JudgedAnswers, number: int, answer: ChatAnswer) -> None:
        question = self.check.questions[number]
        if isinstance(question.judge, Command):
            self.hold()
        found.right[question.id] = judge(question, answer, self.check.folder)
        found.answers[question.id] = answer

    def _progress(self, found: JudgedAnswers) -> str:
        held = ", paused while other requests wait" if found.waited else ""
        return f"questions: {len(found.right)} of {len(self.check.questions)}, {found.score} right{held}"
