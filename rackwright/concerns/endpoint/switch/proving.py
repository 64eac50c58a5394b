"""A release's proof on its host: what it is asked there, and whether the host itself is at fault. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.proof.asking import port_holder_script
from rackwright.concerns.endpoint.proof.full import COUNTERS
from rackwright.concerns.endpoint.proof.gpu_errors import HARDWARE
from rackwright.concerns.endpoint.proof.proof_row import Question
from rackwright.concerns.endpoint.switch.job import ROOM
from rackwright.hostside import helper_script, host_script
from rackwright.hostside.packed import packed
from rackwright.paths import helper_container

JUDGE = tuple(
    f"concerns/endpoint/proof/{name}"
    for name in ("judge", "proof_row", "chat", "container_rows", "gpu_errors", "transport", "final_answer", "gibberish")
)
"""The program that judges, and the modules that it imports."""
JUDGING = 120
"""Seconds that the judge may take, most of them for its container's start."""
MEASURING = 120
"""Seconds that measuring a host's own faults may take, before and after."""


@dataclass(frozen=True)
class Tried:
    """A release, what it is bound to on this host, and what it must answer."""

    release: str
    binding: Binding
    image: str
    """The image in which its judge runs: it serves the release, so it is on the host, and has Python."""
    questions: tuple[Question, ...]


def faults_script(home: str, asks: bool = True) -> str:
    """Measure whether the host itself is at fault.

    home: the folder of what is switched. asks: whether dockerd must answer; False where it is what changes.
    """
    words = {"hardware": HARDWARE, "counters": COUNTERS, "asks": "yes" if asks else "no"}
    return host_script("host_faults", home=home, room=ROOM, **words)


KEPT = "RACKWRIGHT_QUESTIONS"
"""Ends the script in the job."""


def prove_script(endpoint: str, tried: Tried) -> str:
    """Ask the basic questions on the host, and judge the answers there; the commit keeps the script for the watch."""
    if not tried.questions:
        return ""
    file = f'"$JOB/proof-{endpoint}"'
    return f"cat >{file} <<'{KEPT}'\n{kept_questions(endpoint, tried)}{KEPT}\n. {file}\n"


def kept_questions(endpoint: str, tried: Tried) -> str:
    """Return the script that asks, as it stays on the host beside its release."""
    commands = [
        shlex.join(["ask", str(number), str(row.timeout), _asking(row), row.stdin or ""])
        for number, row in enumerate(tried.questions)
    ]
    limit = f"# seconds={proving_time(tried.questions)}\n"
    return (
        limit
        + port_holder_script(endpoint)
        + helper_script(
            "prove",
            helper_container(endpoint, "judge"),
            questions="\n".join(commands),
            rows=json.dumps([{**row, "endpoint": endpoint} for row in rows_of(tried.questions)]),
            program=packed(*JUDGE),
            image=tried.image,
            seconds=JUDGING,
        )
    )


def _asking(row: Question) -> str:
    """Return a row's script as the host runs it: the common part of all is in a file there."""
    return f'. "$JOB/known"\n{row.script}' if row.before else row.script


def rows_of(questions: Sequence[Question]) -> list[dict[str, object]]:
    """Return the questions as the host's judge builds them again. Raises ValueError for one that hosts do not know."""
    for row in questions:
        if row.rule is None:
            raise ValueError(f"hosts cannot judge the row {row.name!r}")
    return [{"rule": row.rule.name, "arguments": row.rule.arguments} for row in questions if row.rule]


def proving_time(questions: Sequence[Question]) -> int:
    """Return the seconds that a proof on the host may take."""
    return sum(row.timeout for row in questions) + JUDGING + 30
