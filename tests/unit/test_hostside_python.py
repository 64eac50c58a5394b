"""Programs of a host run with its own Python, 3.9 and newer: none uses what later ones brought."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "rackwright"
PROGRAMS = ("hostside/fetch_model", "hostside/hand_on")
ONE_FILE = ROOT / "hostside/image_registry.py"
MODULES = [*sorted(path for program in PROGRAMS for path in (ROOT / program).glob("*.py")), ONE_FILE]
LATER = {("zip", "strict"), ("dataclass", "slots"), ("dataclass", "kw_only"), ("int", "bit_count")}
"""Functions and their arguments of Python 3.10 and newer."""


@pytest.mark.parametrize("module", MODULES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_host_of_python_3_9_can_run_it(module: Path) -> None:
    tree = ast.parse(module.read_text(), feature_version=(3, 9))
    called = {
        (node.func.id, argument.arg)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        for argument in node.keywords
    }
    assert not called & LATER
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Match)]
