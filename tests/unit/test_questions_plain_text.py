"""The row that asks for plain text: nonsense is refused, a wrong distance is a warning, and only where it is set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from rackwright.concerns.endpoint.full_gate import full_questions
from rackwright.concerns.endpoint.proof.codes import code_of
from rackwright.concerns.endpoint.proof.full import refuses
from rackwright.concerns.endpoint.proof.plain_text import PROMPT, plain_text
from rackwright.concerns.endpoint.proof.proof_row import Answer, Verdict, judge_safely
from rackwright.settings.host_settings import EndpointSettings
from rackwright_lab.standins.engine.reply import completion

ROW = plain_text("http://127.0.0.1:8000", "openai/gpt-oss-120b")
ROOT = Path(__file__).parents[2]
WORKED = (
    "\n\n**Step 1.** Average speed: \\(180 \\div 3 = 60\\) km/h.\n\n**Step 2.** 20 % of 60 is 12, so it is slower: "
    "48 km/h.\n\n**Step 3.** In 2 hours: 48 × 2 = 96 km.\n\n**Answer:** 180 + 96 = **276 km**."
)
SHORT = " 60 km/h * 0.8 = 48 km/h; 48*2 = 96 km; 180 + 96 = 276 km"
WANDERS = " We need to compute the total distance. The user wants to see all steps, so let us first note what is given."


def verdict_on(text: str | None, status: int = 200) -> Verdict:
    return judge_safely(ROW, Answer(status, json.dumps({"choices": [{"text": text}]}), 3.2))


def test_the_lab_s_table_of_answers_counts_for_plain_texts() -> None:
    assert completion(PROMPT, {"answers": {PROMPT: "six ghter wide"}}) == "six ghter wide"
    assert "276" in completion(PROMPT, {"answers": {"another": "six ghter wide"}})


@pytest.mark.parametrize("text", [WORKED, SHORT, completion(PROMPT, {})])
def test_the_right_distance_proves_it(text: str) -> None:
    assert verdict_on(text) == Verdict(True, "276 km, in 3.2 s")


@pytest.mark.parametrize("text", [WANDERS, SHORT.replace("276", "2760"), SHORT.replace("276", "1,276")])
def test_another_distance_is_a_warning(text: str) -> None:
    verdict = verdict_on(text)
    assert (verdict.passed, verdict.warns, refuses(ROW, None, verdict)) == (False, True, False)


@pytest.mark.parametrize("text", ["", None, "!" * 200, "six,\ufffd six\ufffd 22 six,ghter\ufffd" * 5])
def test_nonsense_and_nothing_are_refused(text: str | None) -> None:
    assert refuses(ROW, None, verdict_on(text))
    assert code_of([ROW.name]) == "RW0427"


@pytest.mark.parametrize("status", [404, 500])
def test_an_error_is_refused(status: int) -> None:
    verdict = verdict_on("", status)
    assert (refuses(ROW, None, verdict), str(status) in verdict.text) == (True, True)


def test_it_asks_as_the_guide_does() -> None:
    assert ROW.stdin is not None
    request = json.loads(ROW.stdin)
    assert (request["max_tokens"], request["temperature"]) == (300, 0.7)
    assert all(part in request["prompt"] for part in ("180 km in 3 hours", "by 20%", "next 2 hours"))


def test_it_is_asked_where_it_is_set_and_the_playbook_s_profiles_set_it() -> None:
    model = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}

    def names(**gate: bool) -> list[str]:
        endpoint = EndpointSettings.model_validate({"model": model, "gate": gate})
        return [row.name for row in full_questions("http://h", "m", endpoint)]

    assert ("plain text" in names(), "plain text" in names(plain_text=True)) == (False, True)
    profiles = {path.stem: yaml.safe_load(path.read_text()) or {} for path in (ROOT / "group_vars").glob("*.yml")}
    assert {name for name, values in profiles.items() if (values.get("gate") or {}).get("plain_text")} == {
        "dgx_spark_eagle3",
        "dgx_spark_eagle3_playbook",
        "dgx_spark_draft_target",
        "dgx_spark_newest",
    }
