"""`rackwright advise` in a site that has measured: its own runs stand before what others measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rackwright.cli.main import main
from rackwright_bench.figures.figures import Measured, Request, as_json
from rackwright_bench.history import figures_of
from rackwright_bench.record import bench_of
from rackwright_engines.advice import Load
from rackwright_engines.own import OwnFigure, own_advice
from tests import texts

ASKED = ["advise", "--gpu", "RTX PRO 6000", "--context", "1k", "--concurrency", "32", "--output", "1k"]
PRODUCT = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"
ARRIVALS = {"high": {"concurrency": 32, "requests": 10}, "low": {"concurrency": 1, "requests": 10}}
BURSTS = {"bursts": {"concurrency": 32, "requests": 10, "rate": 8.0}}


def cell(rate: float, failed: int = 0, marks: tuple[str, ...] = ()) -> Measured:
    """Ten answers of 1024 tokens to prompts as long, at so many tokens a second."""
    rows = tuple(Request(50, 5, 500, number + 1, 1024) for number in range(10))
    return Measured(rows, 10240 / rate, input_tokens=1024.0, failed=failed, marks=marks)


def condition_event(release: str, **more: Any) -> dict[str, Any]:
    """Make the event by which a run records its conditions."""
    return {
        "time": "2026-11-23T10:00:00.000+00:00",
        "kind": "measuring",
        "host": "gpu-03",
        "endpoint": "llm",
        "model": "openai/gpt-oss-120b",
        "release": release,
        "image": "vllm/vllm-openai:v0.14.1",
        "engine": "vllm",
        "drafting": "",
        "gpus": [PRODUCT],
        "gpu_count": 1,
        "switches": {},
        "settings": {"arrivals": ARRIVALS | BURSTS},
        **more,
    }


def events(conditions: list[dict[str, Any]], **cells: Measured) -> list[dict[str, Any]]:
    begin = {"kind": "begin", "purpose": "bench"}
    rows = [
        {"kind": "cell", "name": name.replace("__", "."), "text": "", "measured": as_json(one)}
        for name, one in cells.items()
    ]
    return [begin, *conditions, *rows, {"kind": "end", "text": "done"}]


def write_record(site: Path, run: str, found: list[dict[str, Any]]) -> None:
    (site / "runs").mkdir(exist_ok=True)
    (site / "runs" / f"{run}.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in found))


def advice_lines(capsys: pytest.CaptureFixture[str], site: Path, *words: str) -> list[str]:
    assert main([*ASKED, "--site", str(site), *words]) == 0
    return capsys.readouterr().out.splitlines()


def test_own_runs_stand_first_with_date_release_and_hardware_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_record(tmp_path, "20261123-100000-bench", events([condition_event("a" * 64)], random__high=cell(390.66)))
    write_record(
        tmp_path,
        "20261123-110000-bench",
        events([condition_event("b" * 64, drafting="eagle3")], random__high=cell(480)),
    )
    out = advice_lines(capsys, tmp_path)
    assert out[:4] == [
        "measured by this site, the newest run of each release:",
        "1. llm on gpu-03 with eagle3, release bbbbbbbbbbbb (1 GPU): 480.0 tokens/s",
        "     480.0 tokens/s, first token after 50 ms at 1024 tokens in, 1024 out, 32 at once [your run"
        " 20261123-110000-bench of 2026-11-23: random.high; openai/gpt-oss-120b by vllm, vllm/vllm-openai:v0.14.1;"
        f" 1 x {PRODUCT}]",
        "2. llm on gpu-03, release aaaaaaaaaaaa (1 GPU): 390.7 tokens/s",
    ]
    assert "run 20261123-100000-bench of 2026-11-23" in out[4]
    assert out[5] == "profiles, by what others measured or advise:"
    assert out[6].startswith("3. rtx_pro_6000_vllm (1 GPU): 100 %")


def test_without_runs_of_its_own_a_site_gets_what_it_got(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert advice_lines(capsys, tmp_path)[0].startswith("1. rtx_pro_6000_vllm (1 GPU): 100 %")


def test_a_record_that_is_damaged_is_left_out_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_record(
        tmp_path, "20261123-100000-bench", [{"kind": "begin", "purpose": "bench"}, {"kind": "cell", "measured": {}}]
    )
    assert main([*ASKED, "--site", str(tmp_path)]) == 0
    assert "20261123-100000-bench is damaged" in capsys.readouterr().err


def test_a_gpu_without_a_profile_is_ranked_by_own_runs_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_record(
        tmp_path,
        "20261123-100000-bench",
        events([condition_event("c", gpus=["NVIDIA H100 80GB HBM3"])], random__high=cell(9)),
    )
    words = ["advise", "--gpu", "H100", "--context", "1k", "--concurrency", "32", "--site", str(tmp_path)]
    assert main(words) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_host_is_told_of_its_own_model_first_and_of_doubtful_figures_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = {
        "a": {"repository": "acme/x"},
        "b": {"model": "alias", "repository": "openai/gpt-oss-120b"},
        "c": {"model": "gpt-oss-120b"},
    }
    for number, (release, more) in enumerate(others.items()):
        found = events([condition_event(release, **more)], random__high=cell(900))
        write_record(tmp_path, f"20261123-10000{number}-bench", found)
    doubtful = events([condition_event("d")], random__high=cell(2000, marks=("too hot",)))
    write_record(tmp_path, "20261123-100009-bench", doubtful)
    out = advice_lines(capsys, tmp_path, "--model", "openai/gpt-oss-120b")
    assert {out[1][:29], out[3][:29]} == {"1. llm on gpu-03, release b (", "2. llm on gpu-03, release c ("}
    assert f"1 release {texts.WITH_DOUBTFUL_FIGURES} (d), 1 release {texts.OF_ANOTHER_MODEL}, " in out[-1]
    assert sum("llm on gpu-03" in row for row in advice_lines(capsys, tmp_path, "--all")) == 4


def figures(*conditions: dict[str, Any], run: str = "20261123-100000-bench", **cells: Measured) -> list[OwnFigure]:
    return list(figures_of(bench_of(run, events(list(conditions), **cells))))


def test_cells_that_failed_or_wait_for_a_rate_rank_nothing() -> None:
    found = figures(
        condition_event("a"), x__high=cell(5, failed=1), x__bursts=cell(5), x__low=cell(7, marks=("too hot",))
    )
    assert [(one.cell, one.rate, one.marks) for one in found] == [("x.low", 7.0, ("too hot",))]


def test_each_variant_of_a_comparison_has_its_own_release() -> None:
    base, draft = condition_event("a", variant="baseline"), condition_event("b", variant="eagle3", drafting="eagle3")
    both = {"baseline:x__high": cell(100), "eagle3:x__high": cell(120)}
    found = list(figures_of(bench_of("r", events([base, draft, base], **both))))
    assert [(one.variant, one.release, one.drafting) for one in found] == [
        ("baseline", "a", ""),
        ("eagle3", "b", "eagle3"),
    ]


def ranked(found: list[OwnFigure], concurrency: int) -> list[tuple[str, float]]:
    return [(one.figures[0].release, one.rate) for one in own_advice("RTX PRO 6000", Load(1024, concurrency), found)]


def test_the_nearest_load_comes_before_the_fastest_figure() -> None:
    found = [
        *figures(condition_event("a"), x__high=cell(900)),
        *figures(condition_event("b"), x__low=cell(80)),
        *figures(condition_event("c"), x__low=cell(90)),
    ]
    assert ranked(found, 1) == [("c", 90.0), ("b", 80.0), ("a", 900.0)]
    assert [one.is_far for one in own_advice("RTX PRO 6000", Load(1024, 1), found)] == [False, False, True]


def test_the_newest_run_of_a_cell_counts() -> None:
    again = figures(condition_event("a"), run="20261124-100000-bench", x__high=cell(50))
    assert ranked([*again, *figures(condition_event("a"), x__high=cell(900))], 32) == [("a", 50.0)]
    assert own_advice("B200", Load(1024, 32), again) == []
