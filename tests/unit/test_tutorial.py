"""What the tutorial quotes of commands that need no host: exactly what they print."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.cli.main import main
from tests.fresh import fresh
from tests.lab import tutorial
from tests.pages import Edited, acts

INVENTORY = f"""
from rackwright.inventory import build

globals().update(build(__file__, {{"lab": [({tutorial.HOST!r}, {{}})]}}, children={{"b200": ["lab"]}}))
"""
MISTAKE, REFUSAL = "free_gpu_memory_fractoin", "$ rackwright check inventory/lab.py\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the tutorial's reader stands at its begin."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def site(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the new site, the reader's folder from then on; the lab's host is in its inventory."""
    fresh(folder / "site", lab=True)
    monkeypatch.chdir("site")
    Path("inventory/lab.py").write_text(INVENTORY)
    return folder / "site"


def test_init_says_what_the_tutorial_quotes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "site", "--lab"]) == 0
    assert tutorial.missing(1, capsys.readouterr().out, tutorial.HOST) == []


def test_the_mistake_of_the_tutorial_is_refused_in_its_words(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [mistake] = [act.lines for act in acts("docs/tutorial.md") if isinstance(act, Edited) and MISTAKE in act.lines]
    refusal = tutorial.blocks(8)[0]
    path = site / "group_vars" / "lab.yml"
    shipped = path.read_text()
    path.write_text(shipped + mistake)
    assert main(["check", "inventory/lab.py"]) == 1
    assert REFUSAL + capsys.readouterr().err == refusal
    path.write_text(shipped + mistake.replace(MISTAKE, "free_gpu_memory_fraction"))
    assert main(["check", "inventory/lab.py"]) == 0


def test_a_second_run_of_the_same_second_prints_what_the_tutorial_quotes() -> None:
    text = "\n".join(tutorial.blocks(10))
    assert "-deploy/" in text
    assert tutorial.missing(10, text.replace("-deploy/", "-deploy-2/"), tutorial.HOST) == []
