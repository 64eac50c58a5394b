"""Find sentences of the product that tests quote: a test asks for a code and for fields.

A sentence is asserted in one place, which says so: a test with `text` in its name, or tests/texts.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

LONG = 30
"""Characters that a name, a path or a few words of a message may have."""
OPTION = re.compile(r"(?<!\S)--?\w\S*(\s+(?!-)\S+)?")
"""An option of a command line, with its value."""
WORD = re.compile(r"[\"'(`]?[A-Za-z][a-z']*[\")'`]?[,.;:?]?")
"""A word of English: a path, an address, a code, a number and an assignment are fields."""
WORDS = 3
"""Words that make a sentence."""
COMPARING = {"any", "all", "count", "endswith", "escape", "fullmatch", "match", "search", "startswith", "until"}
"""Functions whose arguments are compared with what a test has seen; other calls are what it does."""


class Sentence(NamedTuple):
    """A literal of an assert, and its line, from 1."""

    line: int
    text: str


def sentences(source: str) -> Iterator[Sentence]:
    """Find every sentence that an assert or `raises(match=)` of a file compares with."""
    for node in ast.parse(source).body:
        yield from _asserted(node)


def _asserted(node: ast.AST) -> Iterator[Sentence]:
    match node:
        case ast.FunctionDef(name=name) if "text" in name.split("_"):
            return
        case ast.Assert(test=test):
            yield from _compared(test)
            return
        case ast.keyword(arg="match", value=value):
            yield from _compared(value)
    for child in ast.iter_child_nodes(node):
        yield from _asserted(child)


def _compared(node: ast.AST) -> Iterator[Sentence]:
    match node:
        case ast.Constant(value=str(text), lineno=line) if _is_sentence(text):
            yield Sentence(line, text)
        case ast.Call(func=func) if _name(func) not in COMPARING:
            yield from _compared(func)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _compared(child)


def _is_sentence(text: str) -> bool:
    """Return True for words of ours; a command line, a unit's rows and a list of files are what hosts get."""
    words = filter(WORD.fullmatch, OPTION.sub(" ", text).split())
    return len(text) > LONG and len(list(words)) >= WORDS


def _name(func: ast.AST) -> str:
    match func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def asserted_in(root: Path, paths: Iterable[str]) -> Iterator[tuple[str, Sentence]]:
    """Find the sentences of all tests among some paths below a checkout."""
    for path in paths:
        if path.startswith("tests/") and path.endswith(".py"):
            for sentence in sentences((root / path).read_text()):
                yield path, sentence
