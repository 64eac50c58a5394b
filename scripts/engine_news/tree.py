"""The sources of one release as they are searched: texts, syntax trees, and what a name in them is."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROUTE = re.compile(r"""\.(?:get|post|put|delete|api_route|add_api_route)\(\s*["'](/[^"'\s]*)["']""")
LOGS = frozenset({"debug", "info", "warning", "error"})


@dataclass(frozen=True)
class SourceTree:
    """A folder with the Python files of one release."""

    folder: Path
    wanted: re.Pattern[str] = re.compile("")
    """Files that count, by their path below the folder: of a work tree the tests and models say nothing of a server."""

    @cached_property
    def texts(self) -> dict[str, str]:
        """All files by their path below the folder."""
        found = {str(path.relative_to(self.folder)): path for path in sorted(self.folder.rglob("*.py"))}
        files = {name: path for name, path in found.items() if self.wanted.match(name) and path.is_file()}
        return {name: path.read_text("utf-8", errors="replace") for name, path in files.items()}

    @cached_property
    def _all(self) -> str:
        return "\n".join(self.texts.values())

    def has_text(self, text: str) -> bool:
        """Return True if some file has a text constant, or the end of one, that is this text."""
        return any(f"{text}{quote}" in self._all for quote in "\"'")

    @cached_property
    def routes(self) -> frozenset[str]:
        """Paths that its servers answer at."""
        return frozenset(ROUTE.findall(self._all))

    def module(self, file: str) -> ast.Module | None:
        """Return a parsed file; None for one that is missing, or is no Python."""
        try:
            return ast.parse(self.texts[file])
        except (KeyError, SyntaxError):
            return None

    def symbol(self, file: str, name: str) -> ast.AST | None:
        """Return a class or function of a file by its dotted name; the file itself without a name."""
        node: ast.AST | None = self.module(file)
        for part in filter(None, name.split(".")):
            node = next((one for one in _inside(node) if one.name == part), None) if node else None
        return node

    def homes(self, name: str) -> list[str]:
        """Return the files that define a class or function of this name."""
        defines = re.compile(rf"^\s*(?:async )?(?:def|class) {re.escape(name.rpartition('.')[2])}\b", re.MULTILINE)
        return [file for file, text in self.texts.items() if defines.search(text)]

    def names(self, module: str, attribute: str) -> bool:
        """Return True if a module defines, assigns or imports an attribute."""
        path = module.replace(".", "/")
        found = self.module(f"{path}.py") or self.module(f"{path}/__init__.py")
        return found is not None and (attribute in set(_names_of(found)) or f"'{attribute}'" in ast.unparse(found))


def _inside(node: ast.AST) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for one in ast.walk(node):
        if one is not node and isinstance(one, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield one


def _names_of(module: ast.Module) -> Iterator[str]:
    """Yield the names that a module has, wherever below an `if` or `try` they get there."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def guards(node: ast.AST, fields: Collection[str]) -> frozenset[str]:
    """Return the conditions by which code refuses one of these fields: each assert and raise, and the ifs around."""
    named = re.compile(rf"\b(?:{'|'.join(map(re.escape, fields))})\b")
    return frozenset(text for text, whole in _conditions(node, ()) if named.search(whole))


def _conditions(node: ast.AST, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each condition, and the same with what is raised. above: the conditions around the node."""
    if isinstance(node, ast.Assert):
        yield " and ".join((*above, ast.unparse(node.test))), "\n".join((*above, ast.unparse(node)))
    elif isinstance(node, ast.Raise):
        yield " and ".join(above), "\n".join((*above, ast.unparse(node)))
    elif isinstance(node, ast.If):
        test = ast.unparse(node.test)
        for condition, body in ((f"({test})", node.body), (f"not ({test})", node.orelse)):
            for one in body:
                yield from _conditions(one, (*above, condition))
    else:
        for one in ast.iter_child_nodes(node):
            yield from _conditions(one, above)


def plain(node: ast.AST) -> str:
    """Return code without its comments and docstrings."""
    copy = ast.parse(ast.unparse(node))
    for one in ast.walk(copy):
        if isinstance(one, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(one):
            one.body = one.body[1:]
    return ast.dump(copy)


def log_calls(node: ast.AST, part: str) -> frozenset[str]:
    """Return the calls of a logger whose text has a part."""
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
    texts = [ast.unparse(one) for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr in LOGS]
    return frozenset(text for text in texts if part in text)
