"""Danger zone: have a host switch an endpoint and prove it. The host does it alone; this module follows and reports.

Every way out is a typed error.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from rackwright.adapter.command_output import tail
from rackwright.adapter.concurrency import sleep
from rackwright.adapter.host import Host, say
from rackwright.concerns.endpoint.peers.beside_peers import refused_beside_peers
from rackwright.concerns.endpoint.proof.codes import code_of, row_of
from rackwright.concerns.endpoint.proof.full import HOST_ROWS, compared, refuses
from rackwright.concerns.endpoint.proof.proof_row import (
    Answer,
    Question,
    Verdict,
    judge_safely,
    mark_of,
    parse_answer,
    refusal,
)
from rackwright.concerns.endpoint.quality.quality_gate import Baselines, baselines, is_asked, refused_for_quality
from rackwright.concerns.endpoint.switch.events import COLOURS, ShownLine, SwitchProgress, in_words
from rackwright.concerns.endpoint.switch.steps import DaemonRestart, Proved
from rackwright.concerns.endpoint.switch.transaction import ALONE, word_script
from rackwright.concerns.inflate import inflate
from rackwright.hostside import host_script
from rackwright.messages import ReadingError, paragraph
from rackwright.paths import endpoint_dir, failed_dir, unit_name
from rackwright.plan.change import Shell
from rackwright.plan.jobstream import Heard, text_of
from rackwright.record.cause import READY_HOOK, Cause, Reason
from rackwright.record.journal import keep_beside, note
from rackwright.remote.commands import command_of, remote, run_simple
from rackwright.remote.errors import ConnectionLostError, NotStartedError, StepFailedError
from rackwright.remote.job_scripts import Ended
from rackwright.remote.jobs import follow_job, let_end
from rackwright.remote.port_probe import reach_of
from rackwright.remote.unwritable import IMMUTABLE, QUOTA, READ_ONLY
from rackwright.settings.secret import without_secrets

SHORT = 30
"""Seconds within which a measurement is done that may be repeated: the rest of the gate has a deadline."""
TAKEN = Reason(Cause.OTHER_PROCESS, "another process on its port")
LOG_BYTES = 256 * 1024
"""Most that is fetched of a failed release's log: its end."""


class RefusedError(StepFailedError):
    """The endpoint runs, and its answers are not good enough; `rows` are the refused ones with what was seen."""

    def __init__(self, rows: Mapping[str, str], reasons: tuple[Reason, ...] = ()) -> None:
        super().__init__(refusal(rows), reasons or _reasons_of(rows), code=code_of(rows))
        self.rows = rows


def _reasons_of(rows: Iterable[str]) -> tuple[Reason, ...]:
    rows = list(rows)
    ours = tuple(Reason(Cause.GPU, row) for row in rows if row_of(row) in HOST_ROWS)
    return ours or tuple(Reason(Cause.CHECK, row) for row in rows)


class RolledBackError(StepFailedError):
    """The new release failed and the proven one serves again."""


class NothingServesError(StepFailedError):
    """The new release failed and so did rolling back, or the state is unknown: manual action needed."""

    code = "RW0721"


class UnknownEndError(NothingServesError):
    """The switch's job was ended from outside: the host rolls back on its own, and how that ends is unknown."""

    code = "RW0779"


class StoppedError(StepFailedError):
    """The new release failed and is stopped: there was no other proven one to roll back to."""

    code = "RW0725"


class NotCommittedError(StepFailedError):
    """The new release answers, and is not committed: the next run proves it."""

    code = "RW0727"
    reasons = (Reason(Cause.COMMIT, "the commit"),)


class NotAdmittedError(StepFailedError):
    """A proven release serves, and the site's hook has not let clients in again."""

    code = "RW0724"
    reasons = (READY_HOOK,)


def switch_and_prove(host: Host, step: Proved, before: Mapping[str, Verdict] | None = None) -> None:
    """Have the host switch, prove and commit. Raises an error for each other way out.

    A lost connection does not end the switch: the job keeps running on the host, and the next run asks it.
    before: what was answered to its earlier questions, where they had to be asked earlier still.
    """
    before = asked_before(host, step) if before is None else before
    answers = baselines(host, step.quality)
    progress = SwitchProgress(step.endpoint, failed_dir(endpoint_dir(step.endpoint)))

    def heed(heard: Heard) -> None:
        tell(host, progress, heard)
        if progress.waits:
            progress.waits = False
            _approve(host, step, before, answers, progress)

    ended = follow_job(host, step.job, heed)
    if ended.status == 0 and not progress.waited:
        # An earlier run's switch, which asked for less, was joined.
        ask_all(host, step.endpoint, step.questions, before)
    error = ending(step, progress, ended)
    if error is not None:
        log = fetch_log(host, progress, step.release)
        raise with_more(error, f"the failed release's log: {log}" if log else "")
    if step.client_port is not None:
        say(host, f"  {reach_of(host, step.client_port)}")


def await_earlier(host: Host, step: Proved | DaemonRestart) -> bool:
    """Wait for a switch of the same endpoint to another release, which an earlier run has left under way.

    Returns True when there was one: the host is no longer as it was read. Raises StepFailedError.
    """
    endpoint = step.endpoint if isinstance(step, Proved) else step.endpoints[0]
    progress = SwitchProgress(endpoint, failed_dir(endpoint_dir(endpoint)))
    return let_end(host, step.job, lambda heard: tell(host, progress, heard)) is not None


def asked_before(host: Host, step: Proved) -> dict[str, Verdict]:
    """Return the figures of what serves now, with which the next release is compared."""
    return {question.name: ask(host, question) for question in step.questions_before}


def with_more(error: StepFailedError, more: str) -> StepFailedError:
    """Return an error with one more line of text."""
    if more:
        error.args = (f"{error.text}\n{more}",)
    return error


def tell(host: Host, progress: SwitchProgress, heard: Heard) -> None:
    """Show what a switch says, and note the rows of its proof."""
    try:
        shown = progress.hear(heard)
    except (ReadingError, ValueError):
        shown = ShownLine(text_of(heard))
    say(host, f"  {shown.text}", shown.colour)
    if progress.row is not None:
        row = progress.row
        values = {"row": row.name, "mark": row.mark, "seen": row.text, "figure": row.figure}
        note("row", host=host.name, endpoint=row.endpoint or progress.endpoint, **values)


def _approve(
    host: Host, step: Proved, before: Mapping[str, Verdict], answers: Baselines, progress: SwitchProgress
) -> None:
    """Ask the rest of the gate, and give the host that waits for it the word."""
    try:
        message = "commit"
        try:
            ask_all(host, step.endpoint, step.questions, before)
            _ask_for_quality(host, step, answers)
            _look_beside_peers(host, step)
        except RefusedError as error:
            progress.refused.update(error.rows)
            progress.taken = TAKEN in error.reasons
            message = f"back {error.text}"
        run_simple(host, Shell(word_script(step.endpoint, message)))
    except ConnectionLostError as error:
        raise ConnectionLostError(f"{step.job.title}: {error.text}: {ALONE}") from error
    except NotStartedError:
        raise
    except StepFailedError as error:
        say(host, f"  the word came too late: {error}", "yellow")


def _ask_for_quality(host: Host, step: Proved, answers: Baselines) -> None:
    """Ask a canary's release for quality while its host waits. Raises RefusedError."""

    def hold() -> None:
        run_simple(host, Shell(word_script(step.endpoint, "hold")))

    if step.canary_questions and is_asked(host):
        hold()
        ask_all(host, step.endpoint, step.canary_questions)
    if refused := refused_for_quality(host, step.quality, answers, hold):
        raise RefusedError(refused)


def _look_beside_peers(host: Host, step: Proved) -> None:
    """Let a canary's clients in, and look at it beside its peers. Raises RefusedError."""

    def send(message: str) -> None:
        run_simple(host, Shell(word_script(step.endpoint, message)))

    if refused := refused_beside_peers(host, step.peers, send):
        raise RefusedError(refused)


def ending(step: Proved, progress: SwitchProgress, ended: Ended) -> StepFailedError | None:
    """Return the error of a switch that has ended so; None when all is well. Its cause is chained to it."""
    name = step.endpoint
    failure = failure_of(progress)
    error: StepFailedError | None
    match ended.status:
        case 0:
            error = None
        case 3:
            error = RolledBackError(f"{failure.text}\n{_back(step)}{clock_of(progress)}", code=failure.code)
        case 4 if progress.lost is None:
            text = f"endpoint {name} is stopped: there was no other proven release to roll back to"
            error = StoppedError(f"{failure.text}\n{text}")
        case 4:
            error = NothingServesError(f"{failure.text}\n{_nothing_serves(name, progress)}")
        case 5:
            text = f"endpoint {name} was not switched, the previous release serves: {failure.text}"
            error = NotStartedError(text, failure.reasons, code=failure.code if failure.code in BEFORE else "RW0726")
        case 6:
            text = f"endpoint {name} answers with release {step.release}, which is not committed"
            error = NotCommittedError(f"{text}: {failure.text}; next: run the same command again", failure.reasons)
        case _:
            error = UnknownEndError(
                f"{step.job.title}: {ended.text}; the host rolls back to what was proven, and it is not known yet "
                "whether that serves; next: run the same command again, and if it fails: "
                f"journalctl -u {unit_name(name)} --lines 100"
            )
    return closed(error, progress, failure, f"endpoint {name} serves release {step.release} and is proven")


def _back(step: Proved) -> str:
    if not step.takes_over:
        return f"endpoint {step.endpoint} serves its last proven release again"
    names = ", ".join(step.takes_over)
    return f"endpoint {names} serves again, in whose place {step.endpoint} was to"


def failure_of(progress: SwitchProgress) -> StepFailedError:
    """Return the cause of a stop or rollback on the host: the rows that it refused, or its own message.

    A fault that the host has measured of itself explains whatever else has failed.
    """
    reason = TAKEN if progress.taken else _SAID.get(progress.cause)
    reasons = (reason,) if reason is not None else ()
    if progress.refused:
        return RefusedError(progress.refused, reasons if reason and reason.cause.is_hosts else ())
    return StepFailedError(
        progress.failure or "it ended without a word", reasons, code=_CODES.get(progress.cause, "RW0723")
    )


_SAID = {
    "gpu": Reason(Cause.GPU, "the GPUs"),
    "disk": Reason(Cause.DISK, "the disk"),
    "immutable": Reason(Cause.DISK, "a file that is immutable"),
    "readonly": Reason(Cause.DISK, "a file system that is read-only"),
    "quota": Reason(Cause.DISK, "a disk quota"),
    "docker": Reason(Cause.DOCKER, "Docker"),
    "stranger": TAKEN,
    "needs": Reason(Cause.DOCKER, "what a start needs"),
    "waits": Reason(Cause.DOCKER, "what a start waits for"),
    "hook": Reason(Cause.HOOK, "the drain hook"),
    "start": Reason(Cause.CHECK, "the start"),
    "check": Reason(Cause.CHECK, "the proof"),
}
"""The host's term for its own failure (concerns/endpoint/switch/host/transaction.sh)."""
LACKING = "RW0772"
WAITS = "RW0782"
BEFORE = frozenset({LACKING, WAITS, IMMUTABLE, READ_ONLY, QUOTA})
"""Codes of what is found before anything is stopped: what is not on the host, and what cannot be written there."""
_CODES = {
    "gpu": "RW0728",
    "disk": "RW0729",
    "hook": "RW0730",
    "start": "RW0731",
    "docker": "RW0732",
    "stranger": "RW0753",
    "needs": LACKING,
    "waits": WAITS,
    "immutable": IMMUTABLE,
    "readonly": READ_ONLY,
    "quota": QUOTA,
}
"""The codes of these words."""


def clock_of(progress: SwitchProgress) -> str:
    """Return the time that rolling back took, to follow a sentence; nothing when the host did not report it."""
    return "" if progress.clocks is None else f": {in_words(progress.clocks)}"


def closed(
    error: StepFailedError | None, progress: SwitchProgress, failure: StepFailedError, well: str
) -> StepFailedError | None:
    """Return an ending with the ready hooks' output, chained to its cause. `well`: what serves without an error."""
    if progress.not_admitted is not None and not isinstance(error, NothingServesError | StoppedError):
        # Alone, it is one line: a run's last lines name a failed host's first one as the cause.
        text = f"{error.text}\n" if error is not None else f"{well}; "
        text += (
            f"clients are not let in again: {progress.not_admitted}; next: fix the hook and run the same command again"
        )
        error = NotAdmittedError(text)
    if error is not None:
        error.__cause__ = failure
    return error


def _nothing_serves(endpoint: str, progress: SwitchProgress) -> str:
    return (
        f"and rolling back failed too: {progress.lost}\nendpoint {endpoint} does not answer as it should: "
        f"manual action needed on this host; next: journalctl -u {unit_name(endpoint)} --lines 100"
    )


def fetch_log(host: Host, progress: SwitchProgress, release: str) -> str | None:
    """Bring the failed try's last log into the run's record. Returns its file; None without a record or a log."""
    if progress.retained_log is None:
        return None
    try:
        script = host_script("print_log", folder=progress.logs, file=progress.retained_log, most=LOG_BYTES)
        ok, output = remote(host, command_of(Shell(script, timeout=60)), twice=True)
        if not ok or not output.stdout_lines:
            return None
        text = without_secrets(paragraph(inflate(output.stdout_lines[-1], LOG_BYTES).decode(errors="replace")))
    except (ConnectionLostError, ReadingError):
        return None
    path = keep_beside(f"{host.name}-{progress.endpoint}-{release}.log", text.encode())
    if path is not None:
        note("log", host=host.name, endpoint=progress.endpoint, release=release, file=str(path))
    return str(path) if path else None


def ask_all(
    host: Host,
    endpoint: str,
    questions: Sequence[Question],
    before: Mapping[str, Verdict] | None = None,
    again: bool = False,
) -> None:
    """Ask every question and print each answer. Raises RefusedError naming the refused rows.

    before: what the release before answered, by row, for the rows that must be no worse.
    again: asked every few seconds, so that only what is refused is worth a line of the record.
    """
    refused, taken = {}, False
    for question in questions:
        earlier = (before or {}).get(question.name)
        verdict = _answered(host, question, earlier)
        refusing = refuses(question, earlier, verdict)
        mark = mark_of(verdict, refusing)
        say(host, f"  {mark}: {question.label}: {verdict.text}", COLOURS[mark])
        if refusing or not again:
            fields = {"endpoint": question.endpoint or endpoint, "row": question.name}
            note("row", host=host.name, **fields, mark=mark, **_values(verdict, earlier))
        if refusing:
            refused[question.label] = verdict.text
            taken = taken or verdict.taken
    if refused:
        raise RefusedError(refused, (TAKEN,) if taken else ())


def _answered(host: Host, question: Question, earlier: Verdict | None) -> Verdict:
    """Return the verdict on a question; a figure that a busy moment may have spoilt is measured twice."""
    began = time.monotonic()
    verdict = compared(question, earlier, ask(host, question))
    if question.again_after and refuses(question, earlier, verdict) and time.monotonic() - began < SHORT:
        say(host, f"  {question.label}: {verdict.text}; measured once more in {question.again_after:.0f} s")
        sleep(question.again_after)
        verdict = compared(question, earlier, ask(host, question))
    return verdict


def _values(verdict: Verdict, earlier: Verdict | None) -> dict[str, object]:
    before = {} if earlier is None else {"before": earlier.text, "figure_before": earlier.figure}
    return {"seen": verdict.text, "figure": verdict.figure, **before}


def ask(host: Host, question: Question) -> Verdict:
    """One question, asked on the host over SSH."""
    asking = Shell(question.before + question.script, stdin=question.stdin, timeout=question.timeout)
    ok, output = remote(host, command_of(asking), twice=True)
    if not ok or not output.stdout_lines:
        return Verdict(False, f"could not be asked: {tail(output)}")
    try:
        answer: Answer = parse_answer(output.stdout_lines)
    except ValueError:
        return Verdict(False, f"answered something unreadable: {output.stdout_lines[-1][:100]}")
    return judge_safely(question, answer)
