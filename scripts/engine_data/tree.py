"""What a folder of Python files says, read as syntax trees: classes, names that stand for types, constants."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackwright.messages import SettingsError

UNKNOWN = object()
"""A value that only running the code would tell."""


@dataclass
class Tree:
    """Parsed files of one version, by their path below the archive's root."""

    root: Path
    modules: dict[str, ast.Module] = field(default_factory=dict)
    names: dict[str, ast.expr] = field(default_factory=dict)
    """What is assigned at the top of a module, of all of them."""
    classes: dict[str, tuple[str, ast.ClassDef]] = field(default_factory=dict)
    """A class and its file."""

    def read(self, *patterns: str) -> Tree:
        """Parse the files that match, in their order. Raises SettingsError for one that is no Python."""
        for path in sorted({path for pattern in patterns for path in self.root.glob(pattern)}):
            self._add(str(path.relative_to(self.root)), path)
        return self

    def _add(self, name: str, path: Path) -> None:
        try:
            module = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path} cannot be parsed: {error}") from error
        self.modules[name] = module
        for node in module.body:
            if isinstance(node, ast.ClassDef):
                self.classes.setdefault(node.name, (name, node))
        self.names.update(assigned(module.body))

    def borrow(self, other: Tree) -> None:
        """Add the names and classes of another tree, except those that this one has."""
        self.names = {**other.names, **self.names}
        self.classes = {**other.classes, **self.classes}

    def literal(self, node: ast.expr | None) -> Any:
        """Return the value of an expression of constants and names of constants; UNKNOWN for anything else."""
        if node is None:
            return UNKNOWN
        if isinstance(node, ast.Name) and node.id in self.names:
            return self.literal(self.names[node.id])
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.classes:
            return self.literal(dict(fields(self.classes[node.value.id][1])).get(node.attr, (None, None))[1])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            first, right = self.literal(node.left), self.literal(node.right)
            return first + right if isinstance(first, list) and isinstance(right, list) else UNKNOWN
        if isinstance(node, ast.List | ast.Set | ast.Tuple):
            return self._items(node)
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError):
            return UNKNOWN

    def _items(self, node: ast.List | ast.Set | ast.Tuple) -> Any:
        found: list[Any] = []
        for item in node.elts:
            value = self.literal(item.value if isinstance(item, ast.Starred) else item)
            if value is UNKNOWN:
                return UNKNOWN
            found += value if isinstance(item, ast.Starred) and isinstance(value, list) else [value]
        return found


def assigned(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Names and what they are given."""
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value


def fields(node: ast.ClassDef) -> Iterator[tuple[str, tuple[ast.expr, ast.expr | None]]]:
    """Annotation and default of each field of a dataclass."""
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            yield item.target.id, (item.annotation, item.value)


def calls(node: ast.AST, name: str) -> list[ast.Call]:
    """Return calls of a function or method of that name, in the order in which they are written."""
    found = [
        one
        for one in ast.walk(node)
        if isinstance(one, ast.Call) and name in (getattr(one.func, "attr", ""), getattr(one.func, "id", ""))
    ]
    return sorted(found, key=lambda call: call.lineno)


def keywords(call: ast.Call) -> Mapping[str, ast.expr]:
    """Arguments of a call that are given by name."""
    return {argument.arg: argument.value for argument in call.keywords if argument.arg}


def members(node: ast.expr) -> list[ast.expr]:
    """Return the types of `Optional`, `Union`, `Annotated` and `|`; a type alone is one. A quoted type is parsed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return members(ast.parse(node.value, mode="eval").body)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*members(node.left), *members(node.right)]
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        kind = type_name(node)
        if kind == "Optional":
            return [*members(parts[0]), ast.Constant(None)]
        if kind == "Union":
            return [member for part in parts for member in members(part)]
        if kind in ("Annotated", "SkipValidation", "InitVar"):
            return members(parts[0])
    return [node]


def type_name(node: ast.expr) -> str:
    """Return the name of a type, without what it is made of."""
    if isinstance(node, ast.Subscript):
        return type_name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Constant) and node.value is None:
        return "None"
    return node.id if isinstance(node, ast.Name) else ""
