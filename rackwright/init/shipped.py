"""Files of a site that this installation ships, by their paths in a site."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path

from rackwright.messages import RackwrightError
from rackwright.settings.json_schema import json_text

PARTS = ("deploy.py", "config.py", "inventory", "tasks", "templates", "group_vars")
SCHEMA = Path("docs/reference/settings.schema.json")
"""The path of the schema in the first line of the shipped YAML files."""
SCHEMA_LINE = f"# yaml-language-server: $schema=../{SCHEMA}"
PACKAGE = Path(__file__).parent.parent
SOURCES = (PACKAGE / "site", PACKAGE.parent)
"""Folders of the shipped site: in a wheel, and in a checkout."""
GROUP = "rackwright.site"
"""The entry points by which other packages bring files of a site: a folder each."""
STEPS = Path("tasks/__init__.py")
OWN_STEP = re.compile(rb"^from tasks\.\w+ import", re.MULTILINE)
"""A line of tasks/__init__.py where a site has a file for each step, as those of 0.1 have."""
OF_LIBRARY = """\
from rackwright import operations
from rackwright.adapter.operation import deploy
"""
OF_SITE = """\
from pyinfra.api import deploy

from rackwright import operations
"""


def shipped_files() -> dict[Path, bytes]:
    """Return what this installation ships, by path in a site. Raises RackwrightError when it is not complete."""
    sources = [shipped(), *(brought.load() for brought in entry_points(group=GROUP))]
    files = {path: (source / path).read_bytes() for source in sources for path in _files_of(source)}
    return {**files, SCHEMA: json_text().encode()}


def shipped() -> Path:
    """Folder of the site that came with this installation. Raises RackwrightError when it is not complete."""
    for source in SOURCES:
        if all((source / part).exists() for part in PARTS):
            return source
    raise RackwrightError(
        "this installation has no site files; next: pip install --force-reinstall CHECKOUT, or its wheel", code="RW1005"
    )


def _files_of(source: Path) -> Iterator[Path]:
    for part in PARTS:
        found = [source / part] if (source / part).is_file() else sorted((source / part).rglob("*"))
        yield from (path.relative_to(source) for path in found if path.is_file() and "__pycache__" not in path.parts)


def has_step_files(site: Path, bases: Mapping[Path, bytes]) -> bool:
    """Return True for a site with a file for each step."""
    text = (site / STEPS).read_bytes() if (site / STEPS).is_file() else b""
    return OWN_STEP.search(bases.get(STEPS, text)) is not None


def step_files() -> dict[Path, bytes]:
    """Return tasks/ with a file for each step, as sites of 0.1 have it."""
    texts = {path.name: path.read_text() for path in sorted((PACKAGE / "tasks").glob("*.py"))}
    return {Path("tasks") / name: _for_a_site(text).encode() for name, text in texts.items()}


def _for_a_site(text: str) -> str:
    ours = text.replace(OF_LIBRARY, OF_SITE).replace("from rackwright.tasks.", "from tasks.")
    return ours.replace("; a site takes them from here by its tasks/__init__.py.", ".")
