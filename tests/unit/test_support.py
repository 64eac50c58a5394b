"""The support page: its figures are preflight's and the profiles', its checks exist, and its evidence is there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.preflight.docker import DOCKER
from rackwright.concerns.preflight.machine import MACHINE
from rackwright.concerns.preflight.software import SOFTWARE
from rackwright_engines.quick_yaml import load_yaml

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "support.md").read_text()
SEVERITIES = {check.name: check.severity for check in (*MACHINE, *DOCKER, *SOFTWARE)}
PROFILES = sorted((ROOT / "group_vars").glob("*.yml"))


@pytest.fixture(scope="module")
def support() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "support.py"))


def test_the_page_is_up_to_date(support: dict[str, Any]) -> None:
    assert support["page"]() == PAGE, "next: python scripts/support.py"


def test_the_toolkit_is_that_of_preflight() -> None:
    figures = load_yaml((ROOT / "rackwright" / "data" / "preflight_figures.yaml").read_text())
    assert f"| {figures['toolkit']['version_minimum']} or newer | expected" in PAGE
    assert f"| older than {figures['toolkit']['version_minimum']} | `warn`" in PAGE


@pytest.mark.parametrize("profile", PROFILES, ids=lambda path: path.stem)
def test_every_profile_is_there_with_its_driver_and_its_engine(profile: Path) -> None:
    text = profile.read_text()
    driver = re.search(r"^  driver_minimum: [\"']?([\d.]+)", text, re.MULTILINE)
    if driver:
        assert re.search(rf"^\| `{profile.stem}` .*\| {driver[1]} or newer: expected", PAGE, re.MULTILINE)
    image = re.search(r"^image: \S+:v?(\S+)", text, re.MULTILINE)
    if image:
        assert re.search(rf"^\| [^|]+ \| {re.escape(image[1])} \| .*`{profile.stem}`", PAGE, re.MULTILINE)


def test_every_check_is_one_and_as_severe_as_said() -> None:
    refusing = re.findall(r"refused: `([^`]+)`", PAGE)
    warning = re.findall(r"`warn`: `([^`]+)`", PAGE)
    assert len(refusing) > 5
    assert {SEVERITIES[name] for name in refusing} == {"stop"}
    assert {SEVERITIES[name] for name in warning} == {"warn"}


def test_every_piece_of_evidence_is_there() -> None:
    named = set(re.findall(r"`(tests/[^`]+)`", PAGE))
    assert len(named) > 4
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_real_gpu_that_was_seen_is_there() -> None:
    page = (ROOT / "docs" / "real-hardware.md").read_text()
    models = set(re.findall(r"(?m)^## One NVIDIA (\S+),", page))
    assert len(models) > 1
    engines = PAGE.partition("## Engines")[2]
    driver = PAGE.partition("Seen: driver")[2].partition("##")[0]
    assert [gpu for gpu in models if f"one {gpu}" not in engines or gpu not in driver] == []
