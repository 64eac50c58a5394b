"""The files as they were shipped when a site got them: the base of a merge, as in git."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rackwright.init.writing import write_file
from rackwright.messages import RackwrightError, writing

FILE = Path(".rackwright/shipped.json")
TREE = Path(".rackwright/shipped")
"""Folder of sites of 0.1: a copy of each file."""


@dataclass(frozen=True)
class Bases:
    """The bases of one site, in the form that it has."""

    site: Path

    @property
    def is_tree(self) -> bool:
        """True for a site of 0.1."""
        return (self.site / TREE).is_dir()

    def read(self) -> dict[Path, bytes]:
        """Return the bases by path in the site; none where the site has no list. Raises RackwrightError."""
        if self.is_tree:
            folder = self.site / TREE
            return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        path = self.site / FILE
        try:
            files = json.loads(path.read_bytes())["files"] if path.exists() else {}
            return {Path(name): "".join(rows).encode() for name, rows in files.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            text = f"{path} is not what rackwright init has written: {error}; next: git checkout {FILE}"
            raise RackwrightError(text, code="RW1062") from None

    def write(self, contents: Mapping[Path, bytes]) -> None:
        """Replace the bases by these. Raises RackwrightError when they cannot be written."""
        if self.is_tree:
            self._write_tree(contents)
            return
        files = {str(path): content.decode().splitlines(keepends=True) for path, content in sorted(contents.items())}
        text = json.dumps({"format": 1, "files": files}, indent=1, ensure_ascii=False)
        write_file(self.site / FILE, f"{text}\n".encode())

    def _write_tree(self, contents: Mapping[Path, bytes]) -> None:
        for path in self.read().keys() - contents.keys():
            with writing(self.site / TREE / path):
                (self.site / TREE / path).unlink()
        for path, content in contents.items():
            write_file(self.site / TREE / path, content)
