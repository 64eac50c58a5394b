"""Rackwright itself with all that it needs, as wheels of the versions that run here: a folder that pip installs from.

They are for this machine's Python and processor. Names stay as they are, since pip goes by them.
"""

from __future__ import annotations

import importlib.util
import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement

from rackwright.bundle.catalog import TOOL
from rackwright.bundle.store import hash_file
from rackwright.messages import RackwrightError, few

NEEDS = "requirements.txt"
SECONDS = 900
_NAME = re.compile(r"[-_.]+")


def add_tool(folder: Path) -> dict[str, str]:
    """Have the wheels in a bundle's folder; returns SHA-256 by name. Raises RackwrightError where pip cannot."""
    target = folder / TOOL
    target.mkdir(exist_ok=True)
    distributions = [*needed()]
    lacking = [one for one in distributions if not wheel_of(target, one)]
    if lacking:
        _make_wheels(target, lacking)
    wheels = {wheel.name: hash_file(wheel) for one in distributions if (wheel := wheel_of(target, one))}
    rows = [
        f"{_plain(one)}=={one.version} --hash=sha256:{wheels[wheel.name]}"
        for one in distributions
        if (wheel := wheel_of(target, one))
    ]
    (target / NEEDS).write_text("".join(f"{row}\n" for row in sorted(rows)))
    for path in target.iterdir():
        if path.name not in (*wheels, NEEDS):
            path.unlink()
    return {**wheels, NEEDS: hash_file(target / NEEDS)}


def needed(name: str = "rackwright") -> Iterator[Distribution]:
    """Yield a package that is installed here, and all that it needs, each once."""
    found: dict[str, Distribution] = {}
    queue = [name]
    while queue:
        try:
            one = distribution(queue.pop())
        except PackageNotFoundError:
            continue  # for another system
        if _plain(one) not in found:
            found[_plain(one)] = one
            rows = [Requirement(row) for row in one.requires or ()]
            queue += [row.name for row in rows if row.marker is None or row.marker.evaluate({"extra": ""})]
    yield from found.values()


def _plain(one: Distribution) -> str:
    return _NAME.sub("-", one.metadata["Name"]).lower()


def wheel_of(folder: Path, one: Distribution) -> Path | None:
    """Return the wheel of a package in a folder, if it is there."""
    start = f"{_plain(one).replace('-', '_')}-{one.version}-"
    return next((path for path in sorted(folder.glob("*.whl")) if path.name.lower().startswith(start)), None)


def _make_wheels(folder: Path, lacking: Sequence[Distribution]) -> None:
    """Get wheels: of a package's own folder or file where it was installed from one, else from the index."""
    sources = [_source(one) or f"{one.metadata['Name']}=={one.version}" for one in lacking]
    here = ["--no-build-isolation"] if importlib.util.find_spec("hatchling") else []
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", *here, "--wheel-dir", str(folder), *sources]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    missing = [one.metadata["Name"] for one in lacking if not wheel_of(folder, one)]
    if done.returncode or missing:
        why = " ".join((done.stderr or done.stdout).split())[-300:]
        text = f"no wheel of {few(missing)} can be had: {why}; all else is in the bundle"
        raise RackwrightError(f"{text}; next: the same command again, or with --without-tool", code="RW3933")


def _source(one: Distribution) -> str:
    """Return the folder or wheel on this machine that a package was installed from; empty for one of an index."""
    text = one.read_text("direct_url.json")
    url = urlsplit(json.loads(text).get("url", "")) if text else None
    return unquote(url.path) if url and url.scheme == "file" else ""


def described() -> str:
    """Return which machines the wheels are for."""
    return f"Python {sys.version_info.major}.{sys.version_info.minor}, {platform.machine()}"
