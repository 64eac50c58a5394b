"""Writes a fresh site, or what an existing one lacks: no file that is there is changed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from rackwright.init.bases import Bases
from rackwright.init.choices import Choices, SiteGroup
from rackwright.init.fresh import ANSIBLE, Fresh, followed_files, made_files, with_schema
from rackwright.init.shipped import GROUP, shipped
from rackwright.init.writing import write_file
from rackwright.messages import RackwrightError
from rackwright.profiles.locked import LOCK_FILE
from rackwright.settings.host_settings import HostSettings
from rackwright.sources.profile_lock import lock_profiles

OURS = ".rackwright"
"""Folder of what is for Rackwright and for editors."""
LAB = (Path("inventory/lab.py"), Path("group_vars/lab.yml"))
"""Files of the package rackwright-lab for a site whose hosts are a lab's."""
PROFILED = "rackwright.site_of_profile"
"""Entry points of what changes such files for a profile."""


@dataclass(frozen=True)
class Made:
    """The files of a site: those that were written, and those that were there."""

    written: tuple[Path, ...]
    existing: tuple[Path, ...]

    @property
    def yours(self) -> list[Path]:
        """Return the written files that a user edits."""
        return [path for path in self.written if path.parts[0] != OURS]


def fresh_site(found: Choices, lab: bool = False, ansible: bool = False) -> Fresh:
    """Return the files of a site. lab: with the lab's hosts. ansible: with what reads an Ansible inventory.

    Raises RackwrightError when the installation lacks them.
    """
    more = {ANSIBLE: (shipped() / ANSIBLE).read_bytes()} if ansible else {}
    labs = lab_files() if lab else {}
    # What is made of a shipped file is a user's edit of it for `init --update`, which merges the two.
    made = {**made_files(found), **(_for_profile(labs, found.groups[0]) if labs else {})}
    return Fresh({**followed_files(), **more, **labs}, made, tuple(group.profile.name for group in found.groups))


def lab_files() -> dict[Path, bytes]:
    """Return the lab's inventory and variables. Raises RackwrightError where its package is not installed."""
    folders = [brought.load() for brought in entry_points(group=GROUP, name="lab")]
    places = [*folders, shipped()]
    found = {path: folder / path for folder in reversed(places) for path in LAB if (folder / path).is_file()}
    if not folders or len(found) < len(LAB):
        raise _no_lab()
    return {path: with_schema(file.read_bytes()) for path, file in found.items()}


def _no_lab() -> RackwrightError:
    install = "next: in a checkout: pip install ./packages/lab"
    return RackwrightError(
        f"--lab needs the package rackwright-lab of this version, which is not installed; {install}", code="RW1029"
    )


def _for_profile(files: Mapping[Path, bytes], group: SiteGroup) -> dict[Path, bytes]:
    """Return the lab's files so that its hosts serve what a group of the site serves."""
    texts = {path: text.decode() for path, text in files.items()}
    brought = [*entry_points(group=PROFILED, name="lab")]
    if not brought:
        raise _no_lab()
    made: Mapping[Path, str] = brought[0].load()(texts, group.profile.name, group.name)
    return {path: text.encode() for path, text in made.items()}


LOCK = Path(LOCK_FILE)


def make_site(site: Path, fresh: Fresh) -> Made:
    """Write what a site lacks, and lock its profiles. Raises RackwrightError when it cannot be written."""
    has_lock = (site / LOCK).exists()
    written = [path for path in fresh.files if not (site / path).exists()]
    for path in written:
        write_file(site / path, fresh.files[path])
    bases = Bases(site)
    bases.write({**bases.read(), **{path: fresh.shipped[path] for path in written if path in fresh.shipped}})
    locked = lock_profiles(site, [HostSettings.model_validate({"profile": name}) for name in fresh.profiles])
    new = [*written, *([LOCK] if locked and not has_lock else [])]
    return Made(tuple(new), tuple(path for path in fresh.files if path not in written))


def refuse_other_lab(site: Path, fresh: Fresh) -> None:
    """Raise RackwrightError where a site's lab serves another profile already: no file that is there is changed."""
    path = LAB[0]
    if path in fresh.made and (site / path).exists() and (site / path).read_bytes() != fresh.made[path]:
        profile = fresh.profiles[0]
        other = shlex.quote(f"{site}-{profile}")
        raise RackwrightError(
            f"{site / path} is there already, and its hosts serve something else than {profile}; nothing was written; "
            f"next: rackwright init {other} --lab --profile {profile}",
            code="RW1081",
        )


def site_texts(site: Path, made: Made) -> dict[Path, str]:
    """Return the texts of the files that were written."""
    return {path: (site / path).read_text(errors="replace") for path in made.yours}


def inventory_texts(site: Path, made: Made) -> dict[Path, str]:
    """Return the inventories that were there already."""
    existing = [path for path in made.existing if path.parts[0] == "inventory"]
    return {path: (site / path).read_text(errors="replace") for path in existing}


def optional_files(before: Mapping[Path, bytes]) -> dict[Path, bytes]:
    """Return what a site has beside the usual files, as it is shipped now, or was where its package is missing."""
    found = {path: before[path] for path in (*LAB, ANSIBLE) if path in before}
    if ANSIBLE in found:
        found[ANSIBLE] = (shipped() / ANSIBLE).read_bytes()
    if LAB[0] in found and entry_points(group=GROUP, name="lab"):
        found |= lab_files()
    return found
