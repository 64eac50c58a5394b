"""A file of questions, one JSON object a line: read with the line of each mistake. The only I/O is reading the file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rackwright.loading.wording import explain
from rackwright.messages import SettingsError, paragraph
from rackwright.quality.question import QualityQuestion
from rackwright_engines.key_path import dotted

SHIPPED = "shipped"
"""Name of the package's own set of questions."""
SHIPPED_FILE = files("rackwright") / "data" / "questions.jsonl"
CODE = "RW3709"
LARGEST = 64 << 20
"""Bytes of the file at most: a hundred prompts of 128,000 tokens have it."""
MOST = 2000
"""Questions of a file at most."""
MOST_PROBLEMS = 5
"""Mistakes that one message names."""
KINDS = ("exact", "number", "pattern", "json_schema", "contains", "tool_call", "command")


def read_questions(path: Path | str) -> tuple[QualityQuestion, ...]:
    """Return the questions of a file, or of the shipped set. Raises SettingsError with the line of each mistake."""
    return parse_questions(text_of(path), str(path))


def text_of(path: Path | str) -> str:
    """Return the text of a file of questions, or of the shipped set. Raises SettingsError."""
    return SHIPPED_FILE.read_text(encoding="utf-8") if str(path) == SHIPPED else _read(Path(path))


def _read(path: Path) -> str:
    try:
        if not path.exists():
            begin = f"next: rackwright questions {SHIPPED} --print > {path}"
            raise SettingsError(f"{path} is missing; {begin}", code=CODE)
        if not path.is_file():
            raise SettingsError(f"{path} is not a file of questions; next: ls -l {path}", code=CODE)
        if path.stat().st_size > LARGEST:
            raise SettingsError(f"{path} is larger than {LARGEST >> 20} MiB; next: split it", code=CODE)
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise SettingsError(f"{path} cannot be read: {why}; next: ls -l {path}", code=CODE) from None


def parse_questions(text: str, file: str) -> tuple[QualityQuestion, ...]:
    """Return the questions that a text has. file: its name for messages. Raises SettingsError."""
    numbered = [(number, row) for number, row in enumerate(text.split("\n"), 1) if row.strip()]
    if numbered and numbered[0][1].lstrip().startswith("["):
        raise SettingsError(f"{file} is one JSON list; next: jq -c '.[]' {file}: one question a line", code=CODE)
    if not numbered:
        raise SettingsError(f"{file} has no questions; next: rackwright questions {SHIPPED} --print", code=CODE)
    if len(numbered) > MOST:
        fewer = f"next: shuf -n {MOST} {file}, as another file"
        raise SettingsError(f"{file} has {len(numbered)} questions, and {MOST} at most are asked; {fewer}", code=CODE)
    problems: list[str] = []
    questions: dict[str, tuple[int, QualityQuestion]] = {}
    for number, row in numbered:
        try:
            question = _question(row)
        except ValueError as error:
            problems += [f"  {file} line {number}: {why}" for why in _reasons(error)]
            continue
        first, _ = questions.setdefault(question.id, (number, question))
        if first != number:
            problems.append(f"  {file} line {number}: id: {question.id} comes twice; the first is on line {first}")
    if problems:
        raise SettingsError(_message(problems, file), code=CODE)
    return tuple(question for _, question in questions.values())


def _question(row: str) -> QualityQuestion:
    """Return the question of one line. Raises ValueError."""
    try:
        value = json.loads(row, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, Mapping):
        raise ValueError("it must be a JSON object")
    return QualityQuestion.model_validate(value)


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _reasons(error: ValueError) -> Iterator[str]:
    if isinstance(error, json.JSONDecodeError):
        yield f"it is not JSON: {error.msg} at letter {error.colno}"
    elif isinstance(error, ValidationError):
        yield from dict.fromkeys(_reason(detail) for detail in error.errors())
    else:
        yield str(error)


def _reason(detail: ErrorDetails) -> str:
    if detail["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return f"judge.kind: must be one of {', '.join(KINDS)}"
    # Pydantic names the branch of a union within the path.
    path = tuple(part for at, part in enumerate(detail["loc"]) if (at, part) not in {(1, kind) for kind in KINDS})
    why = explain(QualityQuestion, {**detail, "loc": path})
    return f"{dotted(path)}: {why}" if path else why


def _message(problems: list[str], file: str) -> str:
    more = [f"  and {len(problems) - MOST_PROBLEMS} more"] if problems[MOST_PROBLEMS:] else []
    heading = f"{file} is not a file of questions, and none was asked:"
    return paragraph("\n".join([heading, *problems[:MOST_PROBLEMS], *more, "next: fix these, then the same command"]))


def questions_hash(questions: Sequence[QualityQuestion], sampling: Mapping[str, Any]) -> str:
    """Return a hash of all that an answer and its verdict depend on beside the release; the order does not count."""
    plain = [
        question.model_dump(mode="json", by_alias=True, exclude={"subject", "reference"})
        for question in sorted(questions, key=lambda question: question.id)
    ]
    text = json.dumps({"questions": plain, "sampling": dict(sampling)}, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
