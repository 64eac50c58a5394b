"""A judge that is a command of the user's: it runs on this machine, with the answer on its standard input."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from rackwright.messages import RackwrightError
from rackwright.quality.chat_answer import ChatAnswer
from rackwright.quality.judges import Command, judged_right
from rackwright.quality.question import QualityQuestion

ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
"""What a command gets of this process's environment: no secret of it, and no setting that changes a verdict unseen."""
MISSING = "RW3719"


def judge(question: QualityQuestion, answer: ChatAnswer, folder: Path | None = None) -> bool:
    """Return True if an answer is right. folder: in which a command runs, the questions' own; default: this one.

    Raises RackwrightError when the command cannot be started: that is not the answer's fault.
    """
    if isinstance(question.judge, Command):
        return not answer.error and _ends_well(question.id, question.judge, answer.text, folder)
    return judged_right(question.judge, answer)


def refuse_missing(questions: Iterable[QualityQuestion], folder: Path) -> None:
    """Raise RackwrightError for a command that is not there: it is known before a question is asked."""
    for question in questions:
        command = question.judge
        if isinstance(command, Command) and not _is_there(command.argv[0], folder):
            raise _not_started(question.id, command, "it is missing, or is not executable")


def _is_there(program: str, folder: Path) -> bool:
    path = folder / program
    return path.is_file() and os.access(path, os.X_OK) if "/" in program else shutil.which(program) is not None


def _not_started(question: str, command: Command, why: object) -> RackwrightError:
    return RackwrightError(
        f"the judge of question {question} cannot be started: {command.argv[0]}: {why}; next: its argv in the file of "
        "questions, from the folder of that file",
        code=MISSING,
    )


def _ends_well(question: str, command: Command, text: str, folder: Path | None) -> bool:
    # A file and no pipe: gevent's `communicate` waits without a limit once all is written.
    with TemporaryFile() as answer:
        answer.write(text.encode(errors="replace"))
        answer.seek(0)
        process = _started(question, command, folder, answer)
        try:
            return process.wait(timeout=command.timeout) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            _end(process)


def _started(question: str, command: Command, folder: Path | None, answer: IO[bytes]) -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    try:
        return subprocess.Popen(
            command.argv,
            stdin=answer,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise _not_started(question, command, getattr(error, "strerror", None) or error) from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command and all that it started in its session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, 9)
    process.wait()
