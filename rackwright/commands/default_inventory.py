"""Which inventory is meant when none is named: the site's own choice, or the only one that it has."""

from __future__ import annotations

import configparser
import os
from collections.abc import Sequence
from pathlib import Path

from rackwright.loading.files import refuse_no_file, site_root
from rackwright.messages import SettingsError

VARIABLE = "RACKWRIGHT_INVENTORY"
SUFFIXES = (".py", ".ini", ".yml", ".yaml")
USUAL = ("hosts", "hosts.ini", "hosts.yml", "hosts.yaml", "inventory.py", "inventory.ini")
"""Names beside deploy.py."""


def default_inventory(words: Sequence[str] = ()) -> str:
    """`$RACKWRIGHT_INVENTORY`, the one that the site's ansible.cfg names, or the only one of the site.

    words: the hosts that the command names. Raises SettingsError with the candidates when there are several, or none,
    and where an inventory stands among the hosts.
    """
    for word in words:
        if Path(word).exists() and Path(word).suffix in SUFFIXES:
            rest = " ".join(other for other in words if other != word) or "HOST"
            raise SettingsError(
                f"{word} is an inventory, not a host; next: the same command with {rest} -i {word}", code="RW1079"
            )
    if named := os.environ.get(VARIABLE):
        return named
    root = site_root(Path("site"))
    if named := _in_ansible_cfg(root / "ansible.cfg"):
        return _shown(root / named)
    found = _candidates(root)
    if len(found) == 1:
        return _shown(found[0])
    told = "has several" if found else "has none"
    some = ", ".join(map(_shown, found)) or "rackwright init DIR makes a site with some"
    raise SettingsError(
        f"no inventory is named, and {root} {told}: {some}; next: the same command with one of them, or "
        f"export {VARIABLE}=FILE",
        code="RW1018",
    )


def _in_ansible_cfg(file: Path) -> str:
    """The inventory of Ansible's own configuration; empty where it names none, or several."""
    refuse_no_file(file)
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read(file, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return ""
    named = parser.get("defaults", "inventory", fallback="")
    return "" if "," in named else os.path.expanduser(named)  # noqa: PTH111 - empty stays empty


def _candidates(root: Path) -> list[Path]:
    folder = root / "inventory"
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    files = [path for path in inside if path.is_file() and path.suffix in SUFFIXES]
    return [*files, *(root / name for name in USUAL if (root / name).is_file())]


def _shown(path: Path) -> str:
    """A path as it is typed from here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
