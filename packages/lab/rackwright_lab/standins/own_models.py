"""Models of the user's own, as the lab's hub serves them: a folder OWNER/NAME/v1/FILE, with v2, v3, ... after it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from rackwright_lab.machine.shell import LabError
from rackwright_lab.standins.hub_content import REPOSITORIES

LAYOUT = "it holds OWNER/NAME/v1/config.json and the model's other files, and further revisions as v2, v3, ..."


def put_own_models(source: Path, folder: Path) -> None:
    """Copy each repository below `source` to the hub's folder. Raises LabError for another layout."""
    for name in own_models(source):
        shutil.copytree(source / name, folder / name, dirs_exist_ok=True)


def own_models(source: Path) -> list[str]:
    """Return the repositories of such a folder, OWNER/NAME. Raises LabError, with what is wrong, for another layout."""
    if not source.is_dir():
        raise LabError(f"--models {source}: this machine has no folder of that name; {LAYOUT}")
    names = [str(path.relative_to(source)) for path in sorted(source.glob("*/*")) if path.is_dir()]
    if not names:
        raise LabError(f"--models {source}: it has no folder OWNER/NAME; {LAYOUT}")
    for name in names:
        _check(source / name, name)
    return names


def _check(folder: Path, name: str) -> None:
    if name in REPOSITORIES:
        raise LabError(f"--models: the lab's hub has a {name} of its own: use another name")
    found = {path.name for path in folder.iterdir()}
    wanted = {f"v{number + 1}" for number in range(len(found))}
    if not found or found != wanted or any(not re.fullmatch(r"v[1-9]\d*", one) for one in found):
        raise LabError(f"--models: {folder} holds {' '.join(sorted(found)) or 'nothing'}; {LAYOUT}")
