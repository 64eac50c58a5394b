"""`rackwright init DIR`: a fresh site to edit, or `--update`: an old one brought to the installed version."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from rackwright.cli.siteupdate import Copy, UpdateAction, copies
from rackwright.exit_codes import ExitCode, done_if
from rackwright.messages import RackwrightError, counted, writing
from rackwright.settings.json_schema import json_text

PARTS = ("deploy.py", "config.py", "inventory", "tasks", "templates", "group_vars")
SCHEMA = Path("docs/reference/settings.schema.json")
"""Where the first line of the shipped YAML files looks for it."""
HOST_VARS = Path("host_vars")
KEPT = Path(".rackwright/shipped")
"""The shipped files as they were copied: they let `--update` distinguish a site's edit from Rackwright's change."""
PACKAGE = Path(__file__).parent.parent
SOURCES = (PACKAGE / "site", PACKAGE.parent)
"""Where the shipped site lies: in a wheel, and in a checkout."""
GROUP = "rackwright.site"
"""The entry points by which other packages bring files of a site: a folder each."""


def add_parser(subparsers: Any) -> None:
    """Add `init` to the command line."""
    parser = subparsers.add_parser("init", help="make a fresh site to edit, or update one")
    parser.add_argument("directory", metavar="DIR")
    update = "bring what you have not edited to the installed version, and show what changed on both sides"
    parser.add_argument("--update", action="store_true", help=update)
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Make or update the site, say what was kept and what to type next; returns 0, or 1 when files need a person."""
    site = Path(args.directory).expanduser()
    if args.update:
        return update(site)
    written, existing = make_site(site)
    for path in existing:
        print(f"kept {site / path}: it was there already")
    print(f"{site}: {counted(len(written), 'file')} written")
    print(f"\nNext:\n  cd {site}\n  edit inventory/b200.py and group_vars/b200.yml")
    deploy = "pyinfra inventory/b200.py deploy.py"
    print(f"  rackwright check inventory/b200.py\n  {deploy} --dry\n  {deploy}")
    return ExitCode.DONE


def make_site(site: Path) -> tuple[list[Path], list[Path]]:
    """Copy the shipped site; returns the paths written and those that were there, relative to it.

    Raises RackwrightError when the folder cannot be written.
    """
    contents = shipped_files()
    written = [path for path in contents if not (site / path).exists()]
    _write(site, {path: contents[path] for path in written})
    _write(site / KEPT, {path: contents[path] for path in written})
    with writing(site / HOST_VARS):
        (site / HOST_VARS).mkdir(exist_ok=True)
    return written, [path for path in contents if path not in written]


def update(site: Path) -> int:
    """Bring a site's untouched copies to the installed version; returns 1 when files were changed on both sides.

    Raises RackwrightError when the folder is not a site, or cannot be written.
    """
    if not (site / "deploy.py").exists():
        raise RackwrightError(f"{site} is not a site: it has no deploy.py; next: rackwright init {site}", code="RW1006")
    now = shipped_files()
    before = _files_below(site / KEPT)
    mine = {path: (site / path).read_bytes() for path in {*now, *before} if (site / path).is_file()}
    found = list(copies(before, mine, now))
    _carry_out(site, found)
    for copy in found:
        _tell(copy)
    both = [copy for copy in found if copy.action is UpdateAction.BOTH]
    changed = sum(copy.action in (UpdateAction.WRITE, UpdateAction.REMOVE) for copy in found)
    print(f"{site}: {counted(changed, 'file')} brought to the installed version, {len(both)} changed on both sides")
    if both:
        print("next: take over what you want of the changes above by hand; the same command shows them once only")
    return done_if(not both)


def _carry_out(site: Path, found: list[Copy]) -> None:
    _write(site, {copy.path: copy.now or b"" for copy in found if copy.action is UpdateAction.WRITE})
    _remove(site / copy.path for copy in found if copy.action is UpdateAction.REMOVE)
    _remove(site / KEPT / copy.path for copy in found if copy.now is None)
    _write(site / KEPT, {copy.path: copy.now for copy in found if copy.now is not None})


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with writing(path):
            path.unlink(missing_ok=True)


def _tell(copy: Copy) -> None:
    words = {
        UpdateAction.WRITE: "updated" if copy.mine is not None else "new",
        UpdateAction.REMOVE: "removed: it is shipped no longer",
        UpdateAction.GONE: "stays away, as you have removed it",
        UpdateAction.BOTH: "changed on both sides, and left as it is:",
    }
    if copy.action in words:
        print(f"{copy.path}: {words[copy.action]}")
    if copy.action is UpdateAction.BOTH:
        print("\n".join(f"  {row}" for row in copy.diff.splitlines()))


def _write(folder: Path, contents: Mapping[Path, bytes]) -> None:
    for path, content in contents.items():
        with writing(folder / path):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)


def shipped_files() -> dict[Path, bytes]:
    """Return what this installation ships, by path in a site. Raises RackwrightError when it is not complete."""
    sources = [shipped(), *(brought.load() for brought in entry_points(group=GROUP))]
    files = {path: (source / path).read_bytes() for source in sources for path in _shipped_files(source)}
    return {**files, SCHEMA: json_text().encode()}


def shipped() -> Path:
    """Folder of the site that came with this installation. Raises RackwrightError when it is not complete."""
    for source in SOURCES:
        if all((source / part).exists() for part in PARTS):
            return source
    raise RackwrightError(
        "this installation has no site files; next: pip install --force-reinstall rackwright", code="RW1005"
    )


def _shipped_files(source: Path) -> Iterator[Path]:
    for part in PARTS:
        found = [source / part] if (source / part).is_file() else sorted((source / part).rglob("*"))
        yield from (path.relative_to(source) for path in found if path.is_file() and "__pycache__" not in path.parts)


def _files_below(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
