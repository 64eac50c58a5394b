"""Finds the files of `group_vars/` and `host_vars/` as Ansible finds them, and names that fit nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rackwright.settings.origin import Origin
from rackwright.settings.problems import Problem, nearest

WITHIN, AFTER = re.compile(r"[\w.-]"), re.compile(r"[\w-]")
"""What before or after a name makes it part of another one."""
EXTENSIONS = ("", ".yml", ".yaml", ".json")
SITE_VARIABLE = "RACKWRIGHT_SITE"
DEPLOY = "deploy.py"


def site_root(inventory: Path) -> Path:
    """The folder that holds deploy.py, group_vars/ and host_vars/, an absolute path.

    `$RACKWRIGHT_SITE` if set; else the nearest folder with a deploy.py, from the inventory's own upward; else the one
    above a folder named `inventory`, or the inventory's own. Where the user stands does not matter.
    """
    named = os.environ.get(SITE_VARIABLE)
    if named:
        return Path(named).expanduser().resolve()
    here = _folder(inventory)
    for folder in (here, *here.parents):
        if (folder / DEPLOY).is_file():
            return folder
    return here.parent if here.name == "inventory" else here


def _folder(inventory: Path) -> Path:
    resolved = inventory.expanduser().resolve()
    return resolved if resolved.is_dir() else resolved.parent


@dataclass(frozen=True)
class Site:
    """Where settings are looked for: beside the inventory first, then in the site, which is stronger."""

    root: Path
    inventory: Path
    is_ansible: bool = False
    """True for an existing Ansible inventory: its files are mostly for others, and Ansible lets all of them pass."""

    def is_ours(self, folder: Path) -> bool:
        """Whether the files of a folder are for us: always, but for those beside an existing Ansible inventory."""
        return not self.is_ansible or (folder == self.root.resolve() and (folder / DEPLOY).is_file())

    @cached_property
    def _judged(self) -> list[Path]:
        """Folders in which every file must be right."""
        return [folder for folder in self.folders if self.is_ours(folder)]

    @cached_property
    def folders(self) -> list[Path]:
        """Folders that may hold group_vars and host_vars, the weakest first."""
        return list(dict.fromkeys([_folder(self.inventory), self.root.resolve()]))

    def display(self, path: Path) -> str:
        """A path as the user knows it: relative to the site where it lies in it."""
        resolved = path.parent.resolve() / path.name
        return str(resolved.relative_to(self.root)) if resolved.is_relative_to(self.root) else str(resolved)

    def files(self, folder: Path, kind: str, name: str) -> list[Path]:
        """Files of one group or host (`kind` is group_vars or host_vars), in the order in which they are read."""
        for extension in EXTENSIONS:
            path = folder / kind / f"{name}{extension}"
            if path.is_dir() and not extension:
                return _below(path)
            if path.is_file():
                return [path]
        return []

    def unknown_files(self, kind: str, names: Collection[str]) -> list[Problem]:
        """Files in group_vars or host_vars that belong to no group or host of any inventory here."""
        word = "group" if kind == "group_vars" else "host"
        return [
            Problem(
                Origin(self.display(path)),
                (),
                f"no {word} is named {path.stem}{nearest(path.stem, names)}",
                code="RW0219",
            )
            for folder in self._judged
            for path in _entries(folder / kind)
            if _name(path) not in names and not self._is_mentioned(_name(path)) and not _why_unusable(path)
            # A site for an Ansible inventory keeps the shipped files of profiles that it has no group for.
            if not self.is_ansible or nearest(path.stem, names)
        ]

    def unusable(self, kind: str) -> list[Problem]:
        """What lies in group_vars or host_vars and is no file to read."""
        entries = (path for folder in self._judged for path in _entries(folder / kind))
        return [
            Problem(Origin(self.display(path)), (), text, code="RW0223")
            for path in entries
            if (text := _why_unusable(path))
        ]

    def duplicates(self, kind: str) -> list[Problem]:
        """Files that are never read, since Ansible reads only the first of NAME/, NAME.yml, NAME.yaml."""
        problems, seen = [], dict[tuple[Path, str], Path]()
        for path in (path for folder in self._judged for path in _entries(folder / kind)):
            first = seen.setdefault((path.parent, _name(path)), path)
            if first is not path:
                text = f"is never read, because {self.display(first)} is there too: move its lines there"
                problems.append(Problem(Origin(self.display(path)), (), text, code="RW0220"))
        return problems

    def _is_mentioned(self, name: str) -> bool:
        # Found first and looked around then: compiling a pattern for each of forty files is slower than reading them.
        text, at = self._other_inventories, -1
        while (at := text.find(name, at + 1)) >= 0:
            if not WITHIN.match(text[max(at - 1, 0) : at]) and not AFTER.match(text, at + len(name)):
                return True
        return False

    @cached_property
    def _other_inventories(self) -> str:
        """Text of the inventories beside this one: group_vars may belong to any of them."""
        folders = {_folder(self.inventory), self.root / "inventory"}
        paths = [path for folder in folders if folder.is_dir() for path in folder.iterdir() if path.is_file()]
        return "\n".join(path.read_text(errors="replace") for path in paths if path.stat().st_size < 1_000_000)


def _name(path: Path) -> str:
    return path.name if path.is_dir() or path.suffix not in EXTENSIONS else path.name.removesuffix(path.suffix)


def _why_unusable(path: Path) -> str:
    if path.is_dir():
        named = path.suffix in EXTENSIONS[1:]
        return f"is a folder: name it {path.stem}, or put its lines into one file" if named else ""
    if path.is_symlink() and not path.exists():
        return f"is a link to {path.readlink()}, and there is no such file"
    return "" if path.is_file() else "is no file: a pipe, a socket or a device is not read"


def _entries(folder: Path) -> list[Path]:
    """What stands for a group or host in a folder, in the order in which Ansible prefers it."""
    if not folder.is_dir():
        return []
    known = [path for path in folder.iterdir() if path.is_dir() or path.suffix in EXTENSIONS]
    visible = [path for path in known if not path.name.startswith(".") and not path.name.endswith("~")]
    return sorted(visible, key=lambda path: (_name(path), not path.is_dir(), EXTENSIONS.index(_extension(path))))


def _extension(path: Path) -> str:
    return "" if path.is_dir() or path.suffix not in EXTENSIONS else path.suffix


def _below(folder: Path) -> list[Path]:
    found: list[Path] = []
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.startswith(".") or path.name.endswith("~"):
            continue
        if path.is_dir() and not path.suffix:
            found += _below(path)
        elif path.is_file() and path.suffix in EXTENSIONS:
            found.append(path)
    return found
