"""Option sets that others published for real launches are not refused; what is mistyped in them is.

The sets are names and values of a public repository's launches (`source` is the file there), each with its version.
Images of another product, whose tag is not the engine's version, are left out; so are keys of the launcher itself
(`dyn-*`) and those that are empty, which it does not pass on. Where a launch script makes the file, its values are
those that it makes for that load.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rackwright_engines.finding import refused
from rackwright_engines.options.check import check_options

FOLDER = Path(__file__).parents[3] / "tests" / "fixtures" / "published"
SETS: dict[str, list[dict[str, Any]]] = {
    path.stem: json.loads(path.read_text())["sets"] for path in sorted(FOLDER.glob("*.json"))
}


@pytest.mark.parametrize("engine", SETS)
def test_published_launches_are_not_refused(engine: str) -> None:
    assert len(SETS[engine]) >= 100
    wrong = {one["source"]: refused(check_options(engine, one["version"], one["options"])) for one in SETS[engine]}
    assert {source: found for source, found in wrong.items() if found} == {}


@pytest.mark.parametrize("engine", SETS)
def test_a_key_of_theirs_that_is_mistyped_is_refused(engine: str) -> None:
    longest = [(one["version"], max(one["options"], key=len), one["options"]) for one in SETS[engine]]
    for (version, name), options in {(version, name): options for version, name, options in longest}.items():
        mistyped = {f"{name}q": options[name]}
        assert refused(check_options(engine, version, mistyped)), (version, mistyped)
