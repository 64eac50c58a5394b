"""README's pictures are of a real run, drawn by today's screen, small, and fetch nothing."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from rackwright.record.journal import read_record
from rackwright.record.view.timeline_events import timeline_of

ROOT = Path(__file__).parents[2]
LIMIT = 300_000
"""Bytes of a picture."""


@pytest.fixture(scope="module")
def pictures() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "pictures.py"))


def test_the_live_view_is_what_the_screen_draws_today(pictures: dict[str, Any]) -> None:
    drawn = pictures["live_view"](read_record(pictures["stored_record"]()))
    assert pictures["LIVE"].read_text() == drawn, "next: python scripts/pictures.py"


def test_the_fleet_is_what_the_screen_draws_today(pictures: dict[str, Any]) -> None:
    assert pictures["TOP"].read_text() == pictures["top_view"](), "next: python scripts/pictures.py"
    assert pictures["TOP"].stat().st_size < LIMIT
    assert "](../pictures/top.svg)" in (ROOT / "docs/how-to/look-at-a-fleet.md").read_text()


def test_the_report_was_photographed_as_it_is_today(pictures: dict[str, Any]) -> None:
    assert pictures["PHOTOGRAPHED"].read_text() == pictures["sum_of"](pictures["report"]()), (
        "next: python scripts/pictures.py"
    )


def test_the_record_is_of_a_rollout_that_went_well(pictures: dict[str, Any]) -> None:
    timeline = timeline_of(read_record(pictures["stored_record"]()))
    assert timeline.status == 0
    assert len(timeline.waves) == 3
    assert {str(host.state) for host in timeline.hosts.values()} == {"switched"}


def test_a_record_is_kept_without_its_machine(pictures: dict[str, Any]) -> None:
    text = pictures["stored_record"]().read_text()
    assert set(re.findall(r'"who": "([^"]*)"', text)) == {pictures["WHO"]}
    assert not re.search(r'"(?:process|deploy|data|inventory)": ', text)


def test_readme_shows_both_and_they_are_small(pictures: dict[str, Any]) -> None:
    readme = (ROOT / "README.md").read_text()
    for path in (pictures["LIVE"], pictures["REPORT"]):
        assert f"]({path.relative_to(ROOT)})" in readme
        assert 1_000 < path.stat().st_size < LIMIT
    assert pictures["REPORT"].read_bytes().startswith(b"\x89PNG")


def test_the_live_view_fetches_nothing(pictures: dict[str, Any]) -> None:
    links = re.findall(r"https?://[^\s\"']+", pictures["LIVE"].read_text())
    assert set(links) <= {"http://www.w3.org/2000/svg", "https://www.textualize.io"}  # a namespace, and a comment
    assert "url(http" not in pictures["LIVE"].read_text()
