"""Danger zone: switch an endpoint, ask it, and go back when it does not answer. Every way out is a typed error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyinfra.api.host import Host
from pyinfra.api.state import State

from rackwright.change import Proved, Shell
from rackwright.effects import (
    ConnectionLostError,
    NotStartedError,
    StepFailedError,
    command_of,
    remote,
    run_job,
    run_simple,
    say,
    tail,
)
from rackwright.fleet.journal import note
from rackwright.fullproof import compared, refuses
from rackwright.paths import unit_name
from rackwright.proof import Answer, Question, Verdict, judge_safely, parse_answer
from rackwright.reach import knock


class RefusedError(StepFailedError):
    """The endpoint runs, and its answers are not good enough; `rows` are the refused ones with what was seen."""

    def __init__(self, rows: Mapping[str, str]) -> None:
        super().__init__(
            "the endpoint did not prove itself: " + "; ".join(f"{name}: {seen}" for name, seen in rows.items())
        )
        self.rows = rows


class WentBackError(StepFailedError):
    """The new release failed and the proven one serves again."""


class NothingServesError(StepFailedError):
    """The new release failed, and nothing serves: there was nothing to go back to, or going back failed."""


def switch_and_prove(state: State, host: Host, step: Proved) -> None:
    """Switch, ask, and commit. Raises WentBackError or NothingServesError after a failure.

    A lost connection is neither: the host goes on by itself, and the next run asks it. Neither is a switch that
    was not started, for example because another run is at it.
    """
    before = {question.name: ask(state, host, question) for question in step.questions_before}
    try:
        run_job(state, host, step.switch)
        ask_all(state, host, step.questions, before)
    except (ConnectionLostError, NotStartedError):
        raise
    except StepFailedError as failure:
        raise _leave(state, host, step, failure) from failure
    run_simple(state, host, step.commit)
    if step.door is not None:
        say(host, f"  {knock(str(host.data.get('ssh_hostname') or host.name), step.door)}")


def ask_all(
    state: State, host: Host, questions: Sequence[Question], before: Mapping[str, Verdict] | None = None
) -> None:
    """Ask every question and print each answer. Raises RefusedError naming the refused rows.

    before: what the release before answered, by row, for the rows that must be no worse.
    """
    refused = {}
    for question in questions:
        earlier = (before or {}).get(question.name)
        verdict = compared(question, earlier, ask(state, host, question))
        refusing = refuses(question, earlier, verdict)
        mark = _mark(verdict, refusing)
        say(host, f"  {mark}: {question.name}: {verdict.seen}", _COLOURS[mark])
        note("row", host=host.name, row=question.name, mark=mark, **_told(verdict, earlier))
        if refusing:
            refused[question.name] = verdict.seen
    if refused:
        raise RefusedError(refused)


def _told(verdict: Verdict, earlier: Verdict | None) -> dict[str, object]:
    before = {} if earlier is None else {"before": earlier.seen, "figure_before": earlier.figure}
    return {"seen": verdict.seen, "figure": verdict.figure, **before}


_COLOURS = {"proved": "green", "refused": "red", "warning": "yellow", "not measured": "yellow"}


def _mark(verdict: Verdict, refusing: bool) -> str:
    if not verdict.measured:
        return "not measured"
    return "proved" if verdict.passed else ("refused" if refusing else "warning")


def ask(state: State, host: Host, question: Question) -> Verdict:
    """One question, asked on the host over SSH."""
    ok, output = remote(state, host, command_of(Shell(question.script, stdin=question.stdin, timeout=question.timeout)))
    if not ok or not output.stdout_lines:
        return Verdict(False, f"could not be asked: {tail(output)}")
    try:
        answer: Answer = parse_answer(output.stdout_lines)
    except ValueError:
        return Verdict(False, f"answered something unreadable: {output.stdout_lines[-1][:100]}")
    return judge_safely(question, answer)


def _leave(state: State, host: Host, step: Proved, failure: StepFailedError) -> StepFailedError:
    if step.go_back is None:
        return _halt(state, host, step, failure)
    say(host, f"  {failure}; going back: {step.go_back.title}", "yellow")
    try:
        run_job(state, host, step.go_back)
        ask_all(state, host, step.questions_back)
    except ConnectionLostError as lost:
        return NothingServesError(f"{failure}\nthe host was going back to its proven release when {lost}")
    except StepFailedError as second:
        return NothingServesError(
            f"{failure}\nand going back failed too: {second}\nendpoint {step.endpoint} does not answer as it should: "
            f"hands needed on this host; next: journalctl -u {unit_name(step.endpoint)} --lines 100"
        )
    return WentBackError(f"{failure}\nendpoint {step.endpoint} serves its last proven release again")


def _halt(state: State, host: Host, step: Proved, failure: StepFailedError) -> StepFailedError:
    try:
        run_job(state, host, step.halt)
    except StepFailedError as second:
        return NothingServesError(f"{failure}\nand stopping it failed too: {second}\nhands needed on this host")
    return NothingServesError(
        f"{failure}\nendpoint {step.endpoint} is stopped: there was no other proven release to go back to"
    )
