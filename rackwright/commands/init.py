"""`rackwright init DIR`: a fresh site to edit. What is already there is never overwritten."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rackwright.errors import RackwrightError
from rackwright.settings.schema import json_text

PARTS = ("deploy.py", "inventory", "tasks", "templates", "group_vars")
SCHEMA = Path("docs/reference/settings.schema.json")
"""Where the first line of the shipped YAML files looks for it."""
HOST_VARS = Path("host_vars")
PACKAGE = Path(__file__).parent.parent
SOURCES = (PACKAGE / "site", PACKAGE.parent)
"""Where the shipped site lies: in a wheel, and in a checkout."""


def add_parser(subparsers: Any) -> None:
    """Add `init` to the command line."""
    parser = subparsers.add_parser("init", help="make a fresh site to edit")
    parser.add_argument("directory", metavar="DIR")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Make the site, say what was kept and what to type next; returns 0."""
    site = Path(args.directory).expanduser()
    written, kept = make_site(site)
    for path in kept:
        print(f"kept {site / path}: it was there already")
    print(f"{site}: {len(written)} files written")
    print(f"\nNext:\n  cd {site}\n  edit inventory/b200.py and group_vars/b200.yml")
    print("  rackwright check inventory/b200.py\n  pyinfra inventory/b200.py deploy.py")
    return 0


def make_site(site: Path) -> tuple[list[Path], list[Path]]:
    """Copy the shipped site; returns the paths written and those that were there, relative to it.

    Raises RackwrightError when the folder cannot be written.
    """
    source = shipped()
    contents = {path: (source / path).read_bytes() for path in _shipped_files(source)}
    contents[SCHEMA] = json_text().encode()
    written = [path for path in contents if not (site / path).exists()]
    try:
        for path in written:
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            (site / path).write_bytes(contents[path])
        (site / HOST_VARS).mkdir(exist_ok=True)
    except OSError as error:
        raise RackwrightError(f"{error.filename}: {error.strerror}; choose a folder that you may write") from None
    return written, [path for path in contents if path not in written]


def shipped() -> Path:
    """Folder of the site that came with this installation. Raises RackwrightError when it is not complete."""
    for source in SOURCES:
        if all((source / part).exists() for part in PARTS):
            return source
    raise RackwrightError("this installation has no site files; next: pip install --force-reinstall rackwright")


def _shipped_files(source: Path) -> Iterator[Path]:
    for part in PARTS:
        found = [source / part] if (source / part).is_file() else sorted((source / part).rglob("*"))
        yield from (path.relative_to(source) for path in found if path.is_file() and "__pycache__" not in path.parts)
