"""Newer data of the engines change what is refused and warned of, and no byte that is rendered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.cli import check
from rackwright.cli.main import main
from rackwright_engines.datasets import GROUP, SHIPPED, DataSet
from tests.unit.test_engine_profiles import EFFECTIVE, NEWEST
from tests.unit.test_recipes import RECIPES

ROOT = Path(__file__).parents[2]
RENDERED = """
import json
from rackwright.cli.render import rendered_files
from rackwright.engines.host import check_host
from rackwright_engines.datasets import used
from tests.unit.test_engine_profiles import EFFECTIVE, NEWEST, settings_of
from tests.unit.test_recipes import RECIPES

hosts = {group: settings_of(group) for group in (*EFFECTIVE, *NEWEST, *RECIPES)}
files = {group: rendered_files(settings) for group, settings in hosts.items()}
verdicts = {group: [one.sentence for one in check_host(settings)] for group, settings in hosts.items()}
print(json.dumps([used().version, files, verdicts]))
"""


def changed(name: str, table: Any) -> Any:
    """Return a table of another day: other sizes, texts and lengths; nothing in it refuses a shipped profile."""
    change = CHANGES.get(name, lambda value: value)
    return change(table)


def rows(**other: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda table: [
        {key: other[key](value) if key in other else value for key, value in row.items()} for row in table
    ]


CHANGES: dict[str, Callable[[Any], Any]] = {
    "models.yaml": rows(weights=lambda size: size * 7, kv_bytes=lambda size: size * 7),
    "gpus.yaml": rows(memory_mib=lambda size: size // 3),
    "drafts.yaml": rows(length=lambda length: length + 1, source=lambda _: "another day"),
    "known_bad.yaml": lambda _: [],
    "requests.yaml": lambda _: [],
    "moe.yaml": lambda _: {},
    "paths.yaml": lambda table: {**table, "mounted": [], "code": []},
    "release.yaml": lambda table: {**table, "version": "2099.1.1"},
}


def of_another_day(value: Any) -> Any:
    """Return the data of a version with other defaults; those of sizes of parallel groups are 1 and stay."""
    if isinstance(value, dict):
        return {
            key: (inner + 1 if key == "default" and type(inner) is int and inner > 8 else of_another_day(inner))
            for key, inner in value.items()
        }
    return value


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder for the path, in which a distribution has newer data."""
    path = tmp_path_factory.mktemp("newer")
    for file in SHIPPED.rglob("*.yaml"):
        name = file.relative_to(SHIPPED)
        table = yaml.load(file.read_text(), yaml.CSafeLoader)
        table = of_another_day(table) if name.name[0].isdigit() else changed(str(name), table)
        (path / "newer" / name).parent.mkdir(parents=True, exist_ok=True)
        (path / "newer" / name).write_text(yaml.safe_dump(table, sort_keys=False))
    info = path / "newer-2099.1.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: newer\nVersion: 2099.1.1\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nnewer = newer\n")
    return path


def rendered(path: str = "") -> tuple[str, dict[str, dict[str, str]], dict[str, list[str]]]:
    """Return the data's version, every file of every profile, and what is found; in a process of its own."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (path, str(ROOT))))}
    done = subprocess.run(
        [sys.executable, "-c", RENDERED], cwd=ROOT, env=env, check=True, capture_output=True, text=True
    )
    version, files, verdicts = json.loads(done.stdout)
    return version, files, verdicts


def test_no_byte_of_a_profile_depends_on_the_data(newer: Path) -> None:
    (version, files, verdicts), (other, same, differ) = rendered(), rendered(str(newer))
    assert (other, other != version) == ("2099.1.1", True)
    assert set(files) == {*EFFECTIVE, *NEWEST, *RECIPES}, "all that are shipped"
    assert all("ExecStart" in "".join(texts.values()) for texts in files.values())
    changed_files = [
        f"{group}: {name}" for group, texts in files.items() for name in texts if texts[name] != same[group].get(name)
    ]
    assert changed_files == []
    assert files == same
    assert sum(verdicts[group] != differ[group] for group in verdicts) > 5, "the other data were not used"


def test_check_lists_the_data_that_are_used_and_those_that_are_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["check", str(ROOT / "inventory" / "b200.py")]
    assert main(words) == 0
    assert "engines' data" not in capsys.readouterr().out
    monkeypatch.setattr(check, "used", lambda: DataSet("newer", "2099.1.1", Path("/elsewhere")))
    monkeypatch.setattr(check, "unused", lambda: ["old 2020.1.1: day"])
    assert main(words) == 0
    rows = [row.split(": ", 1) for row in capsys.readouterr().out.splitlines()]
    assert [row[1] for row in rows if row[0].startswith("engines' data")] == ["newer 2099.1.1", "old 2020.1.1: day"]
