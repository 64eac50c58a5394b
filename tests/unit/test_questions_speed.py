"""The row of speed: asked warm and greedily on both sides, the median counts, and the budget is above its own noise."""

from __future__ import annotations

import json
import random
import subprocess

import pytest

from rackwright.concerns.endpoint.proof.full import compared, refuses
from rackwright.concerns.endpoint.proof.proof_row import Answer, Question, Verdict, judge_safely
from rackwright.concerns.endpoint.proof.several import post_several
from rackwright.concerns.endpoint.proof.speed import BUDGET, LEAST, TRIES, speed

ROW = speed("http://127.0.0.1:8000", "m")


def tries(*seconds: float, status: int = 200, tokens: int = 100) -> str:
    body = json.dumps({"usage": {"completion_tokens": tokens}})
    return "".join(f"{body}\n{status} {one}\n" for one in seconds)


def verdict_on(*seconds: float, cold: float = 9.0, row: Question = ROW) -> Verdict:
    return judge_safely(row, Answer(200, tries(cold, *seconds), 0.0))


def test_it_asks_greedily_and_once_more_than_it_measures() -> None:
    assert ROW.stdin is not None
    assert json.loads(ROW.stdin)["temperature"] == 0
    assert f"seq {1 + TRIES}" in ROW.script


def test_the_first_answer_does_not_count_and_the_median_does() -> None:
    assert verdict_on(2, 2, 2, 2, 2, cold=90).figure == pytest.approx(0.02)
    assert verdict_on(1, 9, 2, 2, 2).figure == pytest.approx(0.02)


def after(before: Verdict, now: Verdict) -> bool:
    """Return True if the row refuses."""
    return refuses(ROW, before, compared(ROW, before, now))


@pytest.mark.parametrize(("ms", "then"), [(2.6, 4.3), (3.3, 4.3), (5.4, 8.7), (6.7, 5.4)])
def test_what_one_release_gave_on_a_real_gpu_is_not_refused(ms: float, then: float) -> None:
    assert not after(verdict_on(*[ms / 10] * 5), verdict_on(*[then / 10] * 5))


@pytest.mark.parametrize(("ms", "then"), [(3.3, 13.3), (20, 60), (2.6, 5.3), (20, 20 * BUDGET + 0.6)])
def test_a_slower_release_is_refused(ms: float, then: float) -> None:
    before, now = verdict_on(*[ms / 10] * 5), verdict_on(*[then / 10] * 5)
    assert after(before, now)
    assert "worse than before" in compared(ROW, before, now).text


def test_the_budget_widens_with_the_noise_that_was_measured_and_not_with_one_outlier() -> None:
    steady, slow, noisy = verdict_on(*[2] * 5), verdict_on(*[4] * 5), verdict_on(1.4, 1.6, 2, 2.6, 2.8)
    assert after(steady, slow)
    assert not after(noisy, slow)
    assert after(verdict_on(2, 2, 2, 2, 30), slow)


def test_noise_alone_refuses_nothing() -> None:
    chance = random.Random(5)
    for _ in range(2000):
        before, now = (verdict_on(*(2 * chance.uniform(1, 1.65) for _ in range(5))) for _ in range(2))
        assert not after(before, now), (before, now)


@pytest.mark.parametrize(
    "body", [tries(*[1] * 6, status=500), "\n000 0.1\n" + tries(*[1] * 5), tries(*[1] * LEAST), "", tries(1, 1) + "x"]
)
def test_missing_answers_are_no_speed(body: str) -> None:
    verdict = judge_safely(ROW, Answer(200, body, 0.0))
    assert (verdict.passed, "requests were answered" in verdict.text) == (False, True), verdict


def test_a_slow_release_is_measured_by_fewer_answers() -> None:
    assert judge_safely(ROW, Answer(200, tries(*[60] * (1 + LEAST)), 0.0)).passed


def test_no_answer_is_asked_for_when_the_time_is_up() -> None:
    command = post_several("http://127.0.0.1:9", 50, 5, within=1).replace("curl ", "sleep 0.4; : ")
    done = subprocess.run(["sh", "-c", f"body=x; {command}"], capture_output=True, timeout=20, check=False)
    assert done.returncode == 0, done
