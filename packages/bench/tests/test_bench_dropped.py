"""A variant that the host rolls back: the others are measured, and it is not tried again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from rackwright.concerns.endpoint.switch.follow import NothingServesError, RolledBackError
from rackwright.concerns.lease import LEASED
from rackwright.messages import RackwrightError
from rackwright.record.journal import append, read_record
from rackwright.settings.host_settings import HostSettings
from rackwright_bench.aiperf.words import Target
from rackwright_bench.figures.figures import Measured, Request
from rackwright_bench.figures.rounds import Limits
from rackwright_bench.measuring import Tool
from rackwright_bench.record import bench_of, note_cell
from rackwright_bench.report.markdown import markdown
from rackwright_bench.running import BenchPlan
from rackwright_bench.suites.loading import load_suite
from rackwright_bench.variants import comparing
from rackwright_bench.variants.comparing import Comparison
from rackwright_bench.variants.trial import TrialEndpoint
from rackwright_bench.work import pooled_cells

SETTINGS = HostSettings.model_validate({"model": {"repository": "a/b", "mount": "/config/models/b"}})


class Trial:
    """Serves each variant in turn but those that fail."""

    endpoint = "llm"
    one = type("One", (), {"host": None, "entry": type("Entry", (), {"name": "a"})})

    def __init__(self, failing: dict[str, RackwrightError]) -> None:
        self.failing = failing
        self.serves = ""
        self.tried = list[str]()

    def read(self, _: HostSettings) -> dict[Any, Any]:
        return {LEASED: None}

    def refuse_unproven(self, _: object) -> None:
        pass

    stage = refuse_unproven

    def while_serving(self, _: HostSettings, __: float, work: Callable[[Callable[[], None]], None]) -> None:
        self.tried.append(self.serves)
        if error := self.failing.get(self.serves):
            raise error
        work(lambda: None)


def compared(
    monkeypatch: pytest.MonkeyPatch,
    record: Path,
    failing: dict[str, RackwrightError],
    rounds: int = 2,
    nothing_of: str = "",
    failed: int = 0,
) -> Trial:
    """Compare three variants; returns the trial. nothing_of: a variant of which no cell has a figure."""
    trial = Trial(failing)
    names = ("baseline", "long_context", "lmsys")
    cell = Measured((Request(90.0, 5.0, 1000.0, 1.0, 10),), seconds=1.0)

    def measure_round(*words: Any) -> None:
        *_, number, found, name = words
        if name == nothing_of and not failed:
            note_cell(record, "a", f"{name}:random.one", "aiperf ended with 1: it cannot read", None, number)
            return
        measured = replace(cell, requests=(), failed=failed) if name == nothing_of else cell
        found.setdefault("random.one", []).append(measured)
        note_cell(record, "a", f"{name}:random.one", "all failed: HTTP 500", measured, number)

    def say(text: str) -> None:
        trial.serves = text.partition(": ")[2] if text.startswith("round") else trial.serves

    monkeypatch.setattr(comparing, "take", lambda *_: None)
    monkeypatch.setattr(comparing, "prepared", lambda *_: Tool(Path(), Target("", "", ""), Path(), Path()))
    monkeypatch.setattr(comparing, "measure_round", measure_round)
    plan = BenchPlan(load_suite("seed003-1"), "seed003-1")
    variants = dict.fromkeys(names, SETTINGS)
    append(record, "begin", purpose="bench", compare=",".join(names))
    Comparison(plan, cast(TrialEndpoint, trial), variants, Path(), record, say, {}).carry_out(Limits(most=rounds))
    return trial


def test_the_others_are_measured_and_it_keeps_a_column_without_figures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record = tmp_path / "r.jsonl"
    trial = compared(monkeypatch, record, {"long_context": RolledBackError("the server died after 4 s\nendpoint llm")})
    assert trial.tried == ["baseline", "long_context", "lmsys", "lmsys", "baseline"]
    found = bench_of("r", read_record(record))
    assert found.lost == {"long_context:random.one": "the host rolled it back: the server died after 4 s"}
    assert markdown([found]).splitlines()[0] == "| random | baseline | long_context | lmsys |"


@pytest.mark.parametrize(
    "failing",
    [
        {"baseline": RolledBackError("died")},
        {"long_context": RolledBackError("died"), "lmsys": RolledBackError("died")},
        {"long_context": NothingServesError("manual action")},
    ],
)
def test_without_anything_to_compare_it_ends(
    failing: dict[str, RackwrightError], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(type(next(iter(failing.values())))):
        compared(monkeypatch, tmp_path / "r.jsonl", failing)


@pytest.mark.parametrize(("failed", "why"), [(0, "aiperf ended with 1: it cannot read"), (4, "all failed: HTTP 500")])
def test_a_first_one_without_any_figure_ends_it_before_another_is_switched(
    failed: int, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trial = Trial({})
    monkeypatch.setattr(f"{__name__}.Trial", lambda _: trial)
    with pytest.raises(RackwrightError) as caught:
        compared(monkeypatch, tmp_path / "r.jsonl", {}, nothing_of="baseline", failed=failed)
    assert caught.value.code == "RW1542"
    assert trial.tried == ["baseline"]
    assert f"long_context, lmsys not tried, what served serves again; {why}; next: " in caught.value.text


def test_rounds_stay_pairs_where_a_cell_of_one_has_no_figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Baseline answers ten times as fast in its second round, and a variant twice as fast as it in each."""
    speeds = {"baseline": {1: 1.0, 2: 0.1, 3: 0.1}, "lmsys": {2: 0.05, 3: 0.05}}
    found: dict[str, dict[str, list[Measured]]] = {}

    def measure_round(*words: Any) -> None:
        *_, number, cells, name = words
        if number in speeds[name]:
            request = Request(90.0, 5.0, 1000.0, 1.0, 10)
            cells.setdefault("random.one", []).append(Measured((request,), seconds=speeds[name][number]))

    monkeypatch.setattr(comparing, "take", lambda *_: None)
    monkeypatch.setattr(comparing, "prepared", lambda *_: Tool(Path(), Target("", "", ""), Path(), Path()))
    monkeypatch.setattr(comparing, "measure_round", measure_round)
    plan, variants = BenchPlan(load_suite("seed003-1"), "seed003-1"), dict.fromkeys(speeds, SETTINGS)
    trial = cast(TrialEndpoint, Trial({}))
    work = Comparison(plan, trial, variants, Path(), tmp_path / "r.jsonl", lambda _: None, found)
    work.carry_out(Limits(most=3, narrow=0.0))
    ((share,),) = work.shares().values()
    assert share.by_round == (2.0, 2.0)
    pooled = pooled_cells(found)
    assert {name: len(cell.rounds) for name, cell in pooled.items()} == {
        "baseline:random.one": 3,
        "lmsys:random.one": 2,
    }


def test_another_one_without_any_figure_keeps_its_turns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trial = compared(monkeypatch, tmp_path / "r.jsonl", {}, nothing_of="lmsys")
    assert trial.tried.count("lmsys") == 2
