"""What came of a cell and what two of them say of each other: plain values, checked as properties."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from html import escape
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from rackwright.messages import RackwrightError, SettingsError
from rackwright.settings.host_settings import EndpointSettings
from rackwright_bench.aiperf.environment import LOCK
from rackwright_bench.aiperf.results import measured
from rackwright_bench.endpoint_on_host import GpuSample, parse_gpu_sample
from rackwright_bench.figures.acceptance import (
    by_answers,
    counters_path,
    counts_of,
    drafting_of,
    grown_between,
    why_not,
)
from rackwright_bench.figures.compare import FIGURES, compared, estimate, in_percent, ratio_of, sentences
from rackwright_bench.figures.fail_if import broken, fail_if_of
from rackwright_bench.figures.figures import Drafting, Measured, Request, as_json, measured_of
from rackwright_bench.figures.guards import FORCED, forced, others, slowed, switches
from rackwright_bench.figures.rounds import pooled
from rackwright_bench.record import Bench, bench_of
from rackwright_bench.report import plots
from rackwright_bench.report.curves import Curves, curves
from rackwright_bench.report.drawing import curves_of, draw, svg_texts
from rackwright_bench.report.grids import grids
from rackwright_bench.report.page import html
from rackwright_bench.report.table import acceptance, clients_lines, switches_lines, table
from rackwright_engines.options.schema import line_for
from tests.refused import refused

BEFORE = """\
# TYPE vllm:spec_decode_num_drafts counter
vllm:request_success_total{engine="0",finished_reason="stop"} 3.0
vllm:request_success_total{engine="0",finished_reason="length"} 2.0
vllm:spec_decode_num_drafts_total{engine="0"} 10.0
vllm:spec_decode_num_draft_tokens_total{engine="0"} 20.0
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 8.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 5.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="1"} 3.0
"""
AFTER = """\
vllm:request_success_total{engine="0",finished_reason="stop"} 3.0
vllm:request_success_total{engine="0",finished_reason="length"} 14.0
vllm:spec_decode_num_drafts_total{engine="0"} 110.0
vllm:spec_decode_num_draft_tokens_total{engine="0"} 220.0
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 1.08e+02
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 75.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="1"} 33.0
"""
GROWN = grown_between(counts_of(BEFORE), counts_of(AFTER))

milliseconds = st.floats(0.1, 10_000)
requests = st.lists(st.tuples(milliseconds, milliseconds, milliseconds, st.integers(1, 500)), min_size=1, max_size=80)


@st.composite
def cells(draw: st.DrawFn) -> Measured:
    """Any cell that was answered."""
    rows, ended, found = draw(requests), 0.0, list[Request]()
    for ttft, itl, latency, tokens in rows:
        ended += latency / 1000
        found.append(Request(ttft, itl, latency, ended, tokens))
    return Measured(tuple(found), seconds=ended, drafting=Drafting(1.5, 0.5, (0.6, 0.4)))


def steady(count: int = 100, slower: float = 1.0) -> Measured:
    """Make a cell whose answers come one after the other, with a little spread."""
    times = [(50 + number % 7) * slower for number in range(count)]
    ended = [sum(times[: number + 1]) / 1000 for number in range(count)]
    rows = [Request(time / 5, time / 100, time, end, 20) for time, end in zip(times, ended, strict=True)]
    return Measured(tuple(rows), seconds=ended[-1])


# -- accepted drafts


def test_acceptance_is_what_the_counters_grew_by() -> None:
    found = drafting_of("vllm", True, GROWN)
    assert found == Drafting(tokens_a_step=2.0, accepted=0.5, by_position=(0.7, 0.3))


TRTLLM_GROWN = {"trtllm_spec_decode_num_draft_tokens": 300.0, "trtllm_spec_decode_num_accepted_tokens": 120.0}


def test_acceptance_of_tensorrt_llm_is_what_its_prometheus_counters_grew_by_text() -> None:
    found = drafting_of("tensorrt-llm", True, TRTLLM_GROWN, length=3)
    assert found == Drafting(tokens_a_step=2.2, accepted=0.4)
    unknown_length = drafting_of("tensorrt-llm", True, TRTLLM_GROWN)
    assert unknown_length == Drafting(accepted=0.4)
    assert acceptance(unknown_length) == (
        "40.0% of draft tokens accepted; tokens a step not measurable; by position not measurable"
    )
    assert pooled([replace(steady(), drafting=unknown_length)] * 2).drafting == unknown_length
    idle = drafting_of("tensorrt-llm", True, dict.fromkeys(TRTLLM_GROWN, 0.0), length=3)
    assert (idle.tokens_a_step, idle.accepted, bool(idle.why_not)) == (None, None, True)


def statistics(steps: int, drafted: int, accepted: int) -> dict[str, dict[str, int]]:
    names = ("spec_decode_steps", "spec_decode_draft_tokens", "spec_decode_accepted_draft_tokens")
    return {name: {"value": value} for name, value in zip(names, (steps, drafted, accepted), strict=True)}


def test_acceptance_is_what_the_answers_say_where_no_counter_does() -> None:
    rows = [statistics(6, 18, 9), statistics(4, 12, 3), {}]
    answers = by_answers(rows, {"0": 3, "1": 4, "2": 1, "3": 2})
    assert answers == Drafting(tokens_a_step=2.2, accepted=0.4, by_position=(0.7, 0.3, 0.2))
    assert drafting_of("sglang", True, {}, answers) == answers
    assert drafting_of("tensorrt-llm", True, {}, answers) == answers
    assert drafting_of("vllm", True, {}, answers) == answers
    assert drafting_of("vllm", True, GROWN, answers).accepted == 0.5
    assert drafting_of("vllm", False, GROWN, answers).why_not == "no drafting"
    assert by_answers([{}], {}).accepted is None


def test_the_statistics_of_answers_are_read_from_what_aiperf_writes() -> None:
    rows = [request_record(0, "warmup"), request_record(1), request_record(2)]
    for row in rows:
        row["metrics"] |= statistics(5, 15, 6)
    whole: dict[str, Any] = {"pooled_spec_decode_acceptance_histogram": {"0": 4, "2": 6}}
    assert measured(whole, rows).drafting == Drafting(2.2, 0.4, (0.6, 0.6, 0.0)), (
        "the third position too, which no step has won"
    )


def trtllm(version: str, **engine: Any) -> EndpointSettings:
    image = f"nvcr.io/nvidia/tensorrt-llm/release:{version}"
    return EndpointSettings.model_validate({"image": image, "engine": engine})


def test_an_engine_that_does_not_report_it_says_which_option_would_text() -> None:
    without = line_for("tensorrt-llm", "1.4.0rc1")[0]
    key = "per_request_spec_decode_stats"
    text = why_not(trtllm("1.4.0rc1"), without)
    assert (f"1.4.0rc1 has no {key}" in text, "return_perf_metrics" in text) == (True, True)
    assert "return_perf_metrics" not in why_not(trtllm("1.4.0rc1", return_perf_metrics=True), without)
    section = {**without.sections[without.root], key: without.sections[without.root]["return_perf_metrics"]}
    later = replace(without, sections={**without.sections, without.root: section})
    assert why_not(trtllm("1.5.0"), later).endswith(f"set engine: {{{key}: true}}")
    assert f"although {key} is on" in why_not(trtllm("1.5.0", per_request_spec_decode_stats=True), later)
    assert "last moment" in why_not(EndpointSettings(engine_kind="sglang"), later)


def test_only_counters_that_no_reader_drains_are_read() -> None:
    assert counters_path(trtllm("1.4.0rc1")) == ""
    assert counters_path(trtllm("1.4.0rc1", return_perf_metrics=True)) == "/prometheus/metrics"
    assert counters_path(EndpointSettings(engine_kind="vllm")) == "/metrics"
    assert counters_path(EndpointSettings(engine_kind="sglang")) == ""


@pytest.mark.parametrize("engine", ["sglang", "tensorrt-llm"])
def test_engines_that_do_not_count_are_not_measurable(engine: str) -> None:
    found = drafting_of(engine, True, {})
    assert (found.tokens_a_step, bool(found.why_not)) == (None, True)


def test_without_drafting_or_counters_nothing_is_said() -> None:
    assert drafting_of("vllm", False, GROWN).why_not == "no drafting"
    assert drafting_of("vllm", True, {}).why_not == "its /metrics counts no drafts"
    idle = drafting_of("vllm", True, dict.fromkeys(GROWN, 0.0))
    assert (idle.tokens_a_step, idle.accepted, idle.by_position) == (None, None, ())


# -- what aiperf wrote


def request_record(number: int, phase: str = "profiling", **more: Any) -> dict[str, Any]:
    values = {
        "time_to_first_token": 5.0,
        "request_latency": 20.0,
        "inter_token_latency": 1.5,
        "usage_completion_tokens": 8,
    }
    began = number * 10_000_000
    times = {"request_start_ns": began, "request_end_ns": began + 20_000_000, "benchmark_phase": phase}
    return {"metadata": times, "metrics": {name: {"value": value} for name, value in values.items()}, **more}


def test_the_warm_up_does_not_count_and_failed_requests_do() -> None:
    failed = {"code": 500, "type": "HTTPError", "message": "boom"}
    rows = [
        request_record(0, "warmup"),
        request_record(1),
        request_record(2),
        request_record(3, error=failed),
        request_record(4, error=failed),
    ]
    found = measured({"request_throughput": {"avg": 4.0}, "goodput": {"avg": 2.0}}, rows)
    assert (len(found.requests), found.failed, found.errors) == (2, 2, ("2 x 500 HTTPError boom",))
    assert (found.seconds, found.output_rate, found.goodput) == (0.5, 32.0, 2.0)
    assert found.requests[0] == Request(5.0, 1.5, 20.0, 0.02, 8)


def test_a_cell_with_failed_requests_shows_them_instead_of_figures_text() -> None:
    cell = replace(steady(10), failed=3, errors=("3 x 500 boom",))
    text = table({"a.b": cell})
    assert text == "a.b: 3 of 13 requests failed, so it has no figures: 3 x 500 boom"
    assert set(as_json(cell)["figures"]) == {"answered", "failed"}


@given(cells())
def test_a_record_gives_back_what_was_measured(cell: Measured) -> None:
    assert measured_of(json.loads(json.dumps(as_json(cell)))) == cell


@given(cells())
def test_percentiles_rise_and_lie_among_the_values(cell: Measured) -> None:
    for name in ("ttft", "itl", "latency"):
        values = cell.values(name)
        found = [cell.at(name, percentile) for percentile in (50, 90, 99)]
        assert values[0] - 1e-9 <= found[0] <= found[1] <= found[2] <= values[-1] + 1e-9


# -- two runs


@given(cells(), st.sampled_from(FIGURES))
def test_an_interval_holds_its_figure(cell: Measured, figure: Any) -> None:
    found = estimate(cell, figure.name)
    assert found.low <= found.value <= found.high


@given(cells(), st.sampled_from(FIGURES))
def test_a_cell_is_no_better_than_itself(cell: Measured, figure: Any) -> None:
    ratio = ratio_of(estimate(cell, figure.name), estimate(cell, figure.name))
    assert ratio.value == pytest.approx(1)
    assert ratio.low <= 1 <= ratio.high
    assert {row.verdict for row in compared({"a": cell}, {"a": cell})} == {"no difference shown"}


@given(cells(), cells(), st.sampled_from(FIGURES))
def test_turned_round_a_ratio_is_its_reciprocal(one: Measured, other: Measured, figure: Any) -> None:
    forth = ratio_of(estimate(one, figure.name), estimate(other, figure.name))
    back = ratio_of(estimate(other, figure.name), estimate(one, figure.name))
    assert forth.value * back.value == pytest.approx(1)
    if forth.is_bounded:
        assert forth.low * back.high == pytest.approx(1, rel=1e-6)


@given(cells(), cells())
def test_turned_round_better_is_worse(one: Measured, other: Measured) -> None:
    turned = {"better": "worse", "worse": "better", "no difference shown": "no difference shown"}
    forth = {row.figure: row.verdict for row in compared({"a": one}, {"a": other})}
    back = {row.figure: row.verdict for row in compared({"a": other}, {"a": one})}
    assert {figure: turned[verdict] for figure, verdict in forth.items()} == back


def test_twice_as_slow_is_seen_and_said_text() -> None:
    found = list(compared({"a": steady()}, {"a": steady(slower=2)}))
    verdicts = {row.figure.name: row.verdict for row in found}
    assert {verdicts[name] for name in ("output_rate", "request_rate", "ttft_p50", "latency_p50")} == {"worse"}
    assert verdicts["latency_p99"] == "no difference shown"  # a hundred requests hold no bound of their 99th percentile
    (sentence,) = sentences(found, "baseline", "eagle3")
    assert sentence.startswith("eagle3 is slower than baseline in a (-50.0 %, 95 % interval ")


def test_few_requests_have_no_interval() -> None:
    assert not estimate(steady(5), "output_rate").is_bounded
    assert in_percent(ratio_of(estimate(steady(5), "ttft_p50"), estimate(steady(5), "ttft_p50"))) == "+0.0 %"


def test_failed_cells_are_not_compared() -> None:
    assert list(compared({"a": steady()}, {"a": replace(steady(), failed=1)})) == []


# -- limits


@pytest.mark.parametrize(
    ("text", "count"),
    [("ttft_p99 > 5", 1), ("ttft_p99 > 500", 0), ("latency_p50 > 1.1x of RUN", 1), ("latency_p50 > 2.5x of RUN", 0)],
)
def test_a_limit_breaks_where_the_figure_does(text: str, count: int) -> None:
    breaches = list(broken(fail_if_of(text), {"a": steady(slower=2)}, {"a": steady()}))
    assert len(breaches) == count, breaches


def test_what_cannot_be_judged_breaks_a_limit() -> None:
    rule = fail_if_of("ttft_p50 > 1.1x of RUN")
    assert "no figures of this cell" in next(broken(rule, {"a": steady()}, {}))
    assert "requests failed" in next(broken(rule, {"a": replace(steady(), failed=1)}, {"a": steady()}))


@pytest.mark.parametrize("text", ["", "ttft > 5", "ttft_p99 = 5", "ttft_p99 > x", "ttft_p99 > 1.1x of", "tftt_p99 > 5"])
def test_another_form_of_a_limit_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="RW1515"):
        fail_if_of(text)


# -- guards


def test_made_up_acceptance_is_refused() -> None:
    assert forced({}) == ""
    assert FORCED in forced({FORCED: "0"})


def endpoint(**more: Any) -> EndpointSettings:
    return EndpointSettings.model_validate({"engine_kind": "vllm", "image": "a/b:1", **more})


def test_switches_are_told_as_they_are_set() -> None:
    options = switches(endpoint(engine={"no-enable-prefix-caching": True, "stream_interval": 20}))
    assert (options["prefix caching"], options["stream interval"], options["chunked prefill"]) == (
        "off",
        "20",
        "on (default)",
    )
    named = switches(endpoint(arguments=["--enable-prefix-caching", "--max-num-seqs", "8", "--stream-interval=5"]))
    assert (named["prefix caching"], named["most requests at once"], named["stream interval"]) == ("on", "8", "5")
    nested = endpoint(engine_kind="tensorrt-llm", engine={"kv_cache_config": {"enable_block_reuse": False}})
    assert switches(nested)["prefix caching"] == "off"


def test_requests_of_others_and_slow_gpus_mark_a_cell() -> None:
    assert others(GROWN, 12) == ""
    assert others(GROWN, 10) == "2 requests of other clients"
    assert others(GROWN, 11) == "1 request of other clients"
    assert others({}, 10) == ""
    assert (slowed(0x1), slowed(0x60)) == ("", "a GPU was too hot")


@pytest.mark.parametrize(
    ("lines", "look"),
    [
        (["0x0000000000000001, 69.65, 345", "0x0000000000000040, 70.35, 355"], GpuSample(0x41, 140.0, 350.0)),
        (["0x0000000000000020, [N/A], 345"], GpuSample(0x20, None, 345.0)),
        (["[N/A], 69.65, [Unknown Error]"], GpuSample(None, 69.65, None)),
        (['Field "clocks_event_reasons.active" is not a valid field to query.'], None),
        ([], None),
    ],
)
def test_a_gpu_that_leaves_a_figure_out_still_says_the_others(lines: list[str], look: GpuSample | None) -> None:
    """The first line is real: an H100's with driver 580."""
    assert parse_gpu_sample(lines) == look


def test_a_table_has_the_figures_of_the_gpus_that_there_are_text() -> None:
    assert "a: 345 MHz" in table({"a": replace(steady(), gpu={"mhz": 345.0})}).splitlines()
    whole = {"watts": 70.0, "mhz": 345.0, "joules_a_token": 0.25}
    assert "a: 70 W, 345 MHz, 0.25 J a token" in table({"a": replace(steady(), gpu=whole)}).splitlines()


def test_what_holds_for_all_cells_is_said_once() -> None:
    hot = replace(steady(), marks=("a GPU was too hot",))
    rows = table({"a": steady(), "b": hot}).splitlines()
    assert [output_line for output_line in rows if output_line.startswith("each cell: ")] == [
        f"each cell: {acceptance(steady().drafting)}"
    ]
    assert not [output_line for output_line in rows if output_line.startswith("a: ")]
    assert "b: doubtful: a GPU was too hot" in rows


def test_a_doubtful_cell_says_why_below_the_table() -> None:
    assert "a: doubtful: a GPU was too hot" in table({"a": replace(steady(), marks=("a GPU was too hot",))})


def test_what_each_variant_was_told_stands_below_the_table_where_it_differs_text() -> None:
    both = comparison()
    assert list(switches_lines(both)) == ["measured with prefix caching off"]
    other = {**both.variants["eagle3"], "switches": {"prefix caching": "on"}}
    assert list(switches_lines(replace(both, variants={**both.variants, "eagle3": other}))) == [
        "baseline: measured with prefix caching off",
        "eagle3: measured with prefix caching on",
    ]
    assert list(switches_lines(bench_of("r", events()))) == ["measured with prefix caching off"]


# -- record and page


def events(**cells_of: Measured | str) -> list[dict[str, Any]]:
    begin = {"kind": "begin", "purpose": "bench"}
    conditions = {"kind": "measuring", "host": "<b>", "endpoint": "llm", "switches": {"prefix caching": "off"}}
    rows = [
        {"kind": "cell", "name": name.replace("__", "."), "text": cell if isinstance(cell, str) else ""}
        | ({} if isinstance(cell, str) else {"measured": as_json(cell)})
        for name, cell in cells_of.items()
    ]
    return [begin, conditions, *rows, {"kind": "end", "text": "done"}]


def test_a_record_is_a_bench_again_with_the_cells_that_are_there() -> None:
    found = bench_of("r", events(a__one=steady(), a__two="aiperf ended"))
    assert (set(found.cells), found.lost, found.text) == ({"a.one"}, {"a.two": "aiperf ended"}, "done")
    with pytest.raises(RackwrightError, match="RW1513"):
        bench_of("r", [{"kind": "begin", "purpose": "rollout", "what": "rollout x"}])


def test_the_page_needs_no_network_and_runs_nothing_of_a_host() -> None:
    failed = replace(steady(), failed=2, errors=("2 x <script>",))
    report = html(bench_of("r", events(a__one=steady(), a__two=failed)))
    assert "&lt;script&gt;" in report
    assert "<script" not in report
    assert "&lt;b&gt;" in report
    assert "no figure" in report
    assert not any(
        fragment in report.replace("http://www.w3.org/2000/svg", "") for fragment in ("http://", "https://", "src=")
    )


ARRIVALS: dict[str, dict[str, Any]] = {
    "one": {"concurrency": 1, "requests": 8},
    "eight": {"concurrency": 8, "requests": 48},
    "bursts": {"rate": 8, "burstiness": 0.5, "concurrency": 16, "requests": 48},
}


def curve(**cells_of: Measured) -> Curves:
    return curves({f"a.{name}": cell for name, cell in cells_of.items()}, ARRIVALS, "ttft", 50, "t")


def test_a_line_joins_steps_of_one_load_alone_and_every_cell_is_a_point() -> None:
    [series] = curve(bursts=steady(slower=3), eight=steady(slower=2), one=steady()).series
    assert [point.arrival for point in series.points] == ["bursts", "eight", "one"]
    assert [[point.arrival for point in steps] for steps in series.lines] == [["one", "eight"]]


@pytest.mark.parametrize("slower", [1.0, 3.0])
def test_every_point_has_its_name_and_no_name_covers_another(slower: float) -> None:
    picture = curve(bursts=steady(slower=slower), eight=steady(), one=steady())
    figure = plots.draw_curves(asdict(picture))
    figure.savefig(BytesIO(), format="png")
    names = [text for text in figure.axes[0].texts if text.get_text() in ARRIVALS]
    assert len(names) == 3
    boxes = [text.get_window_extent() for text in names]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_the_page_says_what_was_measured_first_what_colours_mean_and_who_else_may_have_asked() -> None:
    record = events(a__one=steady())
    record[1] |= {"engine": "tensorrt-llm", "settings": {"arrivals": ARRIVALS}}
    found = bench_of("r", record)
    page = html(found, ["<svg></svg>"])
    parts = [page.index(f"<h2>{head}</h2>") for head in ("Measured with", "Heat maps", "Throughput and latency")]
    assert parts == sorted(parts)
    assert all(escape(grid.legend) in page for grid in grids(found))
    [text] = clients_lines(found)
    assert text in page
    record[1]["engine"] = "vllm"
    assert not list(clients_lines(bench_of("r", record)))


# -- heat maps of a comparison, as the guide has them


def faster(share: float) -> Measured:
    return replace(steady(slower=1 / share), drafting=Drafting(1.7, 0.7, (0.7,)))


def comparison() -> Bench:
    recorded = events(**{"baseline:a__one": steady(), "baseline:a__four": steady()})
    recorded[0]["compare"] = "baseline,eagle3"
    recorded[1]["variant"] = "baseline"
    other = events(**{"eagle3:a__one": faster(0.8), "eagle3:a__four": faster(1.25)})[1:-1]
    other[0]["variant"] = "eagle3"
    verdict = {"kind": "verdict", "text": "eagle3 wins at concurrency >= 4 by 1.25x"}
    return bench_of("r", [*recorded[:-1], *other, verdict, recorded[-1]])


def test_a_comparison_is_shown_as_shares_of_its_first_variant_text() -> None:
    found = {grid.name: grid for grid in grids(comparison())}
    rates, first = found["eagle3-of-baseline-output-rate"], found["eagle3-of-baseline-ttft-p50"]
    assert (rates.across, rates.down) == (("a",), ("one", "four"))
    assert {name: field.text for name, field in rates.fields.items()} == {
        ("a", "one"): "80.0%",
        ("a", "four"): "125.0%",
    }
    assert {name: field.text for name, field in first.fields.items()} == {
        ("a", "one"): "125.0%",
        ("a", "four"): "80.0%",
    }
    assert [rates.fields[name].tint > 0 for name in (("a", "one"), ("a", "four"))] == [False, True]
    assert [first.fields[name].tint > 0 for name in (("a", "one"), ("a", "four"))] == [False, True]
    assert {name for name in found if name.endswith("accepted")} == {"eagle3-accepted"}
    page = html(comparison())
    assert "80.0%" in page
    assert "eagle3 wins at concurrency &gt;= 4" in page
    assert page.index("variant</th><td>baseline") < page.index("variant</th><td>eagle3")


def test_several_variants_under_one_pattern_are_down_in_one_map_text() -> None:
    recorded = events(**{"baseline:a__one": steady(), "baseline:b__one": steady()})
    recorded[0]["compare"] = "baseline,draft_1,draft_8"
    recorded[1]["variant"] = "baseline"
    for name, rate in {"draft_1": 1.25, "draft_8": 0.8}.items():
        more = events(**{f"{name}:a__one": faster(rate), f"{name}:b__one": faster(rate)})[1:-1]
        more[0]["variant"] = name
        recorded[-1:-1] = more
    found = {grid.name: grid for grid in grids(bench_of("r", recorded))}
    assert list(found)[:3] == [f"each-of-baseline-{name}" for name in ("output-rate", "ttft-p50", "latency-p99")]
    rates, values = found["each-of-baseline-output-rate"], found["output-rate"]
    assert (rates.across, rates.down) == (("a", "b"), ("draft_1", "draft_8"))
    assert [field.text for field in rates.fields.values()] == ["125.0%", "125.0%", "80.0%", "80.0%"]
    assert (values.across, values.down) == (("a", "b"), ("baseline", "draft_1", "draft_8"))
    assert values.title == "Output tokens a second"


# -- pictures as files


def test_each_picture_is_a_file_as_svg_and_as_png(tmp_path: Path) -> None:
    found = comparison()
    drawn = draw(found, tmp_path / "r.jsonl", Path(sys.executable))
    names = {"ttft", "latency", *(grid.name for grid in grids(found))}
    assert set(drawn) == names
    for end in ("svg", "png"):
        assert {path.name for path in tmp_path.glob(f"*.{end}")} == {f"r.{name}.{end}" for name in names}
    [rates] = [one for one in grids(found) if one.name == "eagle3-of-baseline-output-rate"]
    image = imread(tmp_path / f"r.{rates.name}.png")
    colours = {tuple(round(float(part) * 255) for part in pixel[:3]) for row in image[::4] for pixel in row[::4]}
    assert {tuple(round(part * 255) for part in to_rgb(field.colour)) for field in rates.fields.values()} <= colours


def test_names_are_text_and_never_markup_or_formulas(tmp_path: Path) -> None:
    found = bench_of("r", events(**{"$x_<b>$__one": steady()}))
    [ttft, latency] = svg_texts(draw(found, tmp_path / "r.jsonl", Path(sys.executable)))
    assert "$x_&lt;b&gt;$" in ttft
    assert "<b>" not in ttft + latency
    page = html(found, [ttft, latency])
    assert not any(part in page for part in ("<script", "src=", "@import", 'xlink:href="http'))


def test_pictures_of_any_cell_can_be_drawn(tmp_path: Path) -> None:
    tiny = Measured((Request(1e-3, 1e-3, 1e-3, 1.0, 1),), seconds=1e6)
    found = bench_of("r", events(a__one=tiny, b__two=replace(steady(), failed=2)))
    assert curves_of(found)[0].series[0].points
    assert draw(found, tmp_path / "r.jsonl", Path(sys.executable))
    assert not any(picture.series for picture in curves_of(bench_of("r", events(a__one="aiperf ended"))))


def test_pictures_that_cannot_be_drawn_are_an_error_with_a_next_step(tmp_path: Path) -> None:
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho 'ModuleNotFoundError: No module named matplotlib' >&2\nexit 1\n")
    python.chmod(0o755)
    with refused("RW1540", "No module named matplotlib", f"rm -r {tmp_path}/env"):
        draw(comparison(), tmp_path / "r.jsonl", python)
    assert "<svg" not in html(comparison())


def test_the_environment_of_aiperf_has_what_draws_them_as_the_tests_do() -> None:
    assert f"\nmatplotlib=={matplotlib.__version__} " in LOCK.read_text()
