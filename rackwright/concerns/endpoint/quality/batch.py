"""Some questions sent to a host in one command, and their answers. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rackwright.concerns.endpoint.proof.asking import asking_script, known_script
from rackwright.concerns.endpoint.quality.quality_check import AskedRelease, QualityCheck
from rackwright.concerns.inflate import inflate
from rackwright.hostside import host_script
from rackwright.messages import ReadingError
from rackwright.plan.change import Shell

AT_ONCE = 2
"""Questions that an endpoint has at the same time."""
WITHIN = 20
"""Seconds after which a command sends no other question: the waiting host is asked to hold between two commands."""
MOST = 256 * 1024
"""Bytes of an answer that are read."""
CONNECTING = 30
"""Seconds for the look at the listener, and for the way there and back."""
UNASKED = ("stranger: ", "not asked: ")
"""Beginnings of what known_curl.sh prints where it is not the endpoint's container that listens."""
NO_ANSWER = 0
"""Status of a question that the server has not answered in time."""


class NotAskedError(Exception):
    """Nothing was sent."""


class NotListeningError(NotAskedError):
    """Nothing was sent, since the endpoint's own container does not listen."""


@dataclass(frozen=True)
class RawAnswer:
    """An answer as the server sent it: HTTP status, seconds, body."""

    status: int
    seconds: float
    body: str


@dataclass(frozen=True)
class BatchAnswers:
    """The answers of one command, by the question's number."""

    answers: Mapping[int, RawAnswer]
    waited: bool = False
    """True where requests of other clients waited, so that questions were held up."""


def batch_script(check: QualityCheck, of: AskedRelease, bodies: Mapping[int, str], at_once: int = AT_ONCE) -> Shell:
    """Return the command that asks questions. bodies: requests by number, each one line."""
    script = host_script(
        "ask_questions",
        url=f"{of.base}/v1/chat/completions",
        metrics=f"{of.base}{check.metrics}" if check.metrics else "-",
        waiting=check.waiting,
        at_once=at_once,
        limit=check.limit,
        within=WITHIN,
        most=MOST,
    )
    before = asking_script(of.endpoint) if of.keyed else known_script(of.endpoint)
    rows = "".join(f"{number} {body}\n" for number, body in bodies.items())
    return Shell(before + script, stdin=rows, timeout=WITHIN + check.limit + CONNECTING)


def parse_batch(lines: Sequence[str]) -> BatchAnswers:
    """Return what a command of `batch_script` printed. Raises NotListeningError, ReadingError."""
    if lines and lines[0].startswith(UNASKED):
        raise NotListeningError(lines[0].partition(": ")[2])
    rows = [row for row in lines if row and row != "waits"]
    return BatchAnswers(dict(map(_answer, rows)), "waits" in lines)


def _answer(row: str) -> tuple[int, RawAnswer]:
    try:
        number, status, seconds, packed = row.split(" ")
        body = inflate(packed, MOST).decode(errors="replace")
        return int(number), RawAnswer(int(status), float(seconds), body)
    except ValueError as error:
        raise ReadingError(f"malformed answer from the host: {row[:100]}", code="RW2418") from error
