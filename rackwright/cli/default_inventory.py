"""The inventory where the user gives none: the site's own choice, or the only one that it has."""

from __future__ import annotations

import configparser
import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rackwright.adapter.run.inventories import load_inventory
from rackwright.loading.files import refuse_no_file, site_root
from rackwright.messages import RackwrightError, SettingsError

VARIABLE = "RACKWRIGHT_INVENTORY"
SUFFIXES = (".py", ".ini", ".yml", ".yaml")
USUAL = ("hosts", "hosts.ini", "hosts.yml", "hosts.yaml", "inventory.py", "inventory.ini")
"""Names beside deploy.py."""


def default_inventory(words: Sequence[str] = ()) -> str:
    """`$RACKWRIGHT_INVENTORY`, the one that the site's ansible.cfg names, or the only one of the site.

    words: the hosts that `--limit` names. Raises SettingsError with the candidates when there are several, or none,
    and where `--limit` names an inventory.
    """
    for limit in words:
        if Path(limit).exists() and Path(limit).suffix in SUFFIXES:
            text = f"--limit {limit}: this is an inventory, not a host; next: rackwright VERB {limit} --limit HOST"
            raise SettingsError(text, code="RW1079")
    if named := os.environ.get(VARIABLE):
        return named
    root = site_root(Path("site"))
    if named := _in_ansible_cfg(root / "ansible.cfg"):
        return _shown(root / named)
    found = _candidates(root)
    if len(found) == 1:
        return _shown(found[0])
    problem = "has several" if found else "has none"
    some = ", ".join(map(_shown, found)) or "rackwright init DIR makes a site with some"
    raise SettingsError(
        f"no inventory is given, and {root} {problem}: {some}; next: the same command with one of them, or "
        f"export {VARIABLE}=FILE",
        code="RW1018",
    )


def refuse_host(name: str, words: Sequence[str]) -> None:
    """Raise SettingsError, with the right line, where a host or a group was typed in the inventory's place.

    name: what was typed. words: the command line behind `rackwright`.
    """
    for file in _inventories(site_root(Path("site"))):
        if _has(file, name):
            behind = words.index("--") if "--" in words else len(words)
            before = [file if one == name else one for one in words[:behind]]
            right = shlex.join(["rackwright", *before, "--limit", name, *words[behind:]])
            raise SettingsError(f"{name} is a host or group of {file}, not an inventory; next: {right}", code="RW1028")


def _has(inventory: str, name: str) -> bool:
    """Return True when an inventory can be loaded and has a host or group of this name."""
    with suppress(RackwrightError):
        return any(name == entry.name or name in entry.groups for entry in load_inventory(inventory))
    return False


def _inventories(root: Path) -> list[str]:
    """Return the inventories of a site, its usual one first."""
    named = [os.environ.get(VARIABLE, ""), _in_ansible_cfg(root / "ansible.cfg")]
    return list(dict.fromkeys([*filter(None, named), *map(_shown, _candidates(root))]))


def _in_ansible_cfg(file: Path) -> str:
    """Return the inventory of Ansible's own configuration; empty where it names none, or several."""
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
    """Return a path as it is typed from here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
