"""Runs as the guide on EAGLE-3 prints them: its own figures give its own tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rackwright.messages import RackwrightError
from rackwright_bench.figures.compare import estimate
from rackwright_bench.figures.figures import TPOT, Drafting, Measured, Request, as_json
from rackwright_bench.record import Bench
from rackwright_bench.report.markdown import markdown
from rackwright_bench.report.table import table
from rackwright_bench.suites.loading import load_suite

NO_DRAFTING = Drafting(why_not="no drafting")


def cell(rate: float, ttft: float, tpot: float, drafting: Drafting = NO_DRAFTING) -> Measured:
    """Make a cell of two answers with 1,024 tokens, to prompts of as many."""
    one = Request(ttft, tpot, ttft + 1023 * tpot, 1.0, 1024)
    return Measured((one, one), seconds=2048 / rate, input_tokens=1024.0, drafting=drafting)


def run(cells: dict[str, Measured], suite: str, compare: str = "", name: str = "r", **conditions: object) -> Bench:
    settings = load_suite(suite).model_dump(mode="json", exclude_none=True)
    return Bench(name, {"compare": compare}, {"settings": settings, **conditions}, cells=cells)


# -- its figures


def test_means_and_the_total_are_those_of_vllm_bench_serve() -> None:
    """The guide has 177.71 tokens a second of answers and 355.43 in all, of prompts and answers of one length."""
    found = cell(177.71, 98.43, 5.54)
    assert found.total_rate == pytest.approx(355.42)
    rows = (
        Request(90.0, 5.0, 1000.0, 1.0, 10),
        Request(110.0, 7.0, 1000.0, 2.0, 10),
        Request(400.0, 0.0, 400.0, 3.0, 1),
    )
    mixed = Measured(rows, seconds=3.0, input_tokens=30.0)
    assert (mixed.mean("ttft"), mixed.mean(TPOT), mixed.total_rate) == (200.0, 6.0, 37.0)
    figures = as_json(mixed)["figures"]
    assert (figures["ttft_mean"], figures["tpot_mean"], figures["total_rate"]) == (200.0, 6.0, 37.0)
    assert estimate(mixed, "total_rate").value == pytest.approx(37.0)
    assert "200/6 ms" in table({"a.b": mixed})


def test_a_mean_has_the_interval_of_its_standard_error() -> None:
    rows = tuple(Request(90.0 + 20 * (number % 2), 5.0, 1000.0, 1.0 + number, 10) for number in range(100))
    found = estimate(Measured(rows, seconds=100.0), "ttft_mean")
    assert (found.value, round(found.low, 2), round(found.high, 2)) == (100.0, 98.03, 101.97)


# -- its second experiment: draft models across, the best in bold

HEADS = {
    "baseline:random.one": cell(177.71, 98.43, 5.54),
    "throughput_1:random.one": cell(180.67, 95.12, 5.45, Drafting(1.71, 0.7058, (0.7058,))),
    "throughput_3:random.one": cell(124.73, 78.23, 8.43, Drafting(1.59, 0.1979, (0.5496, 0.0426, 0.0016))),
}
HEADS_TABLE = """\
| random | baseline | throughput_1 | throughput_3 |
| --- | --- | --- | --- |
| Maximum request concurrency | 1 | 1 | 1 |
| Output token throughput (tok/s) | 177.71 | **180.67** | 124.73 |
| Total token throughput (tok/s) | 355.42 | **361.34** | 249.46 |
| Mean TTFT (ms) | 98.43 | 95.12 | **78.23** |
| Mean TPOT (ms) | 5.54 | **5.45** | 8.43 |
| Acceptance rate (%) | – | **70.58** | 19.79 |
| Acceptance length | – | **1.71** | 1.59 |
| Acceptance rate @ Position 0 (%) | – | **70.58** | 54.96 |
| Acceptance rate @ Position 1 (%) | – | – | 4.26 |
| Acceptance rate @ Position 2 (%) | – | – | 0.16 |"""


def test_draft_models_are_side_by_side_text() -> None:
    assert markdown([run(HEADS, "seed003-2", "baseline,throughput_1,throughput_3")]) == HEADS_TABLE


def test_the_best_is_one_of_those_with_as_many_requests_at_once_text() -> None:
    four = {"baseline:random.four": cell(390.66, 255.92, 10.0), "lmsys:random.one": cell(125.09, 453.62, 7.56)}
    found = markdown([run({**HEADS, **four}, "seed003-2", "baseline,throughput_1,throughput_3,lmsys")]).splitlines()
    assert found[0] == "| random | baseline | throughput_1 | throughput_3 | lmsys | baseline |"
    assert found[2] == "| Maximum request concurrency | 1 | 1 | 1 | 1 | 4 |"
    assert found[3] == "| Output token throughput (tok/s) | 177.71 | **180.67** | 124.73 | 125.09 | 390.66 |"


def test_a_variant_that_failed_keeps_its_column_text() -> None:
    failed = {"long_context:random.one": replace(cell(1.0, 1.0, 1.0), failed=1)}
    found = markdown([run({**HEADS, **failed}, "seed003-2", "baseline,throughput_1,throughput_3,long_context")])
    assert "| Mean TTFT (ms) | 98.43 | 95.12 | **78.23** | – |" in found.splitlines()
    assert found.splitlines()[-1] == "- long_context:random.one: 1 of 3 requests failed"


# -- its first experiment: engines across, a run each


def test_engines_are_side_by_side_text() -> None:
    vllm = run({"random.one": cell(177.71, 98.43, 5.54)}, "seed003-1", name="v", engine="vllm")
    trtllm = run({"random.one": cell(116.55, 82.8, 8.51)}, "seed003-1", name="t", engine="tensorrt-llm")
    found = markdown([vllm, trtllm]).splitlines()
    assert found[0] == "| random | vllm | tensorrt-llm |"
    assert found[3:] == [
        "| Output token throughput (tok/s) | **177.71** | 116.55 |",
        "| Total token throughput (tok/s) | **355.42** | 233.10 |",
        "| Mean TTFT (ms) | 98.43 | **82.80** |",
        "| Mean TPOT (ms) | **5.54** | 8.51 |",
    ]
    again = run({"random.one": cell(177.71, 98.43, 5.54)}, "seed003-1", name="v2", engine="vllm")
    assert markdown([vllm, again]).splitlines()[0] == "| random | v | v2 |"


def test_patterns_of_one_concurrency_are_named_text() -> None:
    names = ("throughput_high", "burstiness_mid")
    found = markdown([run({f"random_s.{name}": cell(1.0, 1.0, 1.0) for name in names}, "seed003")]).splitlines()
    assert found[2:4] == [
        "| Pattern of arrival | throughput_high | burstiness_mid |",
        "| Maximum request concurrency | 32 | 32 |",
    ]


# -- its third experiment: shares of the baseline, a cell each


def test_shares_are_a_cell_each_text() -> None:
    ratios = {"random_s.throughput_low": (0.793, 1.135), "random_s.throughput_high": (0.903, 0.521)}
    cells = {f"baseline:{name}": cell(100.0, 100.0, 5.0) for name in [*ratios, "random_m.throughput_low"]}
    for name, (rate, first) in ratios.items():
        cells[f"eagle3:{name}"] = cell(100 * rate, 100 * first, 5.0, Drafting(1.5, 0.496, (0.5,)))
    assert markdown([run(cells, "seed003", "baseline,eagle3")]).split("\n\n") == [
        "| Output token throughput: eagle3 as a share of baseline | random_s | random_m |\n| --- | --- | --- |\n"
        "| throughput_low | 79.3% | – |\n| throughput_high | 90.3% | – |",
        "| Accept ratio: eagle3 | random_s | random_m |\n| --- | --- | --- |\n"
        "| throughput_low | 49.6% | – |\n| throughput_high | 49.6% | – |",
        "| TTFT: eagle3 as a share of baseline | random_s | random_m |\n| --- | --- | --- |\n"
        "| throughput_low | 113.5% | – |\n| throughput_high | 52.1% | – |",
    ]


def test_of_one_pattern_the_variants_are_down_and_one_that_was_lost_keeps_its_row_text() -> None:
    sets, drafts = ("prompt_256", "prompt_2048"), {"draft_1": 1.1, "draft_8": 0.8}
    cells = {f"baseline:{name}.one": cell(100.0, 50.0, 5.0) for name in sets}
    for variant, rate in drafts.items():
        drafting = Drafting(1.9, 0.874, (0.9,))
        cells |= {f"{variant}:{name}.one": cell(100 * rate, 40.0, 5.0, drafting) for name in sets}
    found = run(cells, "seed002", "baseline,draft_1,draft_4,draft_8")
    lost = replace(found, lost={f"draft_4:{name}.one": "it did not start" for name in sets})
    assert markdown([lost]).split("\n\n") == [
        "| Output token throughput as a share of baseline, one | prompt_256 | prompt_2048 |\n| --- | --- | --- |\n"
        "| draft_1 | 110.0% | 110.0% |\n| draft_4 | – | – |\n| draft_8 | 80.0% | 80.0% |",
        "| Accept ratio, one | prompt_256 | prompt_2048 |\n| --- | --- | --- |\n"
        "| draft_1 | 87.4% | 87.4% |\n| draft_4 | – | – |\n| draft_8 | 87.4% | 87.4% |",
        "| TTFT as a share of baseline, one | prompt_256 | prompt_2048 |\n| --- | --- | --- |\n"
        "| draft_1 | 80.0% | 80.0% |\n| draft_4 | – | – |\n| draft_8 | 80.0% | 80.0% |",
        "- draft_4:prompt_256.one, draft_4:prompt_2048.one: it did not start",
    ]


def test_why_no_draft_was_counted_is_said_once_for_a_variant() -> None:
    names = ("prompt_256.one", "prompt_2048.one")
    cells = {f"baseline:{name}": cell(1.0, 1.0, 1.0, NO_DRAFTING) for name in names}
    cells |= {f"draft_1:{name}": cell(1.0, 1.0, 1.0, Drafting(why_not="drained by each reader")) for name in names}
    found = markdown([run(cells, "seed002", "baseline,draft_1")])
    assert found.splitlines()[-1] == "- draft_1: accepted drafts are not measurable: drained by each reader"


# -- what else their reader must know


def test_doubts_and_lost_cells_stand_below_the_tables_text() -> None:
    short = {name: replace(cell(1.0, 1.0, 1.0), short=2) for name in ("random.one", "random.four")}
    marked = replace(short["random.four"], marks=("a GPU was too hot",))
    found = run({**short, "random.four": marked}, "seed003-2")
    assert markdown([found]).split("\n\n")[1].splitlines() == [
        "- random.one, random.four: 2 answers shorter than asked for: rates do not compare",
        "- random.four: doubtful: a GPU was too hot",
    ]
    lost = replace(found, cells={"random.one": cell(1.0, 1.0, 1.0)}, lost={"random.four": "it ended\nits log"})
    assert markdown([lost]).endswith("\n\n- random.four: it ended")
    assert markdown([lost, replace(lost, id="r2")]).endswith("\n\n- r random.four, r2 random.four: it ended")
    assert "\n\n" not in markdown([run(HEADS, "seed003-2", "baseline,throughput_1,throughput_3")])


def test_a_run_without_figures_is_refused() -> None:
    with pytest.raises(RackwrightError, match="RW1557"):
        markdown([run({}, "seed003-1")])
