"""What docs/how-it-works.md and docs/contribute/floor-plan.md have from the code is today's."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def drawings() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "drawings.py"))


@pytest.mark.parametrize("name", ["one run", "floor plan"])
def test_the_page_shows_what_is_so(drawings: dict[str, Any], name: str) -> None:
    page = drawings["PAGES"][name].read_text()
    assert page == drawings["drawn"](name, page), "next: python scripts/drawings.py"


def test_a_page_without_markers_is_refused(drawings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="'floor plan'"):
        drawings["drawn"]("floor plan", "# How it works\n")


def test_an_arrow_that_others_imply_is_left_out(drawings: dict[str, Any]) -> None:
    edges = {0: frozenset({1, 2, 3}), 1: frozenset({2}), 2: frozenset(), 3: frozenset()}
    assert drawings["direct"](edges, 0) == {1, 3}


def test_every_step_of_a_deploy_is_drawn(drawings: dict[str, Any]) -> None:
    called = [row.split("(")[0] for row in (ROOT / "deploy.py").read_text().splitlines() if "()" in row]
    assert [name for name, _ in drawings["steps"]()] == called


PACKAGE = ROOT / "rackwright"
ROW = re.compile(r"^\| `([a-z][\w/]*)/` \|", re.MULTILINE)


def folders(above: Path) -> set[str]:
    """Folders with files of their own, as the page writes them."""
    names = {file.relative_to(above).parts[0] for file in above.glob("*/**/*.*") if "__pycache__" not in file.parts}
    return {str((above / name).relative_to(PACKAGE)) for name in names}


def test_the_table_lists_the_folders_that_there_are() -> None:
    page = (ROOT / "docs" / "contribute" / "floor-plan.md").read_text()
    listed = ROW.findall(page)
    assert sorted(listed) == sorted({*folders(PACKAGE), "concerns/endpoint"})


def test_no_import_is_excused_from_the_floor_plan(drawings: dict[str, Any]) -> None:
    assert "ignore_imports" not in drawings["contract"]()
