"""aiperf in an environment of its own: its pins clash with ours, so it is a command and never an import.

It is made once a lock file, under the user's cache, from packages with the lock's hashes; then no network is asked.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from rackwright.messages import RackwrightError, paragraph

LOCK = files("rackwright_bench") / "data" / "aiperf.txt"
CACHE_VARIABLE = "XDG_CACHE_HOME"
READY = ".ready"
PACKAGES_SECONDS = 1800
"""Its packages are a gigabyte with what they unpack to."""
LAST = 12
"""Lines of pip's that are shown when it fails."""


def environment_folder() -> Path:
    """Return the folder of the environment for this lock and this Python, made or not."""
    digest = hashlib.sha256(f"{sys.version_info[:2]}\n{LOCK.read_text()}".encode()).hexdigest()[:12]
    return cache_folder() / f"aiperf-{version()}-{digest}"


def cache_folder() -> Path:
    """Folder of the files that the bench has fetched for a user."""
    cache = Path(os.environ.get(CACHE_VARIABLE) or "~/.cache").expanduser().absolute()
    return cache / "rackwright" / "bench"


def version() -> str:
    """Return the version of aiperf that the lock names."""
    requirement = next(
        requirement for requirement in LOCK.read_text().splitlines() if requirement.startswith("aiperf==")
    )
    return requirement.removeprefix("aiperf==").split()[0]


def ready_python(say: Callable[[str], None]) -> Path:
    """Return the Python of the environment, which is made first where it is missing. Raises RackwrightError."""
    folder = environment_folder()
    python = folder / "bin" / "python"
    if not (folder / READY).exists():
        with alone(folder):
            if not (folder / READY).exists():
                say(f"making the environment of aiperf {version()} in {folder}: once, 1.2 GB, some minutes")
                _make(folder, python)
    return python


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time makes it. Raises RackwrightError where nothing can be written."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise RackwrightError(
            f"{folder.parent} cannot be written: {error}; nothing was measured; next: set {CACHE_VARIABLE} to a folder "
            "with 2 GB of free space",
            code="RW1503",
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def without_ours(environment: Mapping[str, str]) -> dict[str, str]:
    """Less what would lead a Python to packages outside its own environment."""
    return {key: value for key, value in environment.items() if key not in ("PYTHONPATH", "PYTHONHOME")}


def _make(folder: Path, python: Path) -> None:
    _run([sys.executable, "-m", "venv", "--clear", str(folder)])
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)])
    (folder / READY).touch()


def _run(words: list[str]) -> None:
    try:
        done = subprocess.run(
            words,
            env=without_ours(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=PACKAGES_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RackwrightError(_failed(str(error)), code="RW1504") from error
    if done.returncode:
        raise RackwrightError(_failed("\n".join(done.stdout.splitlines()[-LAST:])), code="RW1504")


def _failed(why: str) -> str:
    return (
        f"the environment of aiperf {version()} could not be made, nothing was measured:\n{paragraph(why)}\n"
        "next: give pip a way to PyPI or to a mirror (pip config set global.index-url URL), then the same command"
    )
