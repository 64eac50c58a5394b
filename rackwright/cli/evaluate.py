"""`rackwright evaluate INVENTORY --limit HOST`: ask endpoints that serve questions with a checkable answer."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackwright.adapter.run.session import Connected, chosen_hosts, connected
from rackwright.cli.inventories import add_limit, add_shared
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.quality.quality_check import QualityCheck, check_of, serving_release
from rackwright.concerns.endpoint.quality.question_run import JudgedAnswers, QuestionRun
from rackwright.concerns.endpoint.quality.side_by_side import side_by_side
from rackwright.concerns.endpoint.quality.stored_baseline import store_baseline
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.read_host import read_host
from rackwright.exit_codes import done_if
from rackwright.messages import ReadingError, paragraph, printable, writing
from rackwright.quality.question_file import SHIPPED
from rackwright.record.journal import folder_of
from rackwright.remote.errors import StepFailedError
from rackwright.settings.host_settings import EndpointSettings

NAMED = 10
"""Questions with a wrong answer that a line lists."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("evaluate", help="ask endpoints questions whose answers are judged, and count them")
    add_limit(parser)
    text = f"JSONL file, or `{SHIPPED}` for Rackwright's own (default: the settings' gate.questions, or `{SHIPPED}`)"
    parser.add_argument("--questions", metavar="FILE", help=text)
    parser.add_argument("--wrong", type=Path, metavar="FILE", help="write the wrong answers there")
    add_shared(parser, "json")
    parser.set_defaults(handler=run)


@dataclass(frozen=True)
class Evaluation:
    """The answers of one endpoint, or why it was not asked."""

    host: str
    endpoint: str
    check: QualityCheck | None = None
    found: JudgedAnswers | None = None
    why: str = ""

    @property
    def is_whole(self) -> bool:
        """True if every question was asked."""
        return self.found is not None and not self.found.why_not_all


def run(args: argparse.Namespace) -> int:
    """Ask, print; 1 when an endpoint was not asked every question."""
    entries = chosen_hosts(args.inventory, args.limit, args.only)
    with connected(entries) as hosts:
        found = [row for one in hosts for row in _of_host(one, args.questions)]
    print(json.dumps([_values(row) for row in found], indent=1) if args.json else "\n".join(map(_sentence, found)))
    if args.wrong:
        _write(args.wrong, found)
        _tell(f"the wrong answers: {args.wrong}")
    return done_if(len(hosts) == len(entries) and all(row.is_whole for row in found))


def _of_host(one: Connected, questions: str | None) -> Iterator[Evaluation]:
    settings, name = one.entry.settings, one.entry.name
    if settings.follows:
        return
    try:
        reading, _ = read_host(one.host, settings)
    except ReadingError as error:
        yield from (Evaluation(name, endpoint, why=error.text) for endpoint in settings.all_endpoints)
        return
    for endpoint in settings.all_endpoints:
        yield _evaluated(one, endpoint, reading[ENDPOINT].endpoints.get(endpoint, SeenEndpoint()), questions)


def _evaluated(one: Connected, name: str, reading: SeenEndpoint, questions: str | None) -> Evaluation:
    settings, host = one.entry.settings, one.entry.name
    endpoint = settings.all_endpoints[name]
    of = serving_release(endpoint, reading)
    if of is None:
        return Evaluation(host, name, why="it does not serve; next: rackwright status INVENTORY")
    check = check_of(of, endpoint, _file(questions, endpoint), settings.site)
    try:
        found = QuestionRun(one.host, check, of, lambda text: _tell(f"{host} {name}: {text}")).ask()
    except StepFailedError as error:
        return Evaluation(host, name, why=error.text)
    if found.are_the_release_s:
        store_baseline(folder_of(settings.site), check, of, found.answers)
    return Evaluation(host, name, check, found)


def _file(questions: str | None, endpoint: EndpointSettings) -> str:
    """Return the questions' file: that of the command line is relative to where the user stands."""
    if questions is None:
        return endpoint.gate.questions or SHIPPED
    return questions if questions == SHIPPED else str(Path(questions).absolute())


def _tell(text: str) -> None:
    print(f"rackwright: {printable(text)}", file=sys.stderr)


def _subjects(check: QualityCheck, found: JudgedAnswers) -> dict[str, tuple[int, int]]:
    """Return right answers and questions asked, by the questions' subjects."""
    of = {question.id: question.subject or "other" for question in check.questions}
    number, right = (
        Counter(of[name] for name in found.right),
        Counter(of[name] for name, is_right in found.right.items() if is_right),
    )
    return {subject: (right[subject], count) for subject, count in sorted(number.items())}


def _wrong(found: JudgedAnswers) -> list[str]:
    return [name for name, right in found.right.items() if not right]


def _sentence(row: Evaluation) -> str:
    begins = f"{row.host} {row.endpoint}:"
    if row.check is None or row.found is None:
        return paragraph(f"{begins} not asked: {row.why}")
    subjects = _subjects(row.check, row.found)
    parts = [f"{name} {right} of {number}" for name, (right, number) in subjects.items()] if len(subjects) > 1 else []
    wrong = _wrong(row.found)
    more = f" and {len(wrong) - NAMED} more" if wrong[NAMED:] else ""
    lines = [
        f"{begins} release {row.check.now.release}: {row.found.score} of {len(row.found.right)} right",
        *([f"  {', '.join(parts)}"] if parts else []),
        *([f"  wrong: {', '.join(wrong[:NAMED])}{more}"] if wrong else []),
        *([f"  ended at max_tokens: {row.found.cut} of them"] if row.found.cut else []),
        *([f"  without an answer: {row.found.unserved} of them"] if row.found.unserved else []),
        *([f"  not all were asked: {row.found.why_not_all}"] if row.found.why_not_all else []),
    ]
    return paragraph("\n".join(lines))


def _values(row: Evaluation) -> dict[str, Any]:
    named = {"host": row.host, "endpoint": row.endpoint}
    if row.check is None or row.found is None:
        return {**named, "error": printable(row.why)}
    subjects = {
        name: {"right": right, "asked": number} for name, (right, number) in _subjects(row.check, row.found).items()
    }
    return {
        **named,
        "release": row.check.now.release,
        "questions": len(row.check.questions),
        "asked": len(row.found.right),
        "right": row.found.score,
        "subjects": subjects,
        "wrong": _wrong(row.found),
        "cut": row.found.cut,
        "unserved": row.found.unserved,
        "error": printable(row.found.why_not_all) or None,
    }


def _write(path: Path, found: Sequence[Evaluation]) -> None:
    """Write the wrong answers of all endpoints, for their owner alone. Raises RackwrightError."""
    texts = [f"##### {row.host} {row.endpoint}\n\n{text}" for row in found if (text := _wrong_text(row))]
    with (
        writing(path),
        open(path, "w", encoding="utf-8", opener=lambda file, flags: os.open(file, flags, 0o600)) as file,
    ):
        file.write("\n".join(texts))


def _wrong_text(row: Evaluation) -> str:
    if row.check is None or row.found is None:
        return ""
    return side_by_side(row.check, {}, {}, row.found.answers, row.found.right)
