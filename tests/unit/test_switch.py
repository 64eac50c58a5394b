"""The danger zone: what is said and done after each way out of a switch, and how answers are judged."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.concerns.endpoint.proof.chat import chat, model_name, version
from rackwright.concerns.endpoint.proof.container_rows import gpus_inside, release_runs
from rackwright.concerns.endpoint.proof.full import calls_a_tool
from rackwright.concerns.endpoint.proof.gibberish import repeats_itself
from rackwright.concerns.endpoint.proof.gpu_errors import gpu_errors
from rackwright.concerns.endpoint.proof.proof_row import (
    Answer,
    Question,
    Severity,
    Verdict,
    http,
    judge_safely,
    parse_answer,
)
from rackwright.concerns.endpoint.proof.speed import speed
from rackwright.concerns.endpoint.switch import follow
from rackwright.concerns.endpoint.switch.events import SwitchProgress
from rackwright.concerns.endpoint.switch.follow import (
    LOG_BYTES,
    NotAdmittedError,
    NotCommittedError,
    NothingServesError,
    RefusedError,
    RolledBackError,
    StoppedError,
    switch_and_prove,
)
from rackwright.concerns.endpoint.switch.steps import Proved
from rackwright.concerns.endpoint.switch.transaction import ALONE
from rackwright.messages import ReadingError
from rackwright.plan.change import Job, Shell
from rackwright.plan.jobstream import Event, Heard
from rackwright.record.cause import Cause, Reason
from rackwright.record.handover import VARIABLE, Handover
from rackwright.record.journal import read_record
from rackwright.remote.errors import ConnectionLostError, LeaseLostError, NotStartedError, StepFailedError
from rackwright.remote.job_scripts import Ended
from rackwright.rollout.run_hosts import outcome_of
from rackwright.rollout.turn_queue import Outcome
from tests import texts

# -- the ways out


@dataclass
class Host:
    """Prints the lines of a switch and its end; the control machine's own rows are wrong where the test wants it."""

    lines: tuple[Heard, ...] = ()
    status: int | None = 0
    cut: str = ""
    error: Exception | None = None
    word_error: Exception | None = None
    wrong: set[str] = field(default_factory=set)
    log: bytes | None = None
    scripts: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)

    def follow_job(self, _host: Any, _job: Job, heed: Callable[[Heard], None]) -> Ended:
        for row in self.lines:
            heed(row)
        if self.error:
            raise self.error
        return Ended(self.status, self.cut)

    def ask(self, _host: Any, question: Question) -> Verdict:
        if isinstance(self.error, ConnectionLostError):
            raise self.error
        return Verdict(question.name not in self.wrong, "seen")

    def run_simple(self, _host: Any, step: Shell) -> None:
        self.scripts.append(step.script)
        if self.word_error:
            raise self.word_error

    def remote(self, _host: Any, _command: Any, **_more: Any) -> tuple[bool, Any]:
        text = base64.b64encode(gzip.compress(self.log, mtime=0)).decode() if self.log is not None else ""
        return self.log is not None, SimpleNamespace(stdout_lines=[text])

    def say(self, _host: Any, text: str, _colour: str = "") -> None:
        self.shown.append(text)


def row(name: str, severity: Severity = Severity.REFUSE) -> Question:
    return Question(name, "true", lambda _: Verdict(True, ""), severity=severity)


STEP = Proved(
    endpoint="llm",
    release="abc",
    job=Job("switch-llm", "switch", "true", alone=ALONE),
    serving=True,
    questions=(row("a tool call"), row("speed", Severity.WARN)),
)


@pytest.fixture
def attempt(monkeypatch: pytest.MonkeyPatch) -> Callable[[Host], None]:
    def run(host: Host) -> None:
        for name in ("follow_job", "run_simple", "ask", "remote", "say"):
            monkeypatch.setattr(follow, name, getattr(host, name))
        switch_and_prove(SimpleNamespace(name="h1"), STEP)  # type: ignore[arg-type]

    return run


def row_event(name: str, mark: str, observed: str = "seen") -> Event:
    return Event("row", json.dumps({"row": name, "mark": mark, "seen": observed, "figure": None}))


KEPT = "/var/lib/rackwright/endpoints/llm/failed"
COMMITTED, ROLLED_BACK = Event("end", "committed"), Event("end", "rolled-back x")
FAILED = (
    "loading",
    row_event("gpus", "proved"),
    row_event("chat", "refused"),
    Event("failed", "the endpoint did not prove itself: x"),
)
BACK = (
    *FAILED,
    Event("kept", f"{KEPT}/20260131T235959-abc.log"),
    Event("back", "0.8 14.26"),
    row_event("chat", "proved", "old"),
    ROLLED_BACK,
)


def test_a_good_switch_needs_no_word_from_here(attempt: Callable[[Host], None]) -> None:
    host = Host((row_event("version", "warning"), row_event("chat", "proved"), COMMITTED))
    attempt(host)
    assert host.scripts == []
    assert "  proved: chat: seen" in host.shown


def test_a_failure_rolls_back_and_shows_both_clocks(attempt: Callable[[Host], None]) -> None:
    with pytest.raises(RolledBackError, match=texts.pattern(texts.ROLLED_BACK, endpoint="llm")) as caught:
        attempt(Host(BACK, 3))
    assert texts.CLOCKS.format(pointed=0.8, serving=14.3) in str(caught.value)
    assert isinstance(caught.value.__cause__, RefusedError)
    assert caught.value.__cause__.rows == {"chat": "seen"}, "rows of the release that was rolled back to do not count"
    assert outcome_of(caught.value, served=True) == Outcome((Reason(Cause.CHECK, "chat"),))


def test_all_wrong_answers_are_named(attempt: Callable[[Host], None]) -> None:
    lines = (row_event("gpus", "refused"), row_event("chat", "refused"), Event("failed", "x"), Event("back", "1 2"))
    with pytest.raises(RolledBackError, match="gpus: seen; chat: seen"):
        attempt(Host(lines, 3))


@pytest.mark.parametrize(
    ("measured", "reason"),
    [
        ("start", Reason(Cause.CHECK, "the start")),
        ("disk", Reason(Cause.DISK, "the disk")),
        ("docker", Reason(Cause.DOCKER, "Docker")),
        ("gpu", Reason(Cause.GPU, "the GPUs")),
        ("moonlight", Reason(Cause.OTHER, "the switch")),
    ],
)
def test_a_start_that_fails_has_no_row_and_the_hosts_word_for_it(
    attempt: Callable[[Host], None], measured: str, reason: Reason
) -> None:
    failed = "the server died after 3 s: shm: No space left on device"
    with pytest.raises(RolledBackError, match="No space left on device") as caught:
        attempt(Host((Event("cause", measured), Event("failed", failed), Event("back", "1 2")), 3))
    assert outcome_of(caught.value, served=True).reasons == (reason,), "an engine's words blame no release"


def test_a_fault_that_the_host_has_measured_explains_its_refused_rows(attempt: Callable[[Host], None]) -> None:
    for measured, cause in (("disk", Cause.DISK), ("check", Cause.CHECK)):
        with pytest.raises(RolledBackError, match="chat: seen") as caught:
            attempt(
                Host(
                    (
                        row_event("chat", "refused"),
                        Event("cause", measured),
                        Event("failed", "x"),
                        Event("back", "1 2"),
                    ),
                    3,
                )
            )
        assert [reason.cause for reason in outcome_of(caught.value, served=True).reasons] == [cause]


def test_rolling_back_that_fails_is_never_called_serving(attempt: Callable[[Host], None]) -> None:
    with pytest.raises(NothingServesError, match="rolling back failed too: died") as caught:
        attempt(Host((*FAILED, row_event("gpus", "refused"), Event("lost", "died"), Event("end", "lost x")), 4))
    assert "manual action needed" in str(caught.value)
    assert isinstance(caught.value.__cause__, RefusedError)
    assert caught.value.__cause__.rows == {"chat": "seen"}, "what fails on the way back is not the new release's fault"
    assert "serves its last" not in str(caught.value)
    assert not outcome_of(caught.value, served=True).serves


def test_with_nothing_to_roll_back_to_it_is_stopped(attempt: Callable[[Host], None]) -> None:
    with pytest.raises(StoppedError, match=texts.pattern(texts.STOPPED, endpoint="llm")):
        attempt(Host((*FAILED, Event("end", "stopped x")), 4))


def test_a_drain_hook_that_fails_switches_nothing(attempt: Callable[[Host], None]) -> None:
    with pytest.raises(NotStartedError, match=r"llm .*: the drain_hook ended") as no:
        attempt(
            Host((Event("cause", "hook"), Event("end", "not-switched the drain_hook ended with status 3: lb drain")), 5)
        )
    assert outcome_of(no.value, served=True) == Outcome((Reason(Cause.HOOK, "the drain hook"),))


def test_what_is_not_committed_serves_and_is_said(attempt: Callable[[Host], None]) -> None:
    with pytest.raises(NotCommittedError, match=r"abc, .*: mv: no space; next: "):
        attempt(Host((Event("end", "not-committed mv: no space"),), 6))


def test_a_ready_hook_that_fails_is_the_sites_fault(attempt: Callable[[Host], None]) -> None:
    with pytest.raises(NotAdmittedError, match=f"abc .*; {texts.pattern(texts.NOT_LET_IN)}") as no:
        attempt(Host((Event("not-admitted", "the ready_hook took more than 60 s: lb ready"), COMMITTED), 0))
    assert outcome_of(no.value, served=True) == Outcome((Reason(Cause.HOOK, "the ready hook"),), serves=False)


@pytest.mark.parametrize(
    ("status", "cut", "how"),
    [
        (None, "signal 1", "switch: was ended from outside after 1 s; the host rolls back to what was proven"),
        (None, "timeout 3600", "switch: took longer than it may: 3600 s; the host rolls back"),
        (None, "", "switch: is gone: the host went down, or everything of it was killed"),
        (143, "", "ended with status 143"),
    ],
)
def test_a_job_that_was_killed_is_never_called_serving(
    attempt: Callable[[Host], None], status: int | None, cut: str, how: str
) -> None:
    with pytest.raises(NothingServesError, match=how):
        attempt(Host(("loading",), status, cut))


@pytest.mark.parametrize("error", [ConnectionLostError("cable"), NotStartedError("another run is at it")])
def test_a_lost_host_and_a_busy_one_are_left_alone(attempt: Callable[[Host], None], error: StepFailedError) -> None:
    host = Host(error=error)
    with pytest.raises(type(error)):
        attempt(host)
    assert host.scripts == []


@pytest.mark.parametrize(("wrong", "decision"), [(set(), "word=commit"), ({"speed"}, "word=commit")])
def test_a_host_that_waits_for_the_rest_of_the_gate_gets_the_word(
    attempt: Callable[[Host], None], wrong: set[str], decision: str
) -> None:
    host = Host((Event("word", "300"), COMMITTED), wrong=wrong)
    attempt(host)
    (script,) = host.scripts
    assert decision in script


def test_a_refused_row_sends_the_host_back(attempt: Callable[[Host], None]) -> None:
    host = Host(
        (Event("word", "300"), Event("failed", "x"), Event("back", "1 2"), ROLLED_BACK),
        3,
        wrong={"a tool call"},
    )
    with pytest.raises(RolledBackError, match="a tool call: seen") as caught:
        attempt(host)
    assert re.search(r"'back .*: a tool call: seen'", host.scripts[0])
    assert outcome_of(caught.value, served=True).reasons == (Reason(Cause.CHECK, "a tool call"),)


def test_a_word_that_comes_too_late_leaves_the_ending_to_the_host(attempt: Callable[[Host], None]) -> None:
    lines = (
        Event("word", "300"),
        Event("failed", "no word came within 300 s"),
        Event("back", "1 2"),
        ROLLED_BACK,
    )
    with pytest.raises(RolledBackError, match="no word came within 300 s"):
        attempt(Host(lines, 3, word_error=StepFailedError("the switch has ended already")))


def test_a_run_that_has_lost_its_lease_gives_no_word(attempt: Callable[[Host], None]) -> None:
    with pytest.raises(LeaseLostError, match="taken away"):
        attempt(Host((Event("word", "300"),), word_error=LeaseLostError("taken away")))


def test_a_joined_switch_that_asked_for_less_is_asked_the_rest_afterwards(attempt: Callable[[Host], None]) -> None:
    attempt(Host((COMMITTED,)))
    with pytest.raises(RefusedError, match="a tool call: seen"):
        attempt(Host((COMMITTED,), wrong={"a tool call"}))


def test_a_host_that_is_lost_before_the_word_rolls_back_alone(attempt: Callable[[Host], None]) -> None:
    host = Host((Event("word", "300"),), error=ConnectionLostError("cable"))
    with pytest.raises(ConnectionLostError, match=f"cable: {texts.pattern(texts.ALONE)}"):
        attempt(host)


def test_the_failed_releases_log_comes_into_the_record(
    attempt: Callable[[Host], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, Handover(record=str(tmp_path / "run.jsonl")).text)
    with pytest.raises(RolledBackError, match=r"log: .*/run/h1-llm-abc\.log"):
        attempt(Host(BACK, 3, log=b"boom\n"))
    log = tmp_path / "run" / "h1-llm-abc.log"
    assert log.read_bytes() == b"boom\n"
    assert (log.stat().st_mode & 0o777, log.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    marks = [event["mark"] for event in read_record(tmp_path / "run.jsonl") if event["kind"] == "row"]
    assert marks == ["proved", "refused", "proved"]


def test_without_a_record_or_a_log_the_ending_is_the_same(attempt: Callable[[Host], None]) -> None:
    for log in (None, b"boom"):
        with pytest.raises(RolledBackError) as caught:
            attempt(Host(BACK, 3, log=log))
        assert "log:" not in str(caught.value)


@given(st.lists(st.text()))
def test_no_event_breaks_the_story(texts: list[str]) -> None:
    words = ["row", "back", "cause", "word", "end", "failed", "lost", "kept", "not-admitted", "progress", "x"]
    heard: list[Heard] = [*texts, *(Event(kind, text) for kind in words for text in texts)]
    for event in heard:
        with suppress(ValueError, ReadingError):
            assert isinstance(SwitchProgress("llm", KEPT).hear(event).text, str)


@pytest.mark.parametrize(
    "path",
    [
        "/root/.docker/config.json",
        f"{KEPT}/../../../../../root/x.log",
        f"{KEPT}/..log/x.log",
        f"{KEPT}/.hidden.log",
        f"{KEPT}/x",
        f"{KEPT}/x y.log",
        f"{KEPT}/x.log\n",
        "/var/lib/rackwright/endpoints/other/failed/x.log",
        "x.log",
    ],
)
def test_only_a_plain_log_of_the_endpoints_own_folder_is_fetched(
    attempt: Callable[[Host], None], path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, Handover(record=str(tmp_path / "run.jsonl")).text)
    with pytest.raises(RolledBackError):
        attempt(Host((*FAILED, Event("kept", path)), 3, log=b"auth"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "text", ["::kept /root/.docker/config.json", f"::kept {KEPT}/x.log", "::end committed", "kept x"]
)
def test_what_is_printed_is_never_protocol(text: str) -> None:
    progress = SwitchProgress("llm", KEPT)
    assert progress.hear(text).text == text
    assert progress == SwitchProgress("llm", KEPT)


def test_a_kept_log_that_unpacks_to_too_much_is_left_on_its_host(
    attempt: Callable[[Host], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, Handover(record=str(tmp_path / "run.jsonl")).text)
    with pytest.raises(RolledBackError):
        attempt(Host(BACK, 3, log=b"x" * (LOG_BYTES + 1)))
    assert not (tmp_path / "run").exists()


def test_no_escape_of_an_engine_reaches_the_record(
    attempt: Callable[[Host], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, Handover(record=str(tmp_path / "run.jsonl")).text)
    evil = "\x1b]52;c;ZXZpbA==\x07\x1b[2Jno\u202e\x9b1m"
    lines = (row_event("chat", "refused", evil), Event("failed", evil), BACK[-4], Event("back", "1 2"))
    with pytest.raises(RolledBackError) as caught:
        attempt(Host(lines, 3, log=f"{evil}\n".encode()))
    stored_log = (tmp_path / "run" / "h1-llm-abc.log").read_text()
    observed = [event["seen"] for event in read_record(tmp_path / "run.jsonl") if event["kind"] == "row"]
    for text in (stored_log.strip("\n"), *observed, *str(caught.value).split("\n")):
        assert text.isprintable(), repr(text)


# -- judging

BASE = "http://127.0.0.1:8000"


def chat_answer(content: str | None, status: int = 200) -> Answer:
    return Answer(status, json.dumps({"choices": [{"message": {"content": content}}]}), 1.0)


@pytest.mark.parametrize("content", ["42", "The answer is 42.", "17 + 25 = 42", "**42**", "\n42\n"])
def test_a_right_chat_answer_passes(content: str) -> None:
    assert judge_safely(chat(BASE, "m"), chat_answer(content)).passed


@pytest.mark.parametrize(
    ("answer", "observed"),
    [
        (chat_answer("41"), "answered with '41'"),
        (chat_answer("142"), "answered with '142'"),
        (chat_answer("420"), "answered with '420'"),
        (chat_answer(""), "answered with ''"),
        (chat_answer(None), "answered with ''"),
        (chat_answer("!" * 40), "repeats one token"),
        (chat_answer("42 " + "!" * 40), "repeats one token"),
        (
            Answer(400, '{"message":"openai_harmony.HarmonyError: error downloading or loading vocab file"}', 0.1),
            "vocab",
        ),
        (Answer(500, "Internal Server Error", 0.1), "chat answers 500"),
        (Answer(200, "<html>proxy</html>", 0.1), "makes no sense"),
        (Answer(200, "[]", 0.1), "makes no sense"),
        (Answer(200, '{"choices": []}', 0.1), "makes no sense"),
        (Answer(200, '{"choices": [{"message": null}]}', 0.1), "makes no sense"),
        (Answer(0, "000 0.0\ncurl: (7) Failed to connect", 0), "no answer (curl: (7) Failed to connect)"),
        (Answer(0, "", 0), "no answer (nothing came back)"),
    ],
)
def test_a_wrong_chat_answer_is_refused_and_shown(answer: Answer, observed: str) -> None:
    verdict = judge_safely(chat(BASE, "m"), answer)
    assert not verdict.passed
    assert observed in verdict.text


@given(st.text(), st.integers(0, 599))
def test_no_answer_breaks_a_judge(body: str, status: int) -> None:
    for question in (
        chat(BASE, "m"),
        model_name(BASE, "m"),
        version(BASE, "1"),
        gpus_inside("c", 8),
        release_runs("c", "0123456789ab", "ba9876543210"),
    ):
        assert not judge_safely(question, Answer(status, body, 0.1)).passed or "42" in body


@pytest.mark.parametrize("text", ["ha" * 30, "!" * 12, "\u6211" * 20, "abcd" * 12])
def test_endless_repetition_is_seen(text: str) -> None:
    assert repeats_itself(text)


@pytest.mark.parametrize("text", ["42", "...", "1" * 9, "the the the", "=" * 11])
def test_a_short_run_is_no_repetition(text: str) -> None:
    assert not repeats_itself(text)


def test_the_models_name_must_be_among_those_served() -> None:
    served = Answer(200, '{"data": [{"id": "gpt-oss-120b"}]}', 0.1)
    assert judge_safely(model_name(BASE, "gpt-oss-120b"), served).passed
    verdict = judge_safely(model_name(BASE, "other"), served)
    assert verdict == Verdict(False, "/v1/models answers gpt-oss-120b, expected other")


def test_another_release_or_none_is_no_proof() -> None:
    row = release_runs("rackwright-llm", "abc", "123")
    assert row.judge(Answer(0, "abc 123", 0)) == Verdict(True, "the container runs abc, expected abc")
    assert row.judge(Answer(0, "", 0)) == Verdict(False, "the container runs nothing, expected abc")
    assert row.judge(Answer(0, "abcd 123", 0)) == Verdict(False, "the container runs abcd, expected abc")
    for other in ("abc 1234", "abc"):
        verdict = row.judge(Answer(0, other, 0))
        assert verdict == Verdict(False, "the container runs abc with other GPUs than expected")


@pytest.mark.parametrize(
    ("body", "passed", "observed"),
    [
        ("", True, "none"),
        ("NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.", False, "fallen off"),
        ("NVRM: Xid (PCI:0000:1b:00): 45, pid=1, Ch 00000010", True, "Xid (PCI:0000:1b:00): 45"),
        ("NVRM: Xid (PCI:0000:1b:00): 48, pid=1, DBE\nNVRM: Xid (PCI:0000:1b:00): 45, pid=1, Ch 0", False, "48"),
        ("NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus.", False, "fallen off the bus"),
    ],
)
def test_errors_of_the_hardware_refuse_and_those_of_programs_are_shown(body: str, passed: bool, observed: str) -> None:
    verdict = gpu_errors("/var/lib/rackwright/endpoints/llm").judge(Answer(0, body, 0))
    assert verdict.passed == passed
    assert observed in verdict.text


SAYS = """\
[  100.000000] gpu01 kernel: NVRM: Xid (PCI:0000:1b:00): 79, pid=1, long ago
[ 2000.500000] gpu01 kernel: NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus.
"""
"""The kernel's messages of this boot, by the clock that is never stepped."""


@pytest.mark.parametrize(
    ("boot", "uptime", "heard"),
    [("this", 1000, ["fallen"]), ("this", 3000, []), ("another", 3000, ["long ago", "fallen"])],
)
def test_a_clock_that_is_stepped_back_hides_no_error(tmp_path: Path, boot: str, uptime: int, heard: list[str]) -> None:
    journal = tmp_path / "journalctl"
    journal.write_text(f"#!/bin/sh\ncase $* in *--since*) ;; *) printf '%s' '{SAYS}' ;; esac\n")
    journal.chmod(0o755)
    this_boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (tmp_path / "switched-at").write_text(f"{this_boot if boot == 'this' else boot}\n{uptime}.00\n")
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", gpu_errors(str(tmp_path)).script], env=env, stdout=subprocess.PIPE, text=True, check=True
    )
    lines = parse_answer(done.stdout.splitlines()).body.split("\n")
    assert [text for text in ("long ago", "fallen") if text in "".join(lines)] == heard


def test_every_gpu_must_be_listed_inside() -> None:
    row = gpus_inside("rackwright-llm", 2)
    assert row.judge(Answer(0, "GPU 0: NVIDIA B200 (UUID: GPU-1)\nGPU 1: NVIDIA B200 (UUID: GPU-2)", 0)).passed
    assert not row.judge(Answer(0, "GPU 0: NVIDIA B200 (UUID: GPU-1)", 0)).passed
    failed = row.judge(Answer(255, "Failed to initialize NVML: Unknown Error", 0))
    assert "Unknown Error" in failed.text


@pytest.mark.parametrize("post", [False, True])
def test_a_refused_connection_is_no_answer_in_curls_words(post: bool) -> None:
    script = http("http://127.0.0.1:1/v1/models", 5, post)
    done = subprocess.run(["sh", "-c", script], input="{}", capture_output=True, text=True, check=True)
    answer = parse_answer(done.stdout.splitlines())
    assert answer.status == 0
    assert "curl: (7)" in judge_safely(chat(BASE, "m"), answer).text


# -- a figure that a busy moment may have spoilt


def tries(monkeypatch: pytest.MonkeyPatch, again_after: float, *passed: bool) -> tuple[int, bool]:
    """Ask a row whose answers pass so, one after the other; returns how often it was asked, and whether it refused."""
    answers = iter(passed)
    count = 0

    def ask(_host: Any, _question: Question) -> Verdict:
        nonlocal count
        count += 1
        return Verdict(next(answers), "seen")

    monkeypatch.setattr(follow, "ask", ask)
    monkeypatch.setattr(follow, "say", lambda *_: None)
    monkeypatch.setattr(follow, "sleep", lambda _: None)
    monkeypatch.setattr(follow, "note", lambda *_, **__: None)
    question = replace(row("speed"), again_after=again_after)
    try:
        follow.ask_all(SimpleNamespace(name="h1"), "llm", [question])  # type: ignore[arg-type]
    except RefusedError:
        return count, True
    return count, False


@pytest.mark.parametrize(
    ("again_after", "passed", "expected"),
    [
        (20, (False, True), (2, False)),
        (20, (False, False), (2, True)),
        (20, (True,), (1, False)),
        (0, (False,), (1, True)),
    ],
)
def test_a_refused_figure_is_measured_once_more_where_its_row_says_so(
    monkeypatch: pytest.MonkeyPatch, again_after: float, passed: tuple[bool, ...], expected: tuple[int, bool]
) -> None:
    assert tries(monkeypatch, again_after, *passed) == expected


def test_a_measurement_that_took_long_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((0.0, follow.SHORT + 1.0))
    monkeypatch.setattr("rackwright.concerns.endpoint.switch.follow.time.monotonic", lambda: next(clock))
    assert tries(monkeypatch, 20, False) == (1, True)


def test_speed_is_a_row_that_is_measured_once_more() -> None:
    assert speed("http://h", "m").again_after > 0


def test_a_tool_call_is_drawn_at_the_models_own_temperature_so_one_slip_does_not_refuse() -> None:
    row = calls_a_tool("http://h", "m")
    assert "temperature" not in str(row.stdin)
    assert row.again_after > 0
