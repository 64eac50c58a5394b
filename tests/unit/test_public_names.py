"""What the package calls its parts: one class a name, and what each is or does."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import rackwright

PACKAGE = Path(rackwright.__file__).parent
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
NOT_TO_COME_BACK = frozenset(
    {"decided", "fence", "following", "glance", "leasing", "look", "looked", "looking", "moved", "moves", "moving"}
    | {"muster", "news", "owner", "settle", "settled", "standing", "story", "switching", "switchjob", "told", "touch"}
    | {"touched", "turns"}
)
"""Words of names that no reader guessed: of no public function, class or module."""


@cache
def public() -> list[tuple[str, type[ast.AST], str]]:
    """File, kind and name of every public class, function and module."""
    return [found for path in sorted(PACKAGE.rglob("*.py")) for found in _in(path) if not found[2].startswith("_")]


def _in(path: Path) -> Iterator[tuple[str, type[ast.AST], str]]:
    file = str(path.relative_to(PACKAGE))
    yield file, ast.Module, path.stem
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield file, type(node), node.name


def test_no_two_public_classes_have_one_name() -> None:
    found = defaultdict(list)
    for file, kind, name in public():
        if kind is ast.ClassDef:
            found[name].append(file)
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_names_that_nobody_guessed_do_not_come_back() -> None:
    words = {(file, name): {part.lower() for part in WORD.findall(name)} for file, _, name in public()}
    assert [location for location, found in words.items() if found & NOT_TO_COME_BACK] == []
