"""Who may import pyinfra, paramiko and gevent: the list of pyproject.toml, which only shrinks."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIBRARIES = ["pyinfra", "pyinfra_cli", "paramiko", "gevent"]


def linter() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return found


def test_no_other_module_imports_pyinfra_and_what_is_below_it() -> None:
    (contract,) = [one for one in linter()["contracts"] if one.get("forbidden_modules") == LIBRARIES]
    assert set(contract["source_modules"]) == set(linter()["root_packages"])
    assert set(contract["ignore_imports"]) == {f"rackwright.adapter.** -> {library}" for library in LIBRARIES}
    assert "unmatched_ignore_imports_alerting" not in contract, "a line that nothing needs must stay an error"


def test_every_module_is_on_a_floor() -> None:
    (layers,) = [one["layers"] for one in linter()["contracts"] if "rackwright_engines" in one.get("layers", [])]
    named = {name.strip().partition(".")[2] for layer in layers for name in re.split("[|:]", layer)}
    floors = {name.partition(".")[0] for name in named}
    package = ROOT / "rackwright"
    modules = {path.stem for path in package.glob("*.py")} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }
    assert modules - floors == {"__init__", "__main__", "ansible_inventory"}, (
        "these two start a command, and have no importer"
    )
    parts = {path.stem for path in (package / "adapter").iterdir() if not path.stem.startswith("__")}
    assert {name.partition(".")[2] for name in named if name.startswith("adapter.")} == parts


def test_the_page_on_dependencies_names_files_that_exist() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text()
    named = re.findall(r"`((?:rackwright\w*/|requirements/|scripts/|tests/)?[\w/.-]+/[\w.-]*)`", page)
    assert len(named) > 10
    assert [name for name in named if not any((root / name).exists() for root in (ROOT, ROOT / "rackwright"))] == []
