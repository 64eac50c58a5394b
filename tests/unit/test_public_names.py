"""What the package calls its parts: one class a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import rackwright

PACKAGE = Path(rackwright.__file__).parent


def test_no_two_public_classes_have_one_name() -> None:
    found = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
