"""Rounds of a cell, when they end and what they say together; variants, and the sentence that a comparison comes to."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.loading.host import InventoryHost
from rackwright.messages import SettingsError
from rackwright.record.journal import Event
from rackwright.settings.host_settings import HostSettings
from rackwright_bench.figures.compare import compared, estimate
from rackwright_bench.figures.figures import Drafting, Measured, Request, as_json, measured_of
from rackwright_bench.figures.rounds import Limits, in_pairs, over, pooled, round_numbers
from rackwright_bench.figures.verdict import shares, verdict
from rackwright_bench.record import bench_of
from rackwright_bench.suites.suite import Suite
from rackwright_bench.variants.naming import names_of, on_trial, variant_of


def cell(rate: float, failed: int = 0) -> Measured:
    """Make a cell of ten answers of 100 tokens each at so many tokens a second."""
    seconds = 1000 / rate
    requests = tuple(Request(50, 5, 500, (number + 1) * seconds / 10, 100) for number in range(10))
    return Measured(requests, seconds, failed=failed, drafting=Drafting(2.0, 0.5, (0.75, 0.25)))


# -- when rounds end


def numbers(limits: Limits, widths: list[float], step: float = 10.0) -> list[int]:
    clock, width = itertools.count(0, step), iter(widths)
    return list(round_numbers(limits, lambda: next(width), lambda: float(next(clock))))


def test_rounds_end_when_all_intervals_are_narrow_but_not_before_the_third() -> None:
    assert numbers(Limits(9, 0.05), [0.04]) == [1, 2, 3]
    assert numbers(Limits(9, 0.05), [0.2, 0.06, 0.05]) == [1, 2, 3, 4, 5]
    assert numbers(Limits(4, 0.05), [1.0, 1.0]) == [1, 2, 3, 4]
    assert numbers(Limits(), []) == [1]


def test_no_round_begins_that_would_end_too_late() -> None:
    assert numbers(Limits(9, 0.0, seconds=25), [1.0] * 9) == [1, 2]
    assert numbers(Limits(9, 0.0, seconds=5), [1.0] * 9) == [1]


# -- what they say together


def test_an_interval_over_rounds_is_student_s_on_a_logarithmic_scale() -> None:
    found = over([100.0, 110.0, 121.0])
    around = 4.303 * math.log(1.1) / math.sqrt(3)
    assert found.value == pytest.approx(110)
    assert (found.low, found.high) == pytest.approx((110 * math.exp(-around), 110 * math.exp(around)))
    assert not over([100.0]).is_bounded
    assert over([100.0, 100.0]).width == 0


def test_what_is_the_same_in_both_of_a_round_falls_out_of_pairs() -> None:
    """A machine that grows slower from round to round says nothing of the variants."""
    ratio = in_pairs([100, 80, 60], [140, 112, 84])
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((1.4, 1.4, 1.4))


@given(st.lists(st.floats(1, 1000), min_size=2, max_size=12))
def test_pooled_rounds_keep_each_round_and_all_requests(rates: list[float]) -> None:
    whole = pooled([cell(rate) for rate in rates])
    assert len(whole.requests) == 10 * len(rates)
    assert [one.ended for one in whole.requests] == sorted(one.ended for one in whole.requests)
    assert whole.seconds == pytest.approx(sum(1000 / rate for rate in rates))
    assert estimate(whole, "output_rate") == over([one.output_rate for one in whole.rounds])
    assert (whole.drafting.tokens_a_step, whole.drafting.accepted) == pytest.approx((2.0, 0.5))
    assert whole.drafting.by_position == pytest.approx((0.75, 0.25))


def test_a_cell_that_failed_in_one_round_has_no_figures() -> None:
    whole = pooled([cell(100), cell(100, failed=2)])
    assert whole.failed == 2
    assert list(compared({"a": whole}, {"a": whole})) == []


def test_a_record_tells_its_rounds() -> None:
    events: list[Event] = [{"kind": "begin", "purpose": "bench"}]
    events += [{"kind": "cell", "name": "a", "round": n, "measured": as_json(cell(100 + n))} for n in (1, 2)]
    found = bench_of("run", events).cells["a"]
    assert found.rounds == (cell(101), cell(102))
    assert measured_of(as_json(found)) == replace(found, rounds=())


# -- the sentence

AT = {"s.one": 1, "s.four": 4, "s.eight": 8, "s.many": 32}


def conclusion(ratios: dict[str, list[float]]) -> str:
    one = {name: [cell(100) for _ in rounds] for name, rounds in ratios.items()}
    other = {name: [cell(100 * share) for share in rounds] for name, rounds in ratios.items()}
    return verdict("eagle3", "baseline", shares(one, other, AT))


def test_the_text_of_the_seed_s_conclusion_is_a_sentence() -> None:
    """It pays from moderate concurrency on, and costs at one."""
    sentence = conclusion(
        {
            "s.one": [0.88, 0.885, 0.875],
            "s.four": [0.9, 1.0, 1.1],
            "s.eight": [1.40, 1.39, 1.41],
            "s.many": [1.40, 1.41, 1.39],
        }
    )
    assert sentence == (
        "eagle3 wins at concurrency >= 8 by 1.40x (1.40 to 1.40), and costs 12 % at concurrency 1 (11 to 13 %), and "
        "shows no difference at concurrency 4 (0.78x to 1.28x) (against baseline, tokens a second, 95 % intervals over "
        "3 rounds)"
    )


def test_one_round_proves_nothing_text() -> None:
    sentence = conclusion({"s.one": [0.5], "s.eight": [2.0]})
    assert sentence.startswith("eagle3 cannot be judged everywhere (0.50x to 2.00x): more rounds would tell")
    assert "1 round, which has none" in sentence


def test_an_interval_that_holds_anything_is_no_sameness_text() -> None:
    """Two rounds against a real vLLM: 1.93x, and Student's interval of two is as wide as this."""
    sentence = conclusion({"s.eight": [2.25, 1.64]})
    assert sentence.startswith("eagle3 cannot be judged everywhere (1.92x, anywhere from 0.26x to 14.")


def test_cells_that_no_concurrency_tells_apart_are_named_text() -> None:
    one = {"a": [cell(100)] * 3, "b": [cell(100)] * 3}
    other = {"a": [cell(120)] * 3, "b": [cell(80)] * 3}
    sentence = verdict("x", "y", shares(one, other, {"a": 8, "b": 8}))
    assert sentence.startswith("x wins in a by 1.20x (1.20 to 1.20), and costs 20 % in b (20 to 20 %)")


def test_a_cell_with_failed_requests_says_nothing_text() -> None:
    one, other = {"a": [cell(100)]}, {"a": [cell(100, failed=1)]}
    assert verdict("x", "y", shares(one, other, {"a": 1})) == "x against y: no cell has figures of both"


# -- what the names stand for

SUITE = Suite.model_validate(
    {
        "datasets": {"s": {"kind": "random", "input": 8, "output": 8}},
        "arrivals": {"one": {"concurrency": 1, "requests": 4}},
        "variants": {"wide": {"engine": {"stream-interval": 1}}},
    }
)
DRAFTS = '{"model":"/config/models/eagle3","num_speculative_tokens":1,"method":"eagle3"}'
VLLM = {
    "engine_kind": "vllm",
    "image": "vllm/vllm-openai:v0.14.1",
    "model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"},
    "draft": {"repository": "nvidia/gpt-oss-120b-Eagle3-throughput", "mount": "/config/models/eagle3"},
    "engine": {"speculative-config": DRAFTS, "stream-interval": 20},
}


def entry(**more: object) -> InventoryHost:
    return InventoryHost("a", (), {}, HostSettings.model_validate({**VLLM, **more}), {}, root=Path())


def test_baseline_is_the_settings_without_their_draft() -> None:
    host = entry()
    plain = variant_of("baseline", host, "llm", SUITE, "bench.yml").all_endpoints["llm"]
    assert (plain.draft, plain.engine) == (None, {"stream-interval": 20})
    for name in ("settings", "eagle3"):
        assert variant_of(name, host, "llm", SUITE, "bench.yml") is host.settings


def test_baseline_of_one_of_several_endpoints_leaves_the_others() -> None:
    host = entry(endpoints={"x": {"port": 8000, "gpus": [0]}, "y": {"port": 8001, "gpus": [1], "draft": VLLM["draft"]}})
    made = variant_of("baseline", host, "y", SUITE, "bench.yml")
    assert made.all_endpoints["y"].draft is None
    assert made.all_endpoints["y"].engine == {"stream-interval": 20}
    assert made.all_endpoints["x"] == host.settings.all_endpoints["x"]


def test_a_variant_on_trial_is_never_committed_by_its_host() -> None:
    """With the basic gate, the host would commit on its own."""
    for settings in (
        HostSettings.model_validate(VLLM),
        HostSettings.model_validate({**VLLM, "endpoints": {"llm": {"gate": {"level": "basic"}}}}),
    ):
        made = on_trial(settings, "llm")
        assert made.all_endpoints["llm"].gate.level == "full"
        assert made.all_endpoints["llm"].gate.commit_deadline == settings.all_endpoints["llm"].gate.commit_deadline


@pytest.mark.parametrize(
    ("wanted", "code"), [("baseline", "RW1530"), ("a,a", "RW1530"), ("a,", "RW1530"), ("baseline,egle3", "RW1531")]
)
def test_a_wrong_name_is_refused(wanted: str, code: str) -> None:
    with pytest.raises(SettingsError) as caught:
        [variant_of(name, entry(), "llm", SUITE, "bench.yml") for name in names_of(wanted)]
    assert caught.value.code == code


def test_drafts_that_arguments_ask_for_have_no_baseline() -> None:
    with pytest.raises(SettingsError) as caught:
        variant_of("baseline", entry(arguments=["--speculative-config", DRAFTS]), "llm", SUITE, "bench.yml")
    assert caught.value.code == "RW1532"
