"""Finds the files of `group_vars/` and `host_vars/` as Ansible finds them, and names that fit nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from rackwright.messages import SettingsError
from rackwright.profiles import catalog
from rackwright.settings.origin import Origin
from rackwright.settings.problems import Problem
from rackwright_engines.nearest import nearest

WITHIN, AFTER = re.compile(r"[\w.-]"), re.compile(r"[\w-]")
"""Characters before or after a name that make it part of another one."""
OURS = re.compile(r"^\s*(from|import)\s+rackwright|\bglobals\(\)|^\s*hosts\s*=", re.MULTILINE)
"""Lines of a Python inventory that a program that prints JSON has not: groups that are left as names."""
EXTENSIONS = ("", ".yml", ".yaml", ".json")
LONG = 5
"""Letters of a name in which one wrong letter is a slip: lab and lan may be two."""
SHIPPED = ".rackwright/shipped"
"""The folder in which `rackwright init` keeps the files that it copied."""
_WORDS = {"group_vars": "group", "host_vars": "host"}
SKIPPED = ("group_vars", "host_vars", "vars_plugins")
"""Folders that Ansible does not look into for inventories."""
NO_FILE = "is not a file: a pipe, a socket or a device is not read"
SITE_VARIABLE = "RACKWRIGHT_SITE"
DEPLOY = "deploy.py"


def site_root(inventory: Path) -> Path:
    """Return the folder that holds deploy.py, group_vars/ and host_vars/, an absolute path.

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


def is_python(inventory: Path) -> bool:
    """Return True for an inventory in Python, which pyinfra reads itself; False for one that Ansible reads.

    An executable without rackwright in it is a dynamic inventory of Ansible's, whatever its ending.
    """
    if inventory.suffix != ".py" or inventory.is_dir():
        return False
    return not (inventory.is_file() and os.access(inventory, os.X_OK) and not OURS.search(_text(inventory)))


def refuse_no_file(path: Path) -> None:
    """Raise SettingsError for a file of a site that is a pipe, a socket or a device: none ever ends."""
    if path.exists() and not path.is_file() and not (path.is_dir() and path.suffix != ".py"):
        raise SettingsError(f"{path} {NO_FILE}; next: ls -l {path}", code="RW0226")


def refuse_no_files(folder: Path) -> None:
    """Raise SettingsError for a pipe, a socket or a device in a folder of inventories: Ansible reads all of it."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in SKIPPED:
            continue
        refuse_no_file(path)
        if path.is_dir() and not path.is_symlink():
            refuse_no_files(path)


def _folder(inventory: Path) -> Path:
    resolved = Path(os.path.realpath(inventory.expanduser()))  # of a link to itself, too
    return resolved if resolved.is_dir() else resolved.parent


@dataclass(frozen=True)
class Site:
    """Folders of settings: beside the inventory first, then in the site, which is stronger."""

    root: Path
    inventory: Path
    is_ansible: bool = False
    """True for an existing Ansible inventory: its files are mostly for others, and Ansible lets all of them pass."""

    def is_ours(self, folder: Path) -> bool:
        """Return True if a folder's files are for us: always, but for those beside an existing Ansible inventory."""
        return not self.is_ansible or folder in self._own_folders

    @cached_property
    def _own_folders(self) -> tuple[Path, ...]:
        """The site's folder, if a deploy file makes it one."""
        root = self.root.resolve()
        return (root,) if (root / DEPLOY).is_file() else ()

    @cached_property
    def _judged(self) -> list[Path]:
        """Folders in which every file must be right."""
        return [folder for folder in self.folders if self.is_ours(folder)]

    @cached_property
    def folders(self) -> list[Path]:
        """Folders that may hold group_vars and host_vars, the weakest first."""
        return list(dict.fromkeys([_folder(self.inventory), self.root.resolve()]))

    def display(self, path: Path) -> str:
        """Return a path as the user knows it: relative to the site where the site contains it."""
        resolved = path.parent.resolve() / path.name
        return str(resolved.relative_to(self.root)) if resolved.is_relative_to(self.root) else str(resolved)

    def _listed(self, folder: Path, kind: str) -> frozenset[str]:
        """Return the names in a folder's `kind`, read once; none where the folder is missing."""
        if (folder, kind) not in self._listings:
            with suppress(OSError):
                self._listings[folder, kind] = frozenset(path.name for path in (folder / kind).iterdir())
        return self._listings.setdefault((folder, kind), frozenset())

    @cached_property
    def _listings(self) -> dict[tuple[Path, str], frozenset[str]]:
        return {}

    def files(self, folder: Path, kind: str, name: str) -> list[Path]:
        """Files of one group or host (`kind` is group_vars or host_vars), in the order in which they are read."""
        listed = self._listed(folder, kind)
        for extension in EXTENSIONS:
            # By one listing: of a fleet's hosts most have no file, and each would be asked for four times.
            if f"{name}{extension}" not in listed and "/" not in name:
                continue
            path = folder / kind / f"{name}{extension}"
            if path.is_dir() and not extension:
                return [path for path in _within(path) if path.is_file()]
            if path.is_file():
                return [path]
        return []

    def unknown_files(self, kind: str, names: Collection[str]) -> list[Problem]:
        """Return the files in group_vars or host_vars whose name is a group's or host's with a slip of the keyboard."""
        return [
            Problem(
                Origin(self.display(path)),
                (),
                f"there is no {_WORDS[kind]} {path.stem}{nearest(path.stem, names)}",
                code="RW0219",
            )
            for path in self._without_an_owner(kind, names)
            if self._is_misspelt(path, kind, names)
        ]

    def unused_files(self, kind: str, names: Collection[str]) -> list[str]:
        """Return the line on files without a group or host in any inventory here; empty when every file has one."""
        found = [
            f"{path.name}{'' if self._is_shipped(path) else nearest(path.stem, names)}"
            for path in self._without_an_owner(kind, names)
            if not self._is_misspelt(path, kind, names)
            # A site for an Ansible inventory keeps the shipped files of profiles that it has no group for.
            if not self.is_ansible or (nearest(path.stem, names) and not self._is_shipped(path))
        ]
        warning = f"{kind}/: not used, since no inventory here has such a {_WORDS[kind]}: {', '.join(found)}"
        return [warning] if found else []

    def _without_an_owner(self, kind: str, names: Collection[str]) -> list[Path]:
        return [
            path
            for folder in self._judged
            for path in _entries(folder / kind)
            if _name(path) not in names and not self._is_mentioned(_name(path)) and not _why_unusable(path)
        ]

    def _is_misspelt(self, path: Path, kind: str, names: Collection[str]) -> bool:
        return not (kind == "group_vars" and self._is_shipped(path)) and any(
            is_slip(_name(path), name) for name in names
        )

    def _is_shipped(self, path: Path) -> bool:
        """Return True for the file of a profile: b200 and gb200 are two, and none is the other's misspelling."""
        return _name(path) in _profiles() or (self.root / SHIPPED / path.parent.name / path.name).exists()

    def unusable(self, kind: str) -> list[tuple[str, Problem]]:
        """Return the entries of group_vars or host_vars that are not readable files, each with its group or host."""
        places = [folder / kind for folder in self._judged]
        found = {folder: ("", _why_no_folder(folder)) for folder in places}
        found |= {
            path: (_name(entry), _why_unusable(path))
            for folder in places
            for entry in _entries(folder)
            for path in _within(entry)
        }
        return [
            (name, Problem(Origin(self.display(path)), (), text, code="RW0223"))
            for path, (name, text) in found.items()
            if text
        ]

    def duplicates(self, kind: str) -> list[tuple[str, Problem]]:
        """Files that are never read, since Ansible reads only the first of NAME/, NAME.yml, NAME.yaml; with NAME."""
        problems, by_name = [], dict[tuple[Path, str], Path]()
        for path in (path for folder in self._judged for path in _entries(folder / kind)):
            first = by_name.setdefault((path.parent, _name(path)), path)
            if first is not path:
                text = f"is never read, because {self.display(first)} is there too: move its lines there"
                problems.append((_name(path), Problem(Origin(self.display(path)), (), text, code="RW0220")))
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
        return "\n".join(_text(path) for path in paths)


def is_slip(text: str, name: str) -> bool:
    """Return True if one letter is too many, missing, wrong or exchanged with its neighbour, and no number differs."""
    one, other = sorted((text.casefold(), name.casefold()), key=len)
    if len(other) - len(one) == 1:
        return any(other[:at] + other[at + 1 :] == one for at in range(len(other)))
    wrong = [at for at, (letter, other_letter) in enumerate(zip(one, other, strict=False)) if letter != other_letter]
    if len(one) != len(other) or len(wrong) > 2:
        return False
    if not wrong:
        return True
    if all(one[at].isdigit() and other[at].isdigit() for at in wrong):
        return False
    first, last = wrong[0], wrong[-1]
    if first == last:
        return len(one) >= LONG
    return last == first + 1 and one[first] + one[last] == other[last] + other[first]


@cache
def _profiles() -> frozenset[str]:
    return catalog.group_names() | frozenset(catalog.names())


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace") if path.stat().st_size < 1_000_000 else ""
    except OSError:
        return ""


def _name(path: Path) -> str:
    return path.name if path.is_dir() or path.suffix not in EXTENSIONS else path.name.removesuffix(path.suffix)


def _why_unusable(path: Path) -> str:
    if path.is_symlink() and path.exists() and path.parent.resolve().is_relative_to(path.resolve()):
        return f"is a link to {path.readlink()}, a folder above it"
    if path.is_dir():
        named = path.suffix in EXTENSIONS[1:]
        return f"is a folder: name it {path.stem}, or put its lines into one file" if named else ""
    if path.is_symlink() and not path.exists():
        return f"is a link to {path.readlink()}, which does not exist"
    return "" if path.is_file() else NO_FILE


def _why_no_folder(path: Path) -> str:
    if path.is_dir() or not os.path.lexists(path):
        return ""
    return "is not a folder: its lines go into a file for each group or host" if path.exists() else _why_unusable(path)


def _entries(folder: Path) -> list[Path]:
    """Return what stands for a group or host in a folder, in the order in which Ansible prefers it."""
    if not folder.is_dir():
        return []
    entries = [path for path in folder.iterdir() if path.is_dir() or path.suffix in EXTENSIONS]
    visible = [path for path in entries if not _is_hidden(path)]
    return sorted(visible, key=lambda path: (_name(path), not path.is_dir(), EXTENSIONS.index(_extension(path))))


def _is_hidden(path: Path) -> bool:
    return path.name.startswith(".") or path.name.endswith("~")


def _extension(path: Path) -> str:
    return "" if path.is_dir() or path.suffix not in EXTENSIONS else path.suffix


def _within(entry: Path, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Yield an entry, and what Ansible would read of a folder. above: its path, since a link may lead back there."""
    yield entry
    if not entry.is_dir() or entry.resolve() in above or entry.suffix in EXTENSIONS[1:]:
        return
    for path in sorted(entry.iterdir(), key=lambda path: path.name):
        if not _is_hidden(path) and path.suffix in EXTENSIONS:
            yield from _within(path, (*above, entry.resolve()))
