"""Ask a canary's release for quality: what it is compared with, its verdict, and what the record keeps of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rackwright.adapter.host import Host, say
from rackwright.adapter.run_context import part_of
from rackwright.concerns.endpoint.proof.proof_row import Verdict, mark_of
from rackwright.concerns.endpoint.quality.canaries import Canaries
from rackwright.concerns.endpoint.quality.quality_check import AskedRelease, QualityCheck
from rackwright.concerns.endpoint.quality.quality_verdict import ROW, Baseline, quality_verdict
from rackwright.concerns.endpoint.quality.question_run import JudgedAnswers, QuestionRun
from rackwright.concerns.endpoint.quality.side_by_side import side_by_side
from rackwright.concerns.endpoint.quality.stored_baseline import BaselineAnswers, store_baseline, stored_baseline
from rackwright.concerns.endpoint.switch.events import COLOURS
from rackwright.record.journal import current_record, keep_beside, note

Baselines = Mapping[str, BaselineAnswers]
"""By endpoint."""


def is_asked(host: Host) -> bool:
    """Return True for a canary: no other host is asked for quality."""
    return host.name in part_of(host.state, Canaries).names


def baselines(host: Host, checks: Sequence[QualityCheck]) -> dict[str, BaselineAnswers]:
    """Return what the releases that serve now answer, before anything is stopped."""
    if not checks or not is_asked(host):
        return {}
    return {check.now.endpoint: _baseline(host, check) for check in checks}


def _baseline(host: Host, check: QualityCheck) -> BaselineAnswers:
    """Return the kept answers of the release before; without them it is asked now, if it serves."""
    of = check.before
    if of is None:
        return BaselineAnswers()
    records = _records()
    if records and (stored := stored_baseline(records, check, of)):
        return stored
    if not of.serves:
        return BaselineAnswers(
            source=f"release {of.release} is not running, and has no kept answers to these questions"
        )
    say(host, f"  release {of.release} has no kept answers to these questions: it is asked before its drain")
    found = _asked(host, check, of)
    if not found.answers:
        return BaselineAnswers(source=f"release {of.release}: {found.why_not_all}")
    return BaselineAnswers(found.answers, found.right, f"release {of.release}, asked before its drain")


def _records() -> Path | None:
    record = current_record()
    return record.parent if record else None


def _asked(host: Host, check: QualityCheck, of: AskedRelease, hold: Callable[[], None] = lambda: None) -> JudgedAnswers:
    """Ask a release, and keep its answers where they are whole."""
    found = QuestionRun(host, check, of, lambda text: say(host, f"  {text}"), hold).ask()
    records = _records()
    if records and found.are_the_release_s:
        store_baseline(records, check, of, found.answers)
    return found


def refused_for_quality(
    host: Host, checks: Sequence[QualityCheck], before: Baselines, hold: Callable[[], None]
) -> dict[str, str]:
    """Ask the releases on trial, show and note each verdict, and return the refused rows with what was seen.

    hold: lets the waiting host wait for another commit deadline.
    """
    refused = {}
    for check in checks if checks and is_asked(host) else ():
        baseline = before.get(check.now.endpoint, BaselineAnswers())
        found = _asked(host, check, check.now, hold)
        verdict = quality_verdict(
            check,
            Baseline(baseline.right, baseline.source),
            found.right,
            found.why_not_all,
            found.is_gone,
            found.unserved,
        )
        _show(host, check, baseline, verdict)
        _keep_side_by_side(host, check, baseline, found)
        if _refuses(verdict):
            refused[ROW if len(checks) == 1 else f"{check.now.endpoint}: {ROW}"] = verdict.text
    return refused


def _refuses(verdict: Verdict) -> bool:
    return verdict.measured and not verdict.passed


def _show(host: Host, check: QualityCheck, before: BaselineAnswers, verdict: Verdict) -> None:
    mark = mark_of(verdict, _refuses(verdict))
    say(host, f"  {mark}: {ROW}: {verdict.text}", COLOURS[mark])
    share = sum(before.right.values()) / len(before.right) if before.right else None
    fields = {"row": ROW, "mark": mark, "seen": verdict.text, "figure": verdict.figure, "figure_before": share}
    note("row", host=host.name, endpoint=check.now.endpoint, **fields)


def _keep_side_by_side(host: Host, check: QualityCheck, before: BaselineAnswers, found: JudgedAnswers) -> None:
    text = side_by_side(check, before.answers, before.right, found.answers, found.right)
    if not text:
        return
    path = keep_beside(f"{host.name}-{check.now.endpoint}-{check.now.release}-answers.txt", text.encode())
    if path is not None:
        note("answers", host=host.name, endpoint=check.now.endpoint, release=check.now.release, file=str(path))
        say(host, f"  wrong answers beside those of before: {path}")
