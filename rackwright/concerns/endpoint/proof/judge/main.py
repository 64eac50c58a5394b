"""Entry: judges the answers in the folder argv[1] against its rows.json; exit 0 means proved, 3 refused.

It prints a line `row JSON` for each row, and `reason TEXT` when a row was refused.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rackwright.concerns.endpoint.proof import chat, container_rows, gpu_errors, transport
from rackwright.concerns.endpoint.proof.proof_row import (
    RULES,
    Question,
    Verdict,
    is_refused,
    judge_safely,
    mark_of,
    parse_answer,
    refusal,
)

ROWS = (chat, container_rows, gpu_errors, transport)
"""Modules whose rows are in RULES once they are imported."""
REFUSED = 3
MOST = 300
"""Characters of an answer's text that a row shows."""


def main() -> int:
    """Judge every row. Returns the exit status."""
    folder = Path(sys.argv[1])
    rows = json.loads((folder / "rows.json").read_text())
    refused: dict[str, str] = {}
    for number, row in enumerate(rows):
        question = RULES[row["rule"]](**row["arguments"])
        verdict = verdict_on(question, folder / str(number))
        refusing = is_refused(question, verdict)
        print(f"row {json.dumps({**_row_fields(question, verdict, refusing), **_endpoint(row)})}", flush=True)
        if refusing:
            refused[question.name] = verdict.text
            if question.name == container_rows.RELEASE:
                # What another release, or none, answers says nothing of this one, or of its GPUs.
                break
    if refused:
        print(f"reason {' '.join(refusal(refused).split())}")
    return REFUSED if refused else 0


def verdict_on(question: Question, file: Path) -> Verdict:
    """Return the verdict on what a question's script has written; without it, on what went wrong while asking."""
    try:
        answer = parse_answer(file.read_text(errors="replace").removesuffix("\n").split("\n"))
    except OSError:
        return Verdict(False, f"could not be asked: {_error(file)}")
    except (ValueError, IndexError):
        return Verdict(False, "answered something unreadable")
    return judge_safely(question, answer)


def _error(file: Path) -> str:
    try:
        return file.with_suffix(".error").read_text(errors="replace").strip()[-MOST:] or "it printed nothing"
    except OSError:
        return "it was never asked"


def _endpoint(row: dict[str, Any]) -> dict[str, Any]:
    """Return the endpoint's part of an answer: a restart of dockerd proves several endpoints in one job."""
    return {"endpoint": row["endpoint"]} if "endpoint" in row else {}


def _row_fields(question: Question, verdict: Verdict, refusing: bool) -> dict[str, Any]:
    mark = mark_of(verdict, refusing)
    return {"row": question.name, "mark": mark, "seen": verdict.text[: 2 * MOST], "figure": verdict.figure}
