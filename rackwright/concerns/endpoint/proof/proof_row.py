"""A question that an endpoint must answer: its script, the reading of what came back, and the verdict. Pure.

It imports Python's own library alone, and the rows beside it little more: hosts judge by these very files, in the
serving image.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec


class Severity(Enum):
    """Meaning of a wrong answer."""

    REFUSE = "refuse"
    WARN = "warn"
    NO_WORSE = "no worse"
    """Refuses only when the release before passed, or was better; otherwise it warns."""


@dataclass(frozen=True)
class Answer:
    """The answer: HTTP status (or exit status of a command), body, seconds."""

    status: int
    body: str
    seconds: float

    def json(self) -> Any:
        """Return the body as JSON. Raises ValueError when it is not JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Verdict:
    """Passed or not, with what was seen, in a sentence. `measured` is False when there was nothing to judge."""

    passed: bool
    text: str
    figure: float | None = None
    """The measurement."""
    measured: bool = True
    warns: bool = False
    """True where an answer that has not passed is worth a warning and refuses nothing, whatever its row's severity."""
    detail: Any = None
    """The parts of the figure, where the row compares it with the release before's."""
    taken: bool = False
    """True where another process listens in the endpoint's place: the host's fault, not the answer's."""


@dataclass(frozen=True)
class Question:
    """One row of the proof: what is asked, and how the answer is judged.

    `script` runs on the host and prints the body, then a last line `STATUS SECONDS`; `stdin` is the request's
    body. `needs` names abilities that the profile must have for the row to apply.
    """

    name: str
    script: str
    judge: Callable[[Answer], Verdict]
    stdin: str | None = None
    timeout: int = 120
    severity: Severity = Severity.REFUSE
    needs: frozenset[str] = frozenset()
    compare: Callable[[Verdict, Verdict], Verdict] | None = None
    """The verdict on this release beside that of the release before, both measured; None: the two are not compared."""
    before: str = ""
    """Lines of the shell that stand before `script`, the same for all rows of an endpoint."""
    rule: RowRule | None = None
    """The rule and arguments that build this row again; None: only the control machine asks it."""
    endpoint: str = ""
    """The endpoint that it asks, where one step switches several."""
    again_after: float = 0
    """Seconds after which a refused answer is asked for once more: other load may have spoilt it; 0: never."""

    @property
    def label(self) -> str:
        """Its name, distinct from the same question to another endpoint."""
        return f"{self.endpoint}: {self.name}" if self.endpoint else self.name


@dataclass(frozen=True)
class RowRule:
    """A row as plain data, to tell a host which rows to judge: a name in RULES, and its arguments."""

    name: str
    arguments: Mapping[str, Any]


RULES: dict[str, Callable[..., Question]] = {}


Words = ParamSpec("Words")


def host_rule(build: Callable[Words, Question]) -> Callable[Words, Question]:
    """Make the rows that a function builds known to hosts, by the function's name."""

    @wraps(build)
    def built(*args: Words.args, **kwargs: Words.kwargs) -> Question:
        given = signature(build).bind(*args, **kwargs).arguments
        return replace(build(*args, **kwargs), rule=RowRule(build.__name__, dict(given)))

    RULES[build.__name__] = built
    return built


def is_refused(question: Question, verdict: Verdict) -> bool:
    """Return True if a verdict stops the switch on its own, without anything to compare it with."""
    failed = verdict.measured and not verdict.passed and not verdict.warns
    return failed and question.severity is Severity.REFUSE


def mark_of(verdict: Verdict, refusing: bool) -> str:
    """Return the label in front of a row: proved, refused, warning or not measured."""
    if not verdict.measured:
        return "not measured"
    return "proved" if verdict.passed else ("refused" if refusing else "warning")


def refusal(rows: Mapping[str, str]) -> str:
    """Return the sentence on refused rows, with what was seen of each."""
    return "the endpoint did not prove itself: " + "; ".join(f"{name}: {text}" for name, text in rows.items())


def parse_answer(lines: Sequence[str]) -> Answer:
    """Return the answer that a question's script printed. Raises ValueError when its last line is missing."""
    status, seconds = lines[-1].split(" ")
    return Answer(int(status), "\n".join(lines[:-1]).strip("\n"), float(seconds))


def judge_safely(question: Question, answer: Answer) -> Verdict:
    """Return the verdict on an answer; a body of the wrong shape is a failed row, not a crash."""
    unasked = UNASKED.fullmatch(answer.body) or BETWEEN.fullmatch(answer.body.rpartition("\n")[2])
    if answer.status == 0 and unasked:
        return Verdict(False, unasked["why"], taken=unasked["how"] != "not asked")
    try:
        return question.judge(answer)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        return Verdict(
            False, f"status {answer.status}, and a body that makes no sense ({error!r}): {answer.body[:200]}"
        )


UNASKED = re.compile(r"(?P<how>stranger|not asked): (?P<why>.+)")
"""Output of a script instead of an answer where it is not the endpoint's container that listens (known_curl.sh).

After anything that a server has sent comes a line of curl's.
"""


BETWEEN = re.compile(r"(?P<how>curl): \(7\) not asked: (?P<why>port \d+ is taken by .+)")
"""The line of one who took the port between two requests, which is the last one only where no server has sent any."""


LOGIN = '${rackwright_login:+--header "@$rackwright_login"}'
"""Headers of every request of a row: curl reads them from a file, so that `ps` shows no key."""


def login_script(home: str) -> str:
    """Shell lines before a row's own: which key the endpoint of this folder asks for now, if any."""
    return (
        f"rackwright_login={home}/keys/$(sed -n 's/^KEY=//p' {home}/binding 2>/dev/null)\n"
        '[ -f "$rackwright_login" ] || rackwright_login=\n'
    )


def http(url: str, timeout: int, post: bool) -> str:
    """Shell line that asks over HTTP on the host itself; without an answer, curl's own words and status 0."""
    body = "--header 'Content-Type: application/json' --data-binary @- " if post else ""
    return (
        f"curl --silent --show-error --noproxy '*' --max-time {timeout} {LOGIN} {body}"
        f"--write-out '\\n%{{http_code}} %{{time_total}}' {shlex.quote(url)} 2>&1 || printf '\\n0 0'"
    )


def answered(judge: Callable[[Answer], Verdict]) -> Callable[[Answer], Verdict]:
    """Judge what an HTTP server answered; when none did, say so in curl's words."""

    def judge_answer(answer: Answer) -> Verdict:
        if answer.status == 0:
            messages = (row for row in answer.body.splitlines() if row.startswith("curl: "))
            return Verdict(False, f"no answer ({next(messages, 'nothing came back')})")
        return judge(answer)

    return judge_answer
