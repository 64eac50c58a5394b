"""The host data that a site's deploy.py decides by, from its source: hosts that are equal in these declare the same."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyinfra.api.host import HostData

FROM_PYINFRA = frozenset({"host", "logger"})
"""Names of pyinfra itself that tell nothing but what is looked for here."""
LIBRARIES = (
    *("pyinfra.api", "pyinfra.operations", "pyinfra.facts"),
    *("rackwright.adapter.operation", "rackwright.operations", "rackwright.tasks"),
)
"""Modules whose steps are only noted while a deploy file is declared."""
UNREADABLE = frozenset({"eval", "exec", "compile", "globals", "locals", "vars", "__import__"})


class _UnclearError(Exception):
    """The source does not say by what it decides."""


def reads_of(deploy: Path) -> frozenset[str] | None:
    """Return the keys of host.data by which a deploy file and the site's modules that it imports decide.

    None where the source does not say: each host is asked then.
    """
    try:
        return frozenset(_Sources(deploy.resolve().parent).reads(deploy))
    except (_UnclearError, OSError, SyntaxError, ValueError, RecursionError):
        return None


def alike_to(deploy: Path, hosts: Sequence[tuple[str, Mapping[str, Any]]]) -> list[tuple[int, list[str]]]:
    """Return the hosts that a deploy file cannot tell apart, by name, with the index of the first in `hosts`."""
    keys = reads_of(deploy)
    if keys is None:
        return [(index, [name]) for index, (name, _) in enumerate(hosts)]
    found: dict[str, list[tuple[Any, int, list[str]]]] = {}
    for index, (name, data) in enumerate(hosts):
        values = [(key, key in data, data.get(key)) for key in sorted(keys)]
        bucket = found.setdefault(repr(values), [])  # which values with other secrets have too: they are masks in it
        names = next((names for other, _, names in bucket if other == values), None)
        if names is None:
            bucket.append((values, index, [name]))
        else:
            names.append(name)
    return sorted((index, names) for bucket in found.values() for _, index, names in bucket)


class _Sources:
    """The deploy file and the modules of its site, each read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: set[Path] = set()

    def reads(self, file: Path) -> Iterator[str]:
        if file in self._seen:
            return
        self._seen.add(file)
        for node in _run_nodes(ast.parse(file.read_bytes())):
            yield from _read(node)
            for module in _modules(node, file, self._root):
                for path in self._files(module):
                    yield from self.reads(path)

    def _files(self, module: str) -> list[Path]:
        """Return the site's files of a module, and those of the packages around it; none for what is not the site's."""
        if _is_library(module):
            return []
        parts = module.split(".")
        bases = [self._root.joinpath(*parts[: count + 1]) for count in range(len(parts))]
        files = [path for base in bases for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()]
        if not files and parts[0] not in sys.stdlib_module_names:
            raise _UnclearError(module)
        return files


def _is_library(module: str) -> bool:
    within = any(module == library or module.startswith(f"{library}.") for library in LIBRARIES)
    return within or module in ("pyinfra", "rackwright")


def _run_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Return all nodes but the bodies of the site's own operations, which are not run to learn what is declared."""
    yield node
    body = node.body if isinstance(node, ast.FunctionDef) and any(map(_is_operation, node.decorator_list)) else []
    if _data_key(node) is None:
        for inner in ast.iter_child_nodes(node):
            if inner not in body:
                yield from _run_nodes(inner)
    elif isinstance(node, ast.Call):
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            yield from _run_nodes(argument)


def _is_operation(decorator: ast.expr) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(named, ast.Name) and named.id == "operation"


def _read(node: ast.AST) -> Iterator[str]:
    """Return the key that a node reads. Raises _UnclearError where it reaches for anything else of a host or a run."""
    key = _data_key(node)
    if key is not None:
        yield key
    elif isinstance(node, ast.Name) and (node.id == "host" or node.id in UNREADABLE):
        raise _UnclearError(node.id)
    elif isinstance(node, ast.Attribute) and node.attr in ("host", "inventory", "state"):
        raise _UnclearError(node.attr)
    elif isinstance(node, ast.Global):
        raise _UnclearError("global")


def _data_key(node: ast.AST) -> str | None:
    """Return KEY of `host.data.KEY` and of `host.data.get("KEY")`."""
    if isinstance(node, ast.Call) and _is_data(getattr(node.func, "value", None)):
        first = node.args[0] if node.args else None
        is_get = isinstance(node.func, ast.Attribute) and node.func.attr == "get"
        return first.value if is_get and isinstance(first, ast.Constant) and isinstance(first.value, str) else None
    if isinstance(node, ast.Attribute) and _is_data(node.value) and not hasattr(HostData, node.attr):
        return node.attr
    return None


def _is_data(node: ast.AST | None) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "data"
        and isinstance(node.value, ast.Name)
        and node.value.id == "host"
    )


def _modules(node: ast.AST, file: Path, root: Path) -> Iterator[str]:
    """Return the modules that a node imports. Raises _UnclearError for names of pyinfra that tell more of a host."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
        if any(name.split(".")[0] in ("pyinfra", "rackwright", "importlib") for name in names):
            raise _UnclearError(names[0])
        yield from names
    elif isinstance(node, ast.ImportFrom):
        module = _absolute(node, file, root)
        names = [alias.name for alias in node.names]
        renamed = any(alias.name == "host" and alias.asname for alias in node.names)
        if renamed or (module == "pyinfra" and not {*names} <= FROM_PYINFRA):
            raise _UnclearError(module)
        if module == "rackwright" and names != ["operations"]:
            raise _UnclearError(module)
        yield module
        if not _is_library(module) and module.split(".", maxsplit=1)[0] not in sys.stdlib_module_names:
            yield from (f"{module}.{name}" for name in names if name != "*")


def _absolute(node: ast.ImportFrom, file: Path, root: Path) -> str:
    if not node.level:
        return node.module or ""
    package = file.resolve().parents[node.level - 1].relative_to(root).parts
    return ".".join([*package, *([node.module] if node.module else [])])
