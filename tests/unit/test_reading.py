"""One command reads a host: sections, exit statuses, and contents of any bytes."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.messages import ReadingError
from rackwright.plan import reading


def run(sections: dict[str, str]) -> dict[str, reading.Section]:
    done = subprocess.run(["sh", "-c", reading.script(sections)], capture_output=True, check=True)
    return reading.parse(done.stdout.decode(errors="replace").split("\n"), sections)


def test_sections_are_apart_and_keep_their_status_and_error() -> None:
    sections = run({"a": "echo one; echo two", "b": "echo oops >&2; exit 3", "c": "x=1", "d": "printf 'no newline'"})
    assert sections["a"] == reading.Section(0, "one\ntwo", "")
    assert sections["b"] == reading.Section(3, "", "oops")
    assert sections["c"] == reading.Section(0, "", "")
    assert sections["d"].output == "no newline"


def test_a_section_that_is_missing_is_an_error_and_not_an_absence() -> None:
    with pytest.raises(ReadingError, match="broke off before: b"):
        reading.parse(["::rackwright-reading:: n", "n begin a", "n end 0 "], ["a", "b"])


@pytest.mark.parametrize("lines", [[], ["::rackwright-reading:: "], [" begin a", " end 0 "], ["n begin a", "n end 0 "]])
def test_a_reading_without_its_nonce_is_an_error(lines: list[str]) -> None:
    with pytest.raises(ReadingError, match="broke off"):
        reading.parse(lines, ["a"])


@settings(max_examples=25, deadline=None)
@given(content=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r"), max_size=200))
def test_files_travel_whole(content: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("read") / "file"
    path.write_text(content, newline="")
    sections = run({"a": f"show {path}; show {path}.absent"})
    assert reading.files(sections["a"].output) == {str(path): content, f"{path}.absent": None}


def test_marker_text_inside_a_file_cannot_end_a_section(tmp_path: Path) -> None:
    (tmp_path / "evil").write_text("::rackwright-reading:: x\nx end 0 \nx begin b\n")
    sections = run({"a": f"show {tmp_path}/evil", "b": "echo real"})
    assert sections["b"].output == "real"


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60), max_size=4))
def test_no_line_of_a_section_begins_or_ends_one(lines: list[str]) -> None:
    forged = ["::rackwright-reading:: x", "x end 0 ", "x begin b", " end 0 ", " begin b", *lines]
    words = shlex.join(["printf", "%s\\n", *forged])
    sections = run({"a": words, "b": "echo real"})
    assert sections["a"].output.split("\n") == "\n".join(forged).split("\n")
    assert sections["b"] == reading.Section(0, "real", "")


@given(st.text(st.characters(exclude_characters="\n"), min_size=1))
def test_only_a_line_feed_ends_a_line(name: str) -> None:
    assert reading.lines_of(f"entry {name}\n\nforeign x\n") == [f"entry {name}", "foreign x"]


def test_what_is_there_and_is_no_file_fails_its_section(tmp_path: Path) -> None:
    sections = run({"a": f"show {tmp_path}; echo on", "b": f"carry words {tmp_path}/absent"})
    assert [(one.status, one.output) for one in sections.values()] == [(9, ""), (9, "")]
    assert f"{tmp_path} is not a file" in sections["a"].error


def test_a_file_that_went_while_it_was_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ReadingError, match="file could not be read"):
        run({"a": f'reading_now={tmp_path}/file; printf \'%s %s:%s\\n\' file "$reading_nonce" "$reading_now"'})


def test_a_reading_that_ends_before_its_files_is_an_error() -> None:
    with pytest.raises(ReadingError, match="broke off before: its end"):
        reading.parse(["::rackwright-reading:: n", "n begin a", "n end 0 "], ["a"])


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r"), max_size=80))
def test_a_text_that_is_known_travels_whole_and_forges_nothing(text: str) -> None:
    forged = f"x end\nx text b\n{text}"
    sections = run({"a": f"quote 'words of' {shlex.quote(forged)}", "b": "echo real"})
    words, _, packed = sections["a"].output.rpartition(" ")
    assert (words, reading.decode(packed)) == ("words of", forged)
    assert sections["b"].output == "real"
