"""`rackwright questions FILE`: check a file of questions, print the shipped set, or convert another set into one."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rackwright.exit_codes import ExitCode
from rackwright.messages import counted
from rackwright.quality.convert import converted
from rackwright.quality.judges import Command
from rackwright.quality.pairs import figure, points, smallest_refused
from rackwright.quality.question import QualityQuestion
from rackwright.quality.question_file import SHIPPED, parse_questions, read_questions, text_of
from rackwright.settings.sections import Gate


def add_parser(subparsers: Any) -> None:
    """Add `questions` to the command line."""
    parser = subparsers.add_parser("questions", help="check a file of questions for gate.questions, or make one")
    parser.add_argument("file", metavar="FILE", help=f"JSONL file, or `{SHIPPED}` for Rackwright's own")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--print", action="store_true", dest="whole", help="print the questions, to be changed")
    ways.add_argument(
        "--convert", action="store_true", help="print a set of GSM8K, OpenAI evals, inspect-ai or lm-eval as questions"
    )
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Print what was asked for. Raises SettingsError with file and line of a mistake."""
    if args.convert:
        text = "\n".join(converted(text_of(Path(args.file)), args.file))
        parse_questions(text, f"{args.file}, converted,")
        print(text)
        return ExitCode.DONE
    questions = read_questions(args.file)
    print(text_of(args.file).rstrip("\n") if args.whole else "\n".join(_summary(args.file, questions)))
    return ExitCode.DONE


def _summary(file: str, questions: Sequence[QualityQuestion]) -> Iterator[str]:
    subjects = Counter(question.subject or "without a subject" for question in questions)
    parts = ", ".join(f"{subject} {number}" for subject, number in subjects.most_common())
    yield f"{file}: {counted(len(questions), 'question')}: {parts}"
    commands = {tuple(question.judge.argv) for question in questions if isinstance(question.judge, Command)}
    if commands:
        yield "commands that judge on this machine: " + ", ".join(sorted(" ".join(argv) for argv in commands))
    allowed = Gate().worse_by
    least = smallest_refused(len(questions), allowed)
    yield (
        f"too few: no loss is shown to be more than {points(allowed)}"
        if least is None
        else f"with gate.worse_by {figure(allowed)}, a release is refused that loses {points(least)} and wins nothing"
    )
