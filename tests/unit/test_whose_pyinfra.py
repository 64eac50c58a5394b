"""pyinfra, paramiko and gevent stay in their place, so that the day one of them changes costs one folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import rackwright

PACKAGE = Path(rackwright.__file__).parent
INSIDES = (
    "pyinfra_cli",
    "pyinfra.connectors",
    "pyinfra.context",
    "pyinfra.local",
    "pyinfra.progress",
    "paramiko",
    "gevent",
)
USERS = ("operations", "effects", "pyinfra_glue")
EXCEPTIONS = {
    ("effects/remote.py", "paramiko"),  # its SSHException is how a connection ends
    ("messages.py", "pyinfra.api"),  # pyinfra prints its own errors as text, and others as tracebacks
    ("settings/secret.py", "pyinfra.api"),  # pyinfra masks its own hidden values
}
"""File and package. This list only shrinks."""


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def imports() -> dict[Path, tuple[str, ...]]:
    """What each file of the product imports; they are parsed once."""
    return {path.relative_to(PACKAGE): tuple(imported(ast.parse(path.read_text()))) for path in PACKAGE.rglob("*.py")}


def of(package: str, outside: tuple[str, ...]) -> set[tuple[str, str]]:
    """Files that import a package, but for those of some folders."""
    return {
        (str(file), package)
        for file, names in imports().items()
        if file.parts[0] not in outside
        for name in names
        if name == package or name.startswith(f"{package}.")
    }


def allowed(package: str) -> set[tuple[str, str]]:
    return {one for one in EXCEPTIONS if one[1] == package}


@pytest.mark.parametrize("package", INSIDES)
def test_only_the_glue_leans_on_insides(package: str) -> None:
    assert of(package, ("pyinfra_glue",)) == allowed(package)


def test_pyinfras_interface_is_for_operations_effects_and_the_glue() -> None:
    assert of("pyinfra.api", USERS) == allowed("pyinfra.api")
