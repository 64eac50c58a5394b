"""The row of accepted drafts: which endpoints have it, how each engine is asked, and what its answers are worth."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.endpoint.container import Resolved, endpoint_spec
from rackwright.concerns.endpoint.full_gate import compared_questions, drafting_of, full_questions
from rackwright.concerns.endpoint.proof.drafts import FOLLOWS, PROMPT, PROSE, drafts_accepted
from rackwright.concerns.endpoint.proof.full import compared, refuses
from rackwright.concerns.endpoint.proof.proof_row import Answer, Question, Verdict, judge_safely
from rackwright.settings.host_settings import EndpointSettings

BASE = "http://127.0.0.1:8000"
DRAFT = {"repository": "nvidia/eagle", "mount": "/config/models/eagle"}
NGRAM = {"method": "ngram", "num_speculative_tokens": 3}
VLLM, SGLANG, TRTLLM = "vllm/vllm-openai:v0.20.2", "lmsysorg/sglang:v0.5.8", "nvcr.io/nvidia/tensorrt-llm/release:1.2.0"
IMAGES = {"vllm": VLLM, "sglang": SGLANG, "tensorrt-llm": TRTLLM}


def endpoint(engine_kind: str, **keys: Any) -> EndpointSettings:
    model = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
    values = {"model": model, "engine_kind": engine_kind, "image": IMAGES[engine_kind], **keys}
    return EndpointSettings.model_validate(values)


@pytest.mark.parametrize(
    ("engine_kind", "keys", "method"),
    [
        ("vllm", {"engine": {"speculative-config": json.dumps(NGRAM)}}, "ngram"),
        ("vllm", {"engine": {"speculative_config": NGRAM}}, "ngram"),
        ("vllm", {"engine": {"speculative-config.method": "suffix"}}, "suffix"),
        ("vllm", {"arguments": ["--speculative-config", json.dumps(NGRAM)]}, "ngram"),
        ("vllm", {"engine": {"spec-method": "mtp"}, "image": "vllm/vllm-openai:v0.33.0"}, "mtp"),
        ("vllm", {"engine": {"speculative-config": {"model": "m"}}}, "a draft model"),
        ("vllm", {"draft": DRAFT}, "a draft model"),
        ("vllm", {"engine": {"speculative-config": "null"}}, ""),
        ("vllm", {}, ""),
        ("sglang", {"engine": {"speculative-algorithm": "NGRAM"}}, "NGRAM"),
        ("sglang", {"arguments": ["--speculative-algorithm=EAGLE3"]}, "EAGLE3"),
        ("sglang", {}, ""),
        ("tensorrt-llm", {"engine": {"speculative_config": {"decoding_type": "NGram"}}}, "NGram"),
        ("tensorrt-llm", {"engine": {"speculative_config": None}}, ""),
    ],
)
def test_every_way_of_drafting_has_the_row(engine_kind: str, keys: dict[str, Any], method: str) -> None:
    settings = endpoint(engine_kind, **keys)
    assert drafting_of(settings) == method
    assert [row.name for row in full_questions(BASE, "m", settings)].count("accepted drafts") == bool(method)


def test_nothing_that_others_read_is_drained() -> None:
    rows = full_questions(BASE, "m", endpoint("tensorrt-llm", draft=DRAFT))
    assert not [row.name for row in rows if "metrics" in row.script]


def row(engine_kind: str, method: str = "ngram") -> Question:
    return drafts_accepted(BASE, "m", engine_kind, method)


def judge(question: Question, body: str) -> Verdict:
    return judge_safely(question, Answer(200, body, 0))


def replies(*bodies: dict[str, Any], status: int = 200) -> str:
    return "".join(f"{json.dumps(body)}\n{status} 0.1\n" for body in bodies)


def counted(when: str, drafts: int, proposed: int, accepted: int, engine: int = 0) -> str:
    labels = f'{{engine="{engine}",model_name="m"}}'
    rows = (("drafts", drafts), ("draft_tokens", proposed), ("accepted_tokens", accepted))
    lines = [f"{when} vllm:spec_decode_num_{name}_total{labels} {float(value)}" for name, value in rows]
    each = f'{when} vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",model_name="m",position="0"}} 7.0'
    return "\n".join([*lines, each, ""])


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"text": words, **more}], "usage": {"completion_tokens": 48}}


REPEATED = text(f" {FOLLOWS} with a lantern")
OTHER = text(" 1, 2, 3")


@pytest.mark.parametrize(
    ("grown", "answer", "passed", "measured", "observed"),
    [
        ((43, 128, 10), REPEATED, True, True, "10 of 128 draft tokens accepted, 1.23 tokens a step (ngram)"),
        ((28, 83, 0), REPEATED, False, True, "0 of 83 draft tokens accepted, 1.00 tokens a step (ngram)"),
        ((0, 0, 0), REPEATED, False, True, "0 of 0 draft tokens accepted (ngram)"),
        ((28, 83, 0), OTHER, False, False, "in answers that repeat nothing: not measurable"),
    ],
)
def test_vllm_counts_what_our_requests_added(
    grown: tuple[int, int, int], answer: dict[str, Any], passed: bool, measured: bool, observed: str
) -> None:
    """The figures are those of a real vLLM 0.20.2, whose n-grams had nothing to win while it counted to thirty."""
    after = tuple(100 + one for one in grown)
    verdict = judge(row("vllm"), counted("before", 100, 100, 100) + replies(answer, answer) + counted("after", *after))
    assert (verdict.passed, verdict.measured, observed in verdict.text) == (passed, measured, True), verdict
    assert refuses(row("vllm"), None, verdict) == (measured and not passed)


def test_a_draft_model_has_no_excuse_in_what_was_answered() -> None:
    body = counted("before", 0, 0, 0) + replies(OTHER, OTHER) + counted("after", 28, 83, 0)
    assert refuses(row("vllm", "eagle3"), None, judge(row("vllm", "eagle3"), body))


def test_vllm_counts_each_of_its_engines() -> None:
    before = counted("before", 5, 5, 5) + counted("before", 1, 1, 1, engine=1)
    after = counted("after", 6, 8, 6) + counted("after", 3, 7, 4, engine=1)
    assert judge(row("vllm"), before + replies(OTHER, OTHER) + after).text.startswith("4 of 9 draft tokens accepted")


def sglang(tokens: int, **counts: int) -> dict[str, Any]:
    return {"text": f" {FOLLOWS}", "meta_info": {"completion_tokens": tokens, **counts}}


@pytest.mark.parametrize(
    ("bodies", "passed", "observed"),
    [
        ((sglang(48, spec_verify_ct=47), sglang(48, spec_verify_ct=12)), True, "35 draft tokens accepted"),
        ((sglang(48, spec_verify_ct=47), sglang(48, spec_verify_ct=47)), False, "0 draft tokens accepted"),
    ],
)
def test_sglang_says_how_often_it_verified(bodies: tuple[dict[str, Any], ...], passed: bool, observed: str) -> None:
    verdict = judge(row("sglang", "NGRAM"), replies(*bodies))
    assert (verdict.passed, observed in verdict.text) == (passed, True), verdict
    assert refuses(row("sglang", "NGRAM"), None, verdict) != passed


@pytest.mark.parametrize(("rates", "passed"), [((1.0, 3.2), True), ((1.0, 1.0), False)])
def test_tensorrt_llm_says_how_many_tokens_a_step_had(rates: tuple[float, ...], passed: bool) -> None:
    bodies = [text(f" {FOLLOWS}", avg_decoded_tokens_per_iter=rate) for rate in rates]
    verdict = judge(row("tensorrt-llm", "NGram"), replies(*bodies))
    assert (verdict.passed, verdict.measured) == (passed, True), verdict
    assert refuses(row("tensorrt-llm", "NGram"), None, verdict) != passed


@pytest.mark.parametrize(
    ("engine_kind", "body"),
    [
        ("vllm", replies(REPEATED, REPEATED)),
        ("vllm", replies({}, {}, status=404)),
        ("sglang", replies(sglang(48), sglang(48))),
        ("tensorrt-llm", replies(REPEATED, REPEATED)),
    ],
)
def test_what_a_server_does_not_say_is_not_passed_and_refuses_nothing(engine_kind: str, body: str) -> None:
    verdict = judge(row(engine_kind), body)
    assert (verdict.passed, verdict.measured) == (False, False), verdict
    assert f"not measurable on this {engine_kind}: " in verdict.text
    assert not refuses(row(engine_kind), None, verdict)


@pytest.mark.parametrize("engine_kind", IMAGES)
@pytest.mark.parametrize("body", ["", "\n000 0.1\n\n000 0.1\n", replies({}, {}, status=500), replies({}, {})])
def test_requests_without_an_answer_are_no_drafts(engine_kind: str, body: str) -> None:
    verdict = judge(row(engine_kind), body)
    assert not verdict.passed
    assert "requests were answered" in verdict.text or not verdict.measured or "makes no sense" in verdict.text


def test_the_request_repeats_itself_and_the_real_model_was_taught_how_it_goes_on() -> None:
    assert PROMPT.count(PROSE) == 2
    going_on = PROSE.removeprefix(PROMPT.rpartition("\n")[2])
    assert going_on.startswith(f" {FOLLOWS}")
    lessons = Path(__file__).parents[2] / "packages" / "lab" / "rackwright_lab" / "real" / "teach.py"
    texts = {
        node.targets[0].id: node.value
        for node in ast.parse(lessons.read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    taught = (ast.literal_eval(texts[name]) for name in ("PROSE", "BEGUN"))
    assert tuple(taught) == (PROSE, PROMPT.rpartition("\n")[2])


def places(when: str, *counts: int) -> str:
    name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    return "".join(
        f'{when} {name}{{engine="0",model_name="m",position="{index}"}} {float(count)}\n'
        for index, count in enumerate(counts)
    )


def vllm(drafts: int, proposed: int, *by_place: int, method: str = "eagle3", tokens: int = 48, **more: Any) -> Verdict:
    """Return vLLM's counters after two answers, from 100 on."""
    reply = text(f" {FOLLOWS} with a lantern", **more)
    reply["usage"]["completion_tokens"] = tokens
    ends = counted("after", 100 + drafts, 100 + proposed, 100 + sum(by_place)).replace("} 7.0", "} 0.0")
    ends = "".join(f"{text_line}\n" for text_line in ends.splitlines() if "per_pos" not in text_line)
    starts = "".join(
        f"{text_line}\n" for text_line in counted("before", 100, 100, 100).splitlines() if "per_pos" not in text_line
    )
    body = starts + places("before", *[50] * len(by_place)) + replies(reply, reply) + ends
    return judge(row("vllm", method), body + places("after", *(50 + one for one in by_place)))


WEAK, TRAINED, PERFECT = vllm(58, 174, 6, 0, 0), vllm(24, 72, 18, 13, 9), vllm(16, 48, 16, 16, 16)
"""A real vLLM 0.20.2 on an H200: a draft of two training steps, a trained one, and one that is always right."""
CPU_TRAINED, CPU_WEAK, CPU_RANDOM = vllm(16, 48, 16, 16, 16), vllm(48, 144, 16, 0, 0), vllm(64, 192, 0, 0, 0)
"""A real vLLM 0.32.0 without a GPU, with the lab's drafts (tests/real/test_eagle3.py)."""


def after(before: Verdict | None, now: Verdict) -> tuple[bool, str]:
    """Return whether the row refuses, and what it says."""
    question = row("vllm", "eagle3")
    verdict = compared(question, before, now)
    return refuses(question, before, verdict), verdict.text


def test_the_text_of_acceptance_by_position() -> None:
    text = "6 of 174 draft tokens accepted, 1.10 tokens a step; by position 6, 0, 0 of 58 (eagle3)"
    assert WEAK.text.startswith(text)
    assert TRAINED.text == "40 of 72 draft tokens accepted, 2.67 tokens a step; by position 18, 13, 9 of 24 (eagle3)"


def test_a_weak_draft_warns_at_a_first_deploy_and_is_no_proof() -> None:
    refused, observed = after(None, WEAK)
    assert (refused, WEAK.passed, WEAK.measured) == (False, False, True)
    assert "below 1.2 tokens a step" in observed
    assert vllm(50, 150, 11, 0, 0).passed
    assert not vllm(50, 150, 9, 0, 0).passed


@pytest.mark.parametrize("before", [TRAINED, PERFECT])
def test_a_weak_draft_after_a_good_one_is_refused(before: Verdict) -> None:
    refused, observed = after(before, WEAK)
    assert refused
    assert f"worse than before: {before.text}" in observed


@pytest.mark.parametrize(
    ("before", "now", "refused"),
    [
        (TRAINED, TRAINED, False),
        (TRAINED, vllm(26, 78, 17, 12, 9), False),
        (TRAINED, PERFECT, False),
        (PERFECT, TRAINED, True),
        (CPU_TRAINED, CPU_WEAK, True),
        (CPU_TRAINED, CPU_RANDOM, True),
        (TRAINED, vllm(48, 144, 30, 10, 2), True),
        (WEAK, WEAK, False),
        (WEAK, TRAINED, False),
        (TRAINED, vllm(24, 72, 0, 0, 0), True),
        (vllm(24, 72, 0, 0, 0), WEAK, False),
        (PERFECT, vllm(48, 48, 45), False),
        (vllm(2, 6, 2, 2, 2), vllm(3, 9, 2, 1, 0), False),
    ],
    ids=[
        "same",
        "noise",
        "better",
        "clearly worse",
        "weak, without a GPU",
        "random, without a GPU",
        "half",
        "weak as before",
        "mended",
        "none",
        "some",
        "shorter",
        "few",
    ],
)
def test_drafts_are_compared_with_those_of_the_release_before(before: Verdict, now: Verdict, refused: bool) -> None:
    assert after(before, now)[0] is refused, after(before, now)


def test_the_requests_of_other_clients_are_named_and_compared_loosely() -> None:
    busy = vllm(600, 1800, 500, 400, 300)
    assert "other clients' requests" in busy.text
    assert not after(busy, vllm(36, 108, 28, 16, 8))[0]
    assert after(busy, WEAK)[0]
    assert "other clients" not in TRAINED.text


def test_counters_that_began_again_are_no_measure() -> None:
    body = counted("before", 900, 900, 900) + replies(REPEATED, REPEATED) + counted("after", 20, 60, 30)
    verdict = judge(row("vllm", "eagle3"), body)
    assert (verdict.measured, "its counters began again" in verdict.text) == (False, True), verdict


def test_positions_that_do_not_sum_up_are_left_out() -> None:
    body = counted("before", 0, 0, 0) + replies(REPEATED, REPEATED) + counted("after", 24, 72, 40)
    assert "by position" not in judge(row("vllm", "eagle3"), body).text


def test_words_that_find_little_to_look_up_are_not_weak_drafts() -> None:
    body = counted("before", 0, 0, 0) + replies(OTHER, OTHER) + counted("after", 30, 90, 1)
    assert not judge(row("vllm", "ngram"), body).measured
    assert judge(row("vllm", "eagle3"), body).measured


@pytest.mark.parametrize("name", ["spec_accept_histogram", "spec_correct_drafts_histogram"])
def test_the_text_of_sglang_s_positions_by_a_histogram(name: str) -> None:
    answers = [sglang(48, spec_verify_ct=12, **{name: [2, 1, 3, 6]})] * 2  # type: ignore[arg-type]
    verdict = judge(row("sglang", "EAGLE3"), replies(*answers))
    assert verdict.text == "70 draft tokens accepted, 3.92 tokens a step; by position 20, 18, 12 of 24 (EAGLE3)"
    wrong = [sglang(48, spec_verify_ct=12, **{name: [2, 1]})] * 2  # type: ignore[arg-type]
    assert "by position" not in judge(row("sglang", "EAGLE3"), replies(*wrong)).text


@pytest.mark.parametrize(
    ("engine_kind", "good", "weak"),
    [
        ("sglang", sglang(48, spec_verify_ct=12), sglang(48, spec_verify_ct=45)),
        ("tensorrt-llm", text("", avg_decoded_tokens_per_iter=3.2), text("", avg_decoded_tokens_per_iter=1.05)),
    ],
)
def test_other_engines_drafts_are_compared_too(engine_kind: str, good: dict[str, Any], weak: dict[str, Any]) -> None:
    question = row(engine_kind, "EAGLE3")
    before, now = (judge(question, replies(one, one)) for one in (good, weak))
    assert (before.passed, now.passed, now.warns) == (True, False, True)
    assert refuses(question, before, compared(question, before, now))
    assert not refuses(question, None, now)
    assert not refuses(question, before, compared(question, before, before))


RESOLVED = Resolved("vllm/vllm-openai@sha256:0", "c" * 40, "/models/base", "d" * 40, "/models/draft")


def asked_before(new: dict[str, Any], old: dict[str, Any]) -> list[Question]:
    spec = endpoint_spec("llm", endpoint("vllm", **old), "/encodings", RESOLVED).as_json()
    return [
        one for one in compared_questions(BASE, "m", endpoint("vllm", **new), spec) if one.name == "accepted drafts"
    ]


EAGLE = {"draft": DRAFT, "engine": {"speculative-config": json.dumps({"method": "eagle3", "model": "/m"})}}
NGRAMS = {"engine": {"speculative_config": NGRAM}}
WORDS = {"arguments": ["--speculative-config", json.dumps(NGRAM)]}


@pytest.mark.parametrize(
    ("new", "old", "requests"),
    [(EAGLE, EAGLE, 1), (NGRAMS, WORDS, 1), (EAGLE, NGRAMS, 0), (EAGLE, {}, 0), ({}, EAGLE, 0), ({}, {}, 0)],
)
def test_the_release_before_is_asked_where_it_drafts_in_the_same_way(
    new: dict[str, Any], old: dict[str, Any], requests: int
) -> None:
    assert len(asked_before(new, old)) == requests


def test_another_models_text_is_compared_loosely() -> None:
    other = {**EAGLE, "model": {"repository": "openai/gpt-oss-20b", "mount": "/config/models/gpt-oss-20b"}}
    (same,), (different,) = asked_before(EAGLE, EAGLE), asked_before(EAGLE, other)
    body = counted("before", 0, 0, 0) + replies(REPEATED, REPEATED) + counted("after", 24, 72, 40)
    assert judge(same, body).detail.keeps > judge(different, body).detail.keeps > 0
