"""Imports by `from tasks import docker`: the site's modules, and never those of the folder where one stands."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def import_from(root: Path) -> None:
    """Look for modules in the site's root first, from now on."""
    while sys.path[-1:] in ([os.curdir], [str(Path.cwd())]):  # pyinfra has added it, twice
        sys.path.pop()
    if sys.path[:1] != [str(root)]:
        sys.path.insert(0, str(root))


@contextmanager
def importing_from(root: Path) -> Iterator[None]:
    """Import from a folder for the length of a block."""
    before = list(sys.path)
    import_from(root)
    try:
        yield
    finally:
        sys.path[:] = before
