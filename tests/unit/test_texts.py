"""The texts that tests wait for are those of the product."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import texts

ROOT = Path(__file__).parents[2]
NAMED = {name: text for name, text in vars(texts).items() if name.isupper()}


def templates() -> Iterator[str]:
    """Every text of the product, a blank `{}` for what varies: Python's literals, and the lines of scripts."""
    for path in [*(ROOT / "rackwright").rglob("*"), *(ROOT / "packages").rglob("*.py")]:
        if path.suffix == ".py":
            yield from _literals(ast.parse(path.read_text()))
        elif path.suffix in (".sh", ".bash", ".j2"):
            yield path.read_text()


def _literals(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr(values=values):
                yield "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in values)
            case ast.Constant(value=str(text)):
                yield text


def plain(text: str) -> str:
    """Return a text with `{}` for each name, of Python or of the shell."""
    return re.sub(r"\{\w*\}|\$\{?\w+\}?|\$\(\(.*?\)\)", "{}", text)


@pytest.fixture(scope="module")
def product() -> str:
    return plain("\n".join(templates()))


@pytest.mark.parametrize("name", NAMED)
def test_a_text_is_one_of_the_products(product: str, name: str) -> None:
    assert plain(NAMED[name]) in product
