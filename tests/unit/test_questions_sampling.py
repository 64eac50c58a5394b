"""The row of sampled answers: nonsense of a real server is refused, and no healthy model is, however it samples."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from rackwright.concerns.endpoint.full_gate import full_questions
from rackwright.concerns.endpoint.proof.codes import code_of
from rackwright.concerns.endpoint.proof.drafts import BEGUN, PROSE
from rackwright.concerns.endpoint.proof.full import refuses
from rackwright.concerns.endpoint.proof.proof_row import Answer, Verdict, judge_safely
from rackwright.concerns.endpoint.proof.sampling import MILD, OWN, sampled_answers
from rackwright.settings.host_settings import EndpointSettings

ROW = sampled_answers("http://127.0.0.1:8000", "m", "ngram")
TEXT = PROSE.removeprefix(BEGUN)
WANDERS = (
    " climbed the stairs to the top of the tower and looked over the sea, where no boat was to be seen that night."
)
ONE_OTHER_WORD = TEXT.replace("lantern", "lamp")
REAL_NONSENSE = {
    "its own": (
        " climbed be six,ghter six 22 22 every boat about on the bay found its\ufffdThe sea is wide and\ufffd seven,",
        " climbed the stairs\ufffd\ufffd six,A lighthouse stood on the bay found its way home before the storm came",
        " climbedbo seven, 20,YTh onUse six six,\ufffd six,A lighthouse stood onlim six4 put on the bay found itsau",
    ),
    "0.3": (
        " climbed the stairs 23, foundoat six,\ufffd six\ufffd six,\ufffd\x19 sixThe sea is wide and The wind",
        ' climbed the stairs with a w six,nd on" sixou six_weather", ", andern six,\ufffd sixBir six 7,ame sixly',
    ),
}
"""What a real vLLM 0.32.0 (CPU) answered with n-gram drafts, by its temperature; greedily it gave the text."""


def verdict_on(greedy: str, unset: tuple[str, ...], mild: tuple[str, ...], status: int = 200) -> Verdict:
    bodies = [{"choices": [{"text": text}]} for text in (greedy, *unset, *mild)]
    return judge_safely(ROW, Answer(200, "".join(f"{json.dumps(body)}\n{status} 0.1\n" for body in bodies), 0))


def test_the_nonsense_of_a_real_server_is_refused_at_a_first_deploy() -> None:
    verdict = verdict_on(TEXT, REAL_NONSENSE["its own"], REAL_NONSENSE["0.3"])
    assert refuses(ROW, None, verdict), verdict
    assert ("(ngram)" in verdict.text, " 14% " in verdict.text) == (True, True), verdict
    assert code_of([ROW.name]) == "RW0417"


def test_one_odd_word_in_ten_is_nonsense_too() -> None:
    """As with a draft model that is nearly always right: what it gets wrong becomes nonsense, and the rest does not."""
    spoilt = " ".join("six," if at % 10 == 4 else term for at, term in enumerate(TEXT.split()))
    assert refuses(ROW, None, verdict_on(TEXT, (spoilt,) * OWN, (spoilt,) * MILD))


@pytest.mark.parametrize(
    ("unset", "mild"),
    [
        ((TEXT,) * OWN, (TEXT,) * MILD),
        ((TEXT, WANDERS, ONE_OTHER_WORD), (TEXT, TEXT)),
        ((TEXT + "\n\nAnd then, one spring, the lamp was lit again.",) * OWN, (TEXT,) * MILD),
        ((WANDERS, WANDERS, WANDERS), (TEXT, ONE_OTHER_WORD)),
        (REAL_NONSENSE["its own"], (TEXT, TEXT)),
    ],
    ids=[
        "word for word",
        "one leaves the text",
        "continues after it",
        "samples widely",
        "its own temperature is very high",
    ],
)
def test_healthy_models_pass_however_they_sample(unset: tuple[str, ...], mild: tuple[str, ...]) -> None:
    verdict = verdict_on(TEXT, unset, mild)
    assert verdict.passed, verdict
    assert "of the text comes back" in verdict.text


@pytest.mark.parametrize("greedy", ["", WANDERS, "1, 2, 3"])
def test_a_model_that_does_not_follow_the_text_greedily_is_not_measured(greedy: str) -> None:
    verdict = verdict_on(greedy, REAL_NONSENSE["its own"], REAL_NONSENSE["0.3"])
    assert (verdict.passed, verdict.measured) == (False, False), verdict
    assert verdict.text.startswith("not measurable: its greedy answer does not follow the text")


def test_a_server_without_completions_is_not_measured_and_one_that_fails_is_refused() -> None:
    texts = (TEXT, (TEXT,) * OWN, (TEXT,) * MILD)
    assert not verdict_on(*texts, status=404).measured
    failed = verdict_on(*texts, status=500)
    assert (refuses(ROW, None, failed), failed.text) == (True, "0 of 6 requests were answered")


def endpoint(**keys: Any) -> EndpointSettings:
    model = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
    return EndpointSettings.model_validate({"model": model, **keys})


def test_only_endpoints_that_draft_have_the_row() -> None:
    draft = {"repository": "nvidia/eagle", "mount": "/config/models/eagle"}
    for keys, times in (({}, 0), ({"draft": draft}, 1)):
        assert [row.name for row in full_questions("http://h", "m", endpoint(**keys))].count("sampled answers") == times


def test_one_request_is_greedy_some_name_no_temperature_and_some_a_mild_one() -> None:
    curl = 'curl() { printf "%s\\n200 0.1\\n" "$(cat)"; }'
    run = subprocess.run(
        ["sh", "-c", f"{curl}\n{ROW.script}"], input=ROW.stdin, text=True, capture_output=True, check=True
    )
    sent = [json.loads(row) for row in run.stdout.splitlines() if row.startswith("{")]
    assert [body.get("temperature", "none") for body in sent] == [0, "none", "none", "none", 0.3, 0.3]
    assert run.stdout.count("200 0.1") == len(sent)
