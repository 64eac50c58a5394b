"""A canary's answers beside those of before: the batch on its host, the verdict, and what is kept."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from rackwright.cli.evaluate import Evaluation, _sentence
from rackwright.concerns.endpoint.proof.proof_row import Verdict, judge_safely, parse_answer
from rackwright.concerns.endpoint.quality.batch import BatchAnswers, NotListeningError, RawAnswer, parse_batch
from rackwright.concerns.endpoint.quality.long_prompt import long_prompt
from rackwright.concerns.endpoint.quality.quality_check import AskedRelease, QualityCheck, refuse_bad_questions
from rackwright.concerns.endpoint.quality.quality_verdict import Baseline, quality_verdict
from rackwright.concerns.endpoint.quality.question_run import QuestionRun
from rackwright.concerns.endpoint.quality.side_by_side import side_by_side
from rackwright.concerns.endpoint.quality.stored_baseline import store_baseline, stored_baseline
from rackwright.hostside import host_script
from rackwright.messages import RackwrightError, ReadingError
from rackwright.quality.chat_answer import ChatAnswer
from rackwright.quality.question import QualityQuestion
from rackwright.record.answer_files import KEPT, answers_file, store_answers, stored_answers
from rackwright.rollout.turn_queue import Outcome, Turn, TurnQueue
from rackwright.rollout.waves import Node
from rackwright.settings.host_settings import SITE, HostSettings
from rackwright.settings.sections import Gate


class Engine(ThreadingHTTPServer):
    """Answers each question with its own text; `waiting` is what its metrics say."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.waiting = 0
        self.longest, self.status, self.forgets = 100_000, 500, False
        self.says: int | None = None
        self.now = self.most = 0
        self.lock = threading.Lock()
        self.bodies: list[str] = []


class Handler(BaseHTTPRequestHandler):
    server: Engine

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        if self.path == "/long/v1/models":
            more = {} if self.server.says is None else {"max_model_len": self.server.says}
            self._send(200, json.dumps({"object": "list", "data": [{"id": "m", **more, "created": 7}]}))
            return
        rows = f'lab:waiting{{model="a b"}} {float(self.server.waiting)}\nlab:waiting_more 9\n'
        # One request less waits after each look.
        self.server.waiting = max(0, self.server.waiting - 1)
        self._send(200, rows)

    def _answer_long(self, request: dict[str, Any]) -> None:
        words = request["messages"][0]["content"].split()
        if len(words) > self.server.longest - request["max_tokens"]:
            if self.server.status:
                self._send(self.server.status, json.dumps({"error": "too long"}))
            self.close_connection = True
            return
        content = words[3].strip(".") if words[0] == "The" and not self.server.forgets else "?"
        message = {"choices": [{"message": {"content": content}}], "usage": {"prompt_tokens": len(words)}}
        self._send(200, json.dumps(message))

    def do_POST(self) -> None:
        engine = self.server
        with engine.lock:
            engine.now += 1
            engine.most = max(engine.most, engine.now)
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.path.startswith("/long"):
            self._answer_long(json.loads(body))
            return
        threading.Event().wait(0.1 if body != "hang" else 3)
        with engine.lock:
            engine.now -= 1
            engine.bodies.append(body)
        self._send(500 if body == "fail" else 200, body)

    def _send(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):
            self.wfile.write(text.encode())


@pytest.fixture
def engine() -> Iterator[Engine]:
    server = Engine()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


def ask(engine: Engine, bodies: list[str], **more: Any) -> list[str]:
    """Run the host's script as it is, without the check of the listener that stands before it."""
    base = f"http://127.0.0.1:{engine.server_port}"
    values = {"limit": 2, "within": 20, "most": 1000, "at_once": 2, "metrics": f"{base}/metrics", **more}
    script = host_script("ask_questions", url=f"{base}/v1", waiting="lab:waiting", **values)
    rows = "".join(f"{number} {body}\n" for number, body in enumerate(bodies))
    ran = subprocess.run(["dash", "-c", script], input=rows, capture_output=True, text=True, timeout=60, check=True)
    return ran.stdout.splitlines()


def test_questions_are_asked_two_at_a_time_and_come_back_whole(engine: Engine) -> None:
    odd = ["plain", '{"a": "b\\nc"}', "ünï 漢字", "%s %d $x `y` \\", "fail", "x" * 3000]
    found = parse_batch(ask(engine, odd))
    assert sorted(found.answers) == [0, 1, 2, 3, 4, 5]
    assert [found.answers[number].body for number in range(5)] == odd[:5]
    assert found.answers[5].body == "x" * 1000
    assert [found.answers[number].status for number in (0, 4)] == [200, 500]
    assert engine.most == 2
    assert not found.waited
    ask(engine, ["a", "b", "c"], at_once=1)
    assert engine.most == 2
    assert not list(Path("/run/rackwright").glob("questions.*"))


def test_an_answer_that_does_not_come_has_no_status(engine: Engine) -> None:
    found = parse_batch(ask(engine, ["hang", "b"], limit=1))
    assert found.answers[0].status == 0
    assert found.answers[1].body == "b"


def test_nothing_is_asked_while_other_requests_wait(engine: Engine) -> None:
    engine.waiting = 3
    found = parse_batch(ask(engine, ["a", "b"]))
    assert found.waited
    assert len(found.answers) == 2
    engine.waiting = 1000
    engine.bodies.clear()
    held = parse_batch(ask(engine, ["a", "b"], within=2))
    assert (held.waited, held.answers, engine.bodies) == (True, {}, [])
    assert parse_batch(ask(engine, ["a"], metrics="-")).answers


def long_row(engine: Engine, longest: int) -> Verdict:
    row = long_prompt(f"http://127.0.0.1:{engine.server_port}/long", "m", longest, 10)
    ran = subprocess.run(["dash", "-c", row.script], capture_output=True, text=True, timeout=60, check=True)
    return judge_safely(row, parse_answer(ran.stdout.splitlines()))


def test_one_prompt_fills_nine_tenths_of_the_longest_sequence(engine: Engine) -> None:
    good = long_row(engine, 20_000)
    assert good.passed
    tokens = int(good.text.split()[0])
    assert 0.88 * 20_000 <= tokens <= 0.91 * 20_000
    engine.forgets = True
    assert (long_row(engine, 20_000).passed, long_row(engine, 20_000).warns) == (False, True)
    engine.longest = 10_000
    cut = long_row(engine, 20_000)
    assert (cut.passed, cut.measured, cut.warns) == (False, True, False)
    engine.status = 0
    died = long_row(engine, 20_000)
    assert (died.passed, died.measured) == (False, True)
    engine.longest = 100
    assert not long_row(engine, 20_000).measured


def test_a_sequence_that_the_settings_do_not_name_is_asked_of_the_server(engine: Engine) -> None:
    assert not long_row(engine, 0).measured
    engine.says = 20_000
    tokens = int(long_row(engine, 0).text.split()[0])
    assert 0.88 * 20_000 <= tokens <= 0.91 * 20_000
    engine.says = 2048
    assert not long_row(engine, 0).measured
    assert "2048" in long_row(engine, 0).text


def test_output_that_is_no_answer_is_refused() -> None:
    packed = base64.b64encode(gzip.compress(b"x", mtime=0)).decode()
    assert parse_batch([f"7 200 0.5 {packed}"]).answers[7].body == "x"
    with pytest.raises(NotListeningError):
        parse_batch(["not asked: its container does not run", "", "0 0"])
    for odd in ("7 200 0.5", f"x 200 1 {packed}", "7 200 1 %%%", f"7 200 1 {packed[:-8]}"):
        with pytest.raises(ReadingError):
            parse_batch([odd])


def question(number: int) -> QualityQuestion:
    return QualityQuestion.model_validate(
        {"id": f"q{number}", "messages": [{"role": "user", "content": f"ask {number}"}],
         "judge": {"kind": "exact", "answer": "a"}}
    )  # fmt: skip


ASKED = AskedRelease("llm", "abc", "http://127.0.0.1:1", "m", False, "vllm")


def check(number: int) -> QualityCheck:
    return QualityCheck(ASKED, None, tuple(map(question, range(number))), "hash", 2, 120)


def commanded(at: int, timeout: float, program: str = "true") -> QualityQuestion:
    """Return a question that a command judges."""
    return QualityQuestion.model_validate(
        {
            "id": f"c{at}",
            "messages": [{"role": "user", "content": "?"}],
            "judge": {"kind": "command", "argv": [program], "timeout": timeout},
        }
    )


class Answering(QuestionRun):
    """Has every answer at once: the last one with a status of its own, and cut short."""

    status = 200

    def _sent(self, bodies: Mapping[int, str]) -> BatchAnswers:
        def raw(number: int) -> RawAnswer:
            is_last = number == len(self.check.questions) - 1
            answer = {"finish_reason": "length" if is_last else "stop", "message": {"content": "b" if is_last else "a"}}
            return RawAnswer(self.status if is_last else 200, 0.1, json.dumps({"choices": [answer]}))

        return BatchAnswers({number: raw(number) for number in bodies})


@pytest.mark.parametrize(("status", "is_kept"), [(200, True), (400, True), (0, False), (429, False), (503, False)])
def test_only_answers_of_the_model_are_kept_for_the_next_comparison(status: int, is_kept: bool) -> None:
    run = Answering(cast("Any", None), check(3), ASKED, lambda _: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Answering, "status", status)
        found = run.ask()
    assert found.score == 2
    assert found.are_the_release_s == is_kept
    assert found.cut == (status == 200)
    shown = _sentence(Evaluation("h1", "llm", check(3), found))
    assert ("max_tokens" in shown) == (status == 200)
    assert ("without an answer" in shown) != is_kept


def test_the_waiting_host_hears_between_two_commands_that_judge() -> None:
    questions = (*(commanded(at, 10) for at in range(25)), question(0))
    held: list[int] = []
    many = replace(check(0), questions=questions)
    run = Answering(cast("Any", None), many, ASKED, lambda _: None, lambda: held.append(1))
    assert run.ask().score == 25
    assert len(held) == 2 + 25
    assert many.seconds >= check(26).seconds + 250


def settings_with(tmp_path: Path, **gate: Any) -> HostSettings:
    """Return a host's settings with a file of one question that a command judges."""
    row = commanded(1, 200, "./judge").model_dump_json(by_alias=True, exclude_defaults=True)
    (tmp_path / "q.jsonl").write_text(row)
    model = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
    values = {"model": model, "allow_from": ["10.0.0.0/8"], "gate": {"questions": "q.jsonl", **gate}}
    return HostSettings.model_validate(values, context={SITE: tmp_path})


def test_a_judge_that_is_missing_or_too_slow_is_refused_before_any_question(tmp_path: Path) -> None:
    with pytest.raises(RackwrightError) as missing:
        refuse_bad_questions(settings_with(tmp_path))
    assert missing.value.code == "RW3719"
    (tmp_path / "judge").write_text("#!/bin/sh\n")
    with pytest.raises(RackwrightError):
        refuse_bad_questions(settings_with(tmp_path))
    (tmp_path / "judge").chmod(0o755)
    refuse_bad_questions(settings_with(tmp_path))
    with pytest.raises(RackwrightError) as slow:
        refuse_bad_questions(settings_with(tmp_path, commit_deadline=250))
    assert slow.value.code == "RW3708"


def answered(number: int, wrong: int = 0) -> dict[str, bool]:
    return {f"q{at}": at >= wrong for at in range(number)}


def test_only_a_loss_beyond_chance_and_allowance_is_refused() -> None:
    before = Baseline(answered(100), "release abc")
    assert not quality_verdict(check(100), before, answered(100, 10), "").passed
    assert quality_verdict(check(100), before, answered(100, 2), "").passed
    assert quality_verdict(check(100), before, answered(100), "").passed
    assert quality_verdict(check(100), before, answered(100, 10), "").figure == 0.9


def test_without_a_baseline_nothing_is_refused_and_it_is_said_text() -> None:
    found = quality_verdict(check(10), Baseline({}, "no release served here"), answered(10, 9), "")
    assert (found.passed, found.measured) == (True, True)
    assert "no baseline: no release served here" in found.text
    unasked = quality_verdict(check(10), Baseline(answered(10), "x"), {}, "its container does not run")
    assert not unasked.measured


def test_a_server_that_ends_under_the_questions_is_refused_whatever_it_answered() -> None:
    why, before = "its container does not run", Baseline(answered(10), "x")
    for right in ({}, answered(3)):
        for baseline in (before, Baseline({}, "none")):
            gone = quality_verdict(check(10), baseline, right, why, is_gone=True)
            assert (gone.passed, gone.measured) == (False, True)
    assert quality_verdict(check(10), before, answered(3), "40 s are over").passed


def test_the_verdict_says_how_many_questions_had_no_answer_at_all() -> None:
    dead = quality_verdict(check(40), Baseline(answered(40), "x"), answered(40, 18), "", unserved=18)
    assert "18 without an answer" in dead.text
    assert "without an answer" not in quality_verdict(check(40), Baseline({}, "x"), answered(40, 18), "").text


def test_answers_kept_on_disk_are_judged_in_the_folder_of_their_questions(tmp_path: Path) -> None:
    (tmp_path / "judge").write_text("#!/bin/sh\ngrep -q right\n")
    (tmp_path / "judge").chmod(0o755)
    judged = replace(check(0), questions=(commanded(0, 9, "./judge"), commanded(1, 9, "./judge")), folder=tmp_path)
    store_baseline(tmp_path, judged, ASKED, {"c0": ChatAnswer("right"), "c1": ChatAnswer("wrong")})
    found = stored_baseline(tmp_path, judged, ASKED)
    assert found
    assert found.right == {"c0": True, "c1": False}
    assert "not judged" not in found.source


def test_slow_judges_of_kept_answers_have_a_limit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store_baseline(tmp_path, check(5), ASKED, {f"q{at}": ChatAnswer("a") for at in range(5)})
    clock = iter(range(0, 9999, check(5).seconds // 2))
    monkeypatch.setattr("rackwright.quality.kept_answers.time.monotonic", lambda: float(next(clock)))
    found = stored_baseline(tmp_path, check(5), ASKED)
    assert found
    assert found.right == {"q0": True}
    assert found.source.endswith(f", 4 not judged in {check(5).seconds} s")


def test_what_was_right_before_stands_first_and_secrets_are_masked() -> None:
    right, wrong = ChatAnswer("a"), ChatAnswer("hf_abcdefghijklmnopqrstuvwxyz012345")
    text = side_by_side(
        check(3),
        {"q0": wrong, "q1": right, "q2": right},
        {"q0": False, "q1": True, "q2": True},
        {"q0": wrong, "q1": wrong, "q2": right},
        {"q0": False, "q1": False, "q2": True},
    )
    assert text.index("q1") < text.index("q0")
    assert "q2" not in text
    assert "hf_abc" not in text
    assert side_by_side(check(1), {}, {}, {"q0": right}, {"q0": True}) == ""


def test_kept_answers_are_their_owners_alone_and_few(tmp_path: Path) -> None:
    path = answers_file(tmp_path / "runs", "../abc", "f" * 64)
    assert path.parent == tmp_path / "runs" / "answers"
    assert stored_answers(path, 100) is None
    assert store_answers(path, "text")
    assert stored_answers(path, 100) == "text"
    assert stored_answers(path, 3) is None
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    for number in range(KEPT + 5):
        store_answers(answers_file(tmp_path / "runs", str(number), "f" * 64), "x")
    assert len(list(path.parent.iterdir())) == KEPT
    assert not store_answers(Path("/proc/none/answers/x.json"), "x")


def test_a_canary_is_a_host_of_whose_shape_none_is_proven() -> None:
    turns = TurnQueue()
    for number, shape in enumerate(("a", "a", "b")):
        turns.announce(Node(f"h{number}", number, True, shape), Outcome)
    assert [turns.is_canary(f"h{number}") for number in range(3)] == [True, True, True]
    turns.entries["h0"].turn = Turn.FAILED
    assert turns.is_canary("h1")
    turns.entries["h0"].turn = Turn.DONE
    assert [turns.is_canary(f"h{number}") for number in range(3)][1:] == [False, True]


def test_an_answer_must_leave_time_to_tell_the_host_to_wait() -> None:
    assert Gate(questions="q.jsonl").questions_limit == 120
    assert Gate(commit_deadline=30).questions is None
    with pytest.raises(ValueError, match="questions_limit"):
        Gate(questions="q.jsonl", commit_deadline=179)
    assert json.loads(Gate(questions="q.jsonl", commit_deadline=180).model_dump_json())["worse_by"] == 2
