"""Earlier runs of a site, printed again: the newest bench is `last`, and no inventory is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.cli.main import main
from rackwright.record.journal import append
from rackwright_bench.figures.figures import Drafting, Measured, Request, as_json
from rackwright_bench.record import bench_record
from tests.fresh import fresh
from tests.refused import refused


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a site with several inventories, and change into it."""
    fresh(tmp_path)
    (tmp_path / "hosts.ini").write_text("[b200]\nh1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RACKWRIGHT_INVENTORY", raising=False)
    monkeypatch.delenv("RACKWRIGHT_RUNS", raising=False)
    return tmp_path


def recorded(site: Path, run: str, rate: float) -> None:
    """Leave a record of a bench of one cell."""
    record = site / "runs" / f"{run}.jsonl"
    record.parent.mkdir(exist_ok=True)
    request = Request(100.0, 5.0, 5215.0, 1.0, 1024)
    found = Measured((request,), seconds=1024 / rate, input_tokens=1024.0, drafting=Drafting(why_not="no drafting"))
    append(record, "begin", purpose="bench")
    append(record, "measuring", host="h1", endpoint="llm", engine="vllm", switches={})
    append(record, "cell", host="h1", name="random.one", text="", round=1, measured=as_json(found))
    append(record, "end", status=0, text="1 of 1 cells have figures")


def test_the_newest_bench_is_the_last_one_whatever_ran_after_it(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(site, "20261128-100000-bench", 100.0)
    recorded(site, "20261128-100000-bench-2", 177.71)
    append(site / "runs" / "20261128-110000-deploy.jsonl", "begin", purpose="deploy")
    assert main(["bench", "--table", "last"]) == 0
    assert "| Output token throughput (tok/s) | 177.71 |" in capsys.readouterr().out
    assert main(["bench", "--compare-runs", "20261128-100000-bench", "last"]) == 0
    assert main(["bench", "--suite", "seed003-1", "--print-suite"]) == 0
    assert bench_record(site, "20261128-100000-bench").stem == "20261128-100000-bench"
    assert main(["bench", "--suite", "seed003-1"]) == 1
    assert "RW1018" in capsys.readouterr().err, "a measurement needs one"


def test_a_site_without_a_bench_names_the_command_that_makes_one(site: Path) -> None:
    (site / "runs").mkdir()
    append(site / "runs" / "20261128-110000-deploy.jsonl", "begin", purpose="deploy")
    with refused("RW0603", "no bench yet", "rackwright bench INVENTORY"):
        bench_record(site, "last")
