"""The questions of an endpoint's settings, and which releases are asked. Plain values, made without a connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rackwright.concerns.endpoint.container import served_name, url_of
from rackwright.concerns.endpoint.proof.proof_row import Question
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.messages import SettingsError, counted
from rackwright.plan.change import Job
from rackwright.quality.command_judge import refuse_missing
from rackwright.quality.judges import Command
from rackwright.quality.pairs import points, smallest_refused
from rackwright.quality.question import QualityQuestion
from rackwright.quality.question_file import SHIPPED, questions_hash, read_questions
from rackwright.quality.requests import sampling
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.settings.sections import HOLDING, Gate
from rackwright_engines.load_counters import ABSENT, COUNTERS, LoadCounters
from rackwright_engines.metrics import scrape

USUAL = 6
"""Seconds that a question usually takes, for the estimate of a plan."""
SHORT = 100
"""Seconds up to which they are not written as minutes."""
LONGEST = 4 * 3600
"""Seconds after which no other question is asked, however many there are."""


@dataclass(frozen=True)
class AskedRelease:
    """A release of an endpoint as it is reached on its host."""

    endpoint: str
    release: str
    base: str
    """Its URL."""
    model: str
    """The name that it serves."""
    keyed: bool
    engine: str
    serves: bool = True
    """False for a release that is not running: only its kept answers can be compared."""


@dataclass(frozen=True)
class QualityCheck:
    """The questions to a new release, and the release before with whose answers they are compared."""

    now: AskedRelease
    before: AskedRelease | None
    """The last proven release; None where none was proven."""
    questions: tuple[QualityQuestion, ...]
    hash: str
    """Of questions and sampling: other answers are not compared."""
    worse_by: float
    """Points of a hundred."""
    limit: int
    """Seconds for one answer."""
    folder: Path | None = None
    """Folder of the questions' file, in which a command that judges runs."""
    metrics: str = ""
    """Path of the engine's metrics; empty where it shows none."""
    waiting: str = ABSENT
    """Name of its gauge of waiting requests."""

    @property
    def seconds(self) -> int:
        """The most that asking one release may take."""
        judging = sum(question.judge.timeout for question in self.questions if isinstance(question.judge, Command))
        return min(LONGEST, 60 + len(self.questions) * self.limit // 2 + round(judging))


def quality_check(
    release: Release, settings: EndpointSettings, site: Path, reading: SeenEndpoint
) -> QualityCheck | None:
    """Return the check of a release; None where the settings ask for none. Raises RackwrightError for a bad file.

    reading: of the endpoint in its place now.
    """
    gate, spec = settings.gate, release.spec
    if gate.level == "basic" or not gate.questions:
        return None
    now = AskedRelease(
        spec.name, release.hash, spec.health_url, served_name(settings), bool(spec.key_option), settings.engine_kind
    )
    return replace(check_of(now, settings, gate.questions, site), before=_proven_release(settings, reading))


def check_of(of: AskedRelease, settings: EndpointSettings, file: str, site: Path) -> QualityCheck:
    """Return the check of a release by a file's questions, compared with none. Raises RackwrightError."""
    path = question_path(file, site)
    questions = _questions(str(path))
    return QualityCheck(
        now=of,
        before=None,
        questions=questions,
        hash=_hash(str(path), settings.engine_kind),
        worse_by=settings.gate.worse_by,
        limit=settings.gate.questions_limit,
        folder=None if file == SHIPPED else path.parent,
        metrics=scrape(settings).path,
        waiting=COUNTERS.get(settings.engine_kind, LoadCounters()).waiting,
    )


def refuse_bad_questions(settings: HostSettings) -> None:
    """Raise SettingsError for a file of questions that cannot be asked."""
    for endpoint in settings.all_endpoints.values():
        if endpoint.gate.questions:
            path = question_path(endpoint.gate.questions, settings.site)
            questions = _questions(str(path))
            refuse_missing(questions, path.parent)
            _refuse_slow(questions, endpoint.gate)


def _refuse_slow(questions: Sequence[QualityQuestion], gate: Gate) -> None:
    """Raise SettingsError for a judge that takes longer than the waiting host waits."""
    most = gate.commit_deadline - HOLDING
    for question in questions:
        if isinstance(question.judge, Command) and question.judge.timeout > most:
            raise SettingsError(
                f"question {question.id}: its judge's timeout of {question.judge.timeout:g} s is over {most} s, which "
                f"gate.commit_deadline ({gate.commit_deadline} s) leaves it; next: a shorter timeout, or a longer "
                "commit_deadline",
                code="RW3708",
            )


def quality_note(name: str, settings: EndpointSettings, site: Path) -> str:
    """Return what a plan says of an endpoint's questions; empty without any. Raises RackwrightError for a bad file."""
    gate = settings.gate
    if not gate.questions:
        return ""
    number = len(_questions(str(question_path(gate.questions, site))))
    shown = smallest_refused(number, gate.worse_by)
    of = "; too few for any refusal" if shown is None else f"; a loss of {points(shown)} is refused"
    by = "a rollout asks" if gate.level == "basic" else "it asks"
    return (
        f"endpoint {name}: {by} the first host of each shape {counted(number, 'question')} (gate.questions) while it "
        f"serves no clients, about {minutes(estimate(number, gate.questions_limit))}{of}"
    )


def estimate(number: int, limit: int) -> int:
    """Return the seconds that asking one release usually takes."""
    return max(10, number * min(USUAL, limit) // 2)


def minutes(seconds: int) -> str:
    """Return seconds as a plan says them."""
    return f"{seconds} s" if seconds < SHORT else f"{round(seconds / 60)} min"


def longer(job: Job, checks: Sequence[QualityCheck], rows: Sequence[Question]) -> Job:
    """Return a switch's job with the time that asking a canary takes: the host waits for the end of it."""
    seconds = sum(check.seconds for check in checks) + sum(row.timeout for row in rows)
    return replace(job, timeout=job.timeout + seconds)


def question_path(name: str, site: Path) -> Path:
    """Return the file of `gate.questions`."""
    return Path(SHIPPED) if name == SHIPPED else site / Path(name).expanduser()


@lru_cache(16)
def _questions(file: str) -> tuple[QualityQuestion, ...]:
    """Return a file's questions; hosts share theirs, and a run has one look at them."""
    return read_questions(file)


@lru_cache(16)
def _hash(file: str, engine: str) -> str:
    return questions_hash(_questions(file), sampling(engine))


def serving_release(settings: EndpointSettings, reading: SeenEndpoint) -> AskedRelease | None:
    """Return what serves now; None without it."""
    if not reading.serving or not reading.spec or reading.running_hash is None:
        return None
    return _release_of(reading.running_hash, reading.spec, settings)


def _proven_release(settings: EndpointSettings, reading: SeenEndpoint) -> AskedRelease | None:
    """Return the last proven release; what runs may be on trial, and must not be compared with itself."""
    if reading.proven is None or not reading.proven_spec:
        return None
    found = _release_of(reading.proven, reading.proven_spec, settings)
    return replace(found, serves=reading.serving and reading.running_hash == reading.proven)


def _release_of(release: str, spec: Mapping[str, Any], settings: EndpointSettings) -> AskedRelease:
    base = url_of(spec["address"], spec["port"], spec.get("network", "host"))
    # spec.json does not name the engine: one of another kind is asked as this one is.
    return AskedRelease(spec["name"], release, base, spec["served_name"], bool(spec.get("keyed")), settings.engine_kind)
