"""The closing line counts every part of a run, and every test that needed a second try."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.closing_line import BUDGETS, main

TESTS = """\
import pytest
from pathlib import Path

def test_good():
    pass

@pytest.mark.skip
def test_skipped():
    pass

@pytest.mark.parametrize("name", ["a", "b"])
def test_passes_the_second_time(name):
    tried = Path(__file__).with_name(name)
    if not tried.exists():
        tried.touch()
        pytest.fail("the machine was busy")

def test_bad():
    pytest.fail("always")

@pytest.fixture
def untidy():
    yield
    pytest.fail("what it started lives on")

def test_untidy(untidy):
    pass
"""


TIMES = [("tests.lab.test_slow", BUDGETS["lab"] / 2 + 50.5), ("tests.lab.test_quick.TestIt", 10)]


def run(folder: Path, out: str, *words: str) -> None:
    pytest_ = [sys.executable, "-m", "pytest", "-q", f"--rootdir={folder}", f"--junitxml={folder / out}"]
    subprocess.run(
        [*pytest_, "-p", "no:xdist", *words, str(folder)], cwd=folder, stdout=subprocess.DEVNULL, check=False
    )


def test_all_parts_and_both_tries_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    run(tmp_path, "lab-1.xml")
    run(tmp_path, "lab-2.xml", "--last-failed")
    (tmp_path / "unit-1.xml").write_text('<testsuites><testcase classname="u" name="test_one"/></testsuites>')
    main(tmp_path)
    *named, counts, closing = capsys.readouterr().out.splitlines()
    assert counts == "4 passed, 2 failed, 1 skipped"
    assert closing == "4 needed a second try"
    assert "second try: test_passes_the_second_time[a] (test_it)" in named


def test_the_text_of_a_file_that_outgrows_its_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow, quick = (f'<testcase classname="{name}" name="{name}" time="{time}"/>' for name, time in TIMES)
    (tmp_path / "lab-1.xml").write_text(f"<testsuites>{slow}{slow}{quick}</testsuites>")
    main(tmp_path)
    named = capsys.readouterr().out.splitlines()
    assert named[:2] == [
        "lab: 2 files, 461 s of a worker's time",
        "over its budget of 350 s: tests.lab.test_slow, 451 s",
    ]
    assert not any("test_quick" in row for row in named)


def test_the_text_of_nothing_to_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(tmp_path)
    assert capsys.readouterr().out == "0 passed, 0 failed, 0 skipped\n0 needed a second try\n"
