"""The lists of words: each row finds what it names, and the baseline only shrinks."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from scripts.words import check
from scripts.words.check import Finding


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a checkout of its own whose baseline is empty."""
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "BASELINE", tmp_path / "baseline.txt")
    check.BASELINE.write_text("")
    return tmp_path


def test_each_phrase_says_what_to_write() -> None:
    assert all(better for better in check.pairs("phrases.txt").values())


def test_a_phrase_is_found_on_its_line(tree: Path) -> None:
    (tree / "a.md").write_text("A host.\nIt goes on by itself.\n")
    assert [(one.rule, one.line) for one in check.phrases(["a.md"])] == [("phrase", 2), ("phrase", 2)]


def test_a_name_is_found_where_it_is_bound_and_not_where_it_is_text(tree: Path) -> None:
    (tree / "a.py").write_text('def f(own):\n    told = own\n    return {"own": told}\n')
    assert [one.line for one in check.names(["a.py"])] == [1, 2]


def test_a_word_and_a_typing_mistake_are_told_apart(tree: Path) -> None:
    (tree / "a.md").write_text("Somebody teh host.\n")
    found = {(one.rule, one.text.partition(":")[0]) for one in check.spelling([str(tree / "a.md")])}
    assert found == {("word", "Somebody"), ("spelling", "teh")}


def test_a_noun_clause_is_no_docstring(tree: Path) -> None:
    folder = tree / "scripts"
    folder.mkdir()
    (folder / "a.py").write_text('"""A module."""\n\n\ndef f() -> int:\n    """What is returned."""\n    return 1\n')
    assert [(one.rule, one.line) for one in check.docstrings() if one.path == "scripts/a.py"] == [("D401", 5)]


OLD = Finding("phrase", "a.md", 1, "goes on")
NEW = Finding("phrase", "b.md", 1, "goes on")


@pytest.mark.parametrize(
    ("found", "fresh", "grows"),
    [([OLD], [], False), ([], [], False), ([NEW], [NEW], False), ([OLD, NEW], [NEW], True)],
    ids=["as it was", "one less", "moved", "one more"],
)
def test_only_a_move_or_a_loss_shrinks(found: list[Finding], fresh: list[Finding], grows: bool) -> None:
    baseline = check.counted([OLD])
    assert check.new(found, baseline) == fresh
    assert bool(check.grown(check.counted(found), baseline)) == grows


def test_the_lower_of_two_branches_counts(tree: Path) -> None:
    check.BASELINE.write_text("phrase 3 a.md\nphrase 2 a.md\n")
    assert check.baseline() == Counter({("phrase", "a.md"): 2})


@pytest.mark.parametrize("more", [False, True])
def test_the_baseline_is_never_written_up(tree: Path, monkeypatch: pytest.MonkeyPatch, more: bool) -> None:
    check.BASELINE.write_text("phrase 1 a.md\n")
    monkeypatch.setattr(check, "findings", lambda: [OLD, NEW] if more else [NEW])
    assert check.main(["--shrink"]) == int(more)
    assert check.BASELINE.read_text() == ("phrase 1 a.md\n" if more else "phrase 1 b.md\n")


QUOTING = """
def test_a(run):
    assert "the endpoint is back where it was before" in run.output
    assert run.host.run("cat /a/file and /another/file") == "/a/path/that/is/longer/than/thirty"
    with pytest.raises(Error, match="a sentence in which something is refused"):
        pass

def test_its_text(run):
    assert run.output == "the one place that has this whole sentence"
"""


def test_a_sentence_is_found_where_it_is_asserted_and_its_test_is_not_one_of_a_text(tree: Path) -> None:
    (tree / "tests").mkdir()
    (tree / "tests" / "test_a.py").write_text(QUOTING)
    assert [one.line for one in check.quoted(["tests/test_a.py", "tests/test_a.txt"])] == [3, 5]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("systemctl start --no-block rackwright-llm.service", False),
        ("group_vars/all.yml:1: engine.max_batch_size: RW0301", False),
        ("HEAD=10.9.0.1\\nADDRESS=10.9.0.2\\nMEMBERS=10.9.0.1,10.9.0.2", False),
        ("RW0301: all.yml:1: port: must be a number", True),
        ("port 8000 is taken by nginx, pid 9", True),
    ],
)
def test_a_command_line_and_an_assignment_are_no_sentence(tree: Path, text: str, *, is_one: bool) -> None:
    (tree / "tests").mkdir()
    (tree / "tests" / "test_a.py").write_text(f'def test_it(run):\n    assert run.output == "{text}"\n')
    assert [one.line for one in check.quoted(["tests/test_a.py"])] == [2] * is_one


def test_a_word_of_a_format_stays_and_the_same_word_beside_it_is_found(tree: Path) -> None:
    formats = re.compile("|".join(check.pairs("formats.txt")))
    texts = {"a.md": ["foreign_units: aside", "foreign_units: aside is set aside"]}
    found = [Finding("word", "a.md", line, "aside: apart") for line in (1, 2)]
    assert [check.is_format(one, formats, texts) for one in found] == [True, False]
