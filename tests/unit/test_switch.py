"""The danger zone: what is said and done after each way out of a switch, and how answers are judged."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright import switch
from rackwright.change import Job, Proved, Shell
from rackwright.effects import ConnectionLostError, NotStartedError, StepFailedError
from rackwright.proof import (
    Answer,
    Question,
    Severity,
    Verdict,
    chat,
    gpu_errors,
    gpus_inside,
    http,
    judge_safely,
    model_name,
    parse_answer,
    release_runs,
    repeats_itself,
    version,
)
from rackwright.switch import NothingServesError, WentBackError, switch_and_prove

# -- the ways out


@dataclass
class Host:
    """Notes what is done to it; jobs and questions end as told."""

    endings: dict[str, Exception] = field(default_factory=dict)
    wrong: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)

    def run_job(self, _state: Any, _host: Any, job: Job) -> None:
        self.done.append(job.title)
        if job.title in self.endings:
            raise self.endings[job.title]

    def ask(self, _state: Any, _host: Any, question: Question) -> Verdict:
        return Verdict(question.name not in self.wrong, "seen")

    def run_simple(self, _state: Any, _host: Any, _step: Shell) -> None:
        self.done.append("commit")


def row(name: str, severity: Severity = Severity.REFUSE) -> Question:
    return Question(name, "true", lambda _: Verdict(True, ""), severity=severity)


def proved(go_back: bool = True) -> Proved:
    return Proved(
        endpoint="llm",
        switch=Job("switch-llm", "switch", "true"),
        questions=(row("gpus"), row("version", Severity.WARN), row("chat")),
        commit=Shell("true"),
        go_back=Job("switch-llm", "back", "true") if go_back else None,
        questions_back=(row("old chat"),),
        halt=Job("switch-llm", "halt", "true"),
        serving=True,
    )


@pytest.fixture
def attempt(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def run(host: Host, step: Proved) -> None:
        monkeypatch.setattr(switch, "run_job", host.run_job)
        monkeypatch.setattr(switch, "run_simple", host.run_simple)
        monkeypatch.setattr(switch, "ask", host.ask)
        monkeypatch.setattr(switch, "say", lambda *_: None)
        switch_and_prove(None, SimpleNamespace(name="h1"), step)  # type: ignore[arg-type]

    return run


FAILED = StepFailedError("it died")


def test_a_good_switch_is_committed(attempt: Callable[..., None]) -> None:
    host = Host(wrong={"version"})
    attempt(host, proved())
    assert host.done == ["switch", "commit"], "a warning does not stop it"


@pytest.mark.parametrize("host", [Host({"switch": FAILED}), Host(wrong={"chat"})])
def test_a_failure_goes_back_and_says_so(attempt: Callable[..., None], host: Host) -> None:
    with pytest.raises(WentBackError, match="endpoint llm serves its last proven release again"):
        attempt(host, proved())
    assert host.done == ["switch", "back"]


def test_all_wrong_answers_are_named(attempt: Callable[..., None]) -> None:
    with pytest.raises(WentBackError, match="gpus: seen; chat: seen"):
        attempt(Host(wrong={"gpus", "chat"}), proved())


@pytest.mark.parametrize("host", [Host({"switch": FAILED, "back": FAILED}), Host({"switch": FAILED}, {"old chat"})])
def test_going_back_that_fails_is_never_called_serving(attempt: Callable[..., None], host: Host) -> None:
    with pytest.raises(NothingServesError, match="going back failed too") as caught:
        attempt(host, proved())
    assert "hands needed" in str(caught.value)
    assert "serves its last" not in str(caught.value)


def test_with_nothing_to_go_back_to_it_is_stopped(attempt: Callable[..., None]) -> None:
    host = Host(wrong={"chat"})
    with pytest.raises(NothingServesError, match="is stopped: there was no other proven release"):
        attempt(host, proved(go_back=False))
    assert host.done == ["switch", "halt"]


def test_a_stop_that_fails_is_said(attempt: Callable[..., None]) -> None:
    with pytest.raises(NothingServesError, match="stopping it failed too"):
        attempt(Host({"halt": FAILED}, {"chat"}), proved(go_back=False))


@pytest.mark.parametrize("error", [ConnectionLostError("cable"), NotStartedError("another run is at it")])
def test_a_lost_host_and_a_busy_one_are_left_alone(attempt: Callable[..., None], error: StepFailedError) -> None:
    host = Host({"switch": error})
    with pytest.raises(type(error)):
        attempt(host, proved())
    assert host.done == ["switch"]


def test_a_connection_lost_on_the_way_back_is_neither(attempt: Callable[..., None]) -> None:
    host = Host({"switch": FAILED, "back": ConnectionLostError("cable")})
    with pytest.raises(NothingServesError, match="was going back to its proven release when cable"):
        attempt(host, proved())


# -- judging

BASE = "http://127.0.0.1:8000"


def said(content: str | None, status: int = 200) -> Answer:
    return Answer(status, json.dumps({"choices": [{"message": {"content": content}}]}), 1.0)


@pytest.mark.parametrize("content", ["42", "The answer is 42.", "17 + 25 = 42", "**42**", "\n42\n"])
def test_a_right_chat_answer_passes(content: str) -> None:
    assert judge_safely(chat(BASE, "m"), said(content)).passed


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        (said("41"), "answered with '41'"),
        (said("142"), "answered with '142'"),
        (said("420"), "answered with '420'"),
        (said(""), "answered with ''"),
        (said(None), "answered with ''"),
        (said("!" * 40), "repeats one token"),
        (said("42 " + "!" * 40), "repeats one token"),
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
def test_a_wrong_chat_answer_is_refused_and_shown(answer: Answer, seen: str) -> None:
    verdict = judge_safely(chat(BASE, "m"), answer)
    assert not verdict.passed
    assert seen in verdict.seen


@given(st.text(), st.integers(0, 599))
def test_no_answer_breaks_a_judge(body: str, status: int) -> None:
    for question in (
        chat(BASE, "m"),
        model_name(BASE, "m"),
        version(BASE, "1"),
        gpus_inside("c", 8),
        release_runs("c", "0123456789ab"),
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
    row = release_runs("rackwright-llm", "abc")
    assert row.judge(Answer(0, "abc", 0)).passed
    assert row.judge(Answer(0, "", 0)) == Verdict(False, "the container runs nothing, expected abc")
    assert not row.judge(Answer(0, "abcd", 0)).passed


@pytest.mark.parametrize(
    ("body", "passed", "seen"),
    [
        ("", True, "none"),
        ("NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.", False, "fallen off"),
        ("NVRM: Xid (PCI:0000:1b:00): 45, pid=1, Ch 00000010", True, "Xid (PCI:0000:1b:00): 45"),
        ("NVRM: Xid (PCI:0000:1b:00): 48, pid=1, DBE\nNVRM: Xid (PCI:0000:1b:00): 45, pid=1, Ch 0", False, "45"),
    ],
)
def test_errors_of_the_hardware_refuse_and_those_of_programs_are_shown(body: str, passed: bool, seen: str) -> None:
    verdict = gpu_errors("/var/lib/rackwright/endpoints/llm").judge(Answer(0, body, 0))
    assert verdict.passed == passed
    assert seen in verdict.seen


def test_every_gpu_must_be_listed_inside() -> None:
    row = gpus_inside("rackwright-llm", 2)
    assert row.judge(Answer(0, "GPU 0: NVIDIA B200 (UUID: GPU-1)\nGPU 1: NVIDIA B200 (UUID: GPU-2)", 0)).passed
    assert not row.judge(Answer(0, "GPU 0: NVIDIA B200 (UUID: GPU-1)", 0)).passed
    failed = row.judge(Answer(255, "Failed to initialize NVML: Unknown Error", 0))
    assert "Unknown Error" in failed.seen


@pytest.mark.parametrize("post", [False, True])
def test_a_refused_connection_is_no_answer_in_curls_words(post: bool) -> None:
    script = http("http://127.0.0.1:1/v1/models", 5, post)
    done = subprocess.run(["sh", "-c", script], input="{}", capture_output=True, text=True, check=True)
    answer = parse_answer(done.stdout.splitlines())
    assert answer.status == 0
    assert "curl: (7)" in judge_safely(chat(BASE, "m"), answer).seen
