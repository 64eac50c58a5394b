"""One command reads a host: sections, exit statuses, and contents of any bytes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright import reading
from rackwright.errors import ReadingError


def run(sections: dict[str, str]) -> dict[str, reading.Section]:
    done = subprocess.run(["sh", "-c", reading.script(sections)], capture_output=True, text=True, check=True)
    return reading.parse(done.stdout.splitlines(), sections)


def test_sections_are_apart_and_keep_their_status_and_error() -> None:
    seen = run({"a": "echo one; echo two", "b": "echo oops >&2; exit 3", "c": "x=1", "d": "printf 'no newline'"})
    assert seen["a"] == reading.Section(0, "one\ntwo", "")
    assert seen["b"] == reading.Section(3, "", "oops")
    assert seen["c"] == reading.Section(0, "", "")
    assert seen["d"].output == "no newline"


def test_a_section_that_is_missing_is_an_error_and_not_an_absence() -> None:
    with pytest.raises(ReadingError, match="broke off before: b"):
        reading.parse(["::rackwright-section:: a", "::rackwright-section:: end 0 "], ["a", "b"])


@settings(max_examples=25, deadline=None)
@given(content=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r"), max_size=200))
def test_files_travel_whole(content: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("read") / "file"
    path.write_text(content, newline="")
    seen = run({"a": f"show {path}; show {path}.absent"})
    assert reading.files(seen["a"].output) == {str(path): content, f"{path}.absent": None}


def test_marker_text_inside_a_file_cannot_end_a_section(tmp_path: Path) -> None:
    (tmp_path / "evil").write_text("::rackwright-section:: end 0 \n::rackwright-section:: b\n")
    seen = run({"a": f"show {tmp_path}/evil", "b": "echo real"})
    assert seen["b"].output == "real"
