"""Python that runs on a host inside an image: a package packed as one file that `python3 FILE` runs."""

from __future__ import annotations

import base64
import io
import zipfile
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

ENTRY = "import sys\nfrom {package}.main import main\n\nsys.exit(main())\n"
FETCH_MODEL = ("hostside/fetch_model", "hostside/hand_on/redirects", "hostside/quiet_disk")
HAND_ON = ("hostside/hand_on", "hostside/quiet_disk")
"""Programs that fetch models, each with the modules that it needs beside its own."""
LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""A fixed time, so that equal programs are equal bytes: a job is joined by its text."""


@cache
def packed(name: str, *modules: str) -> str:
    """Return a package as a zip file that Python runs, in base64.

    name: its folder below `rackwright/`, as `hostside/fetch_model`.
    modules: modules that it imports as well, as `concerns/endpoint/proof/basic`; they import nothing of Rackwright.
    """
    sources = {f"rackwright/{name}/{file.name}": file.read_text() for file in _modules(name)}
    # The packages above it are empty there, so that nothing else of Rackwright is needed.
    parents = {f"rackwright/{folder}/__init__.py": "" for path in (name, *modules) for folder in _above(path)}
    parents["rackwright/__init__.py"] = ""
    shared = {f"rackwright/{module}.py": (files("rackwright") / f"{module}.py").read_text() for module in modules}
    entry = ENTRY.format(package=f"rackwright.{name.replace('/', '.')}")
    content = {"__main__.py": entry, **parents, **shared, **sources}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for path, text in sorted(content.items()):
            out.writestr(zipfile.ZipInfo(path, LONG_AGO), text, zipfile.ZIP_DEFLATED)
    return base64.b64encode(archive.getvalue()).decode()


def _above(path: str) -> list[str]:
    """Return the folders above a module, the topmost last."""
    return [str(parent) for parent in PurePosixPath(path).parents if parent.name]


def _modules(name: str) -> list[Traversable]:
    return [file for file in (files("rackwright") / name).iterdir() if file.name.endswith(".py")]
