"""The version before 0.2.0, as its commit has it: its source, and an environment that runs it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from rackwright_lab.machine import locks
from rackwright_lab.machine.paths import cache_root
from tests.lab.conftest import BIN, ROOT

COMMIT = "ce5c140b2a9c93f4e55e00c76bb95d2b03e88565"
LOCK = "requirements/dev.txt"
START = "import sys; sys.path.pop(0); from rackwright.commands.cli import main; sys.exit(main())"
"""The former version's `rackwright`, wherever it is started: not by a module of the folder in which it is."""
WHY = f"tests/lab/upgrade deploys hosts by commit {COMMIT}, which this checkout does not have"
HOW = "next: git fetch --unshallow origin, or git fetch origin main, in a clone of the repository"


class Former:
    """The former version's commands. Fails the test, with what to do, when its source cannot be had."""

    def __init__(self) -> None:
        self.source = cache_root() / "former" / COMMIT
        with locks.only_one(f"former-{COMMIT[:12]}"):
            if not self.source.exists():
                _unpack(_archive(), self.source)
            self.bin = self._environment()

    def _environment(self) -> Path:
        """Return the folder of its programs: this checkout's where the locked packages are the same, else its own."""
        if _are_here(self.source / LOCK):
            return BIN
        subprocess.run(["scripts/setup"], cwd=self.source, check=True, timeout=900)
        return self.source / ".venv" / "bin"

    def words(self, program: str, *words: str) -> list[str]:
        """Return a command line of its `rackwright` or `pyinfra`: its own source goes before what is installed."""
        python = self.bin / Path(sys.executable).name
        # What is installed beside this checkout's programs names its modules, which have other names there.
        started = ["-c", START] if program == "rackwright" else [str(self.bin / program)]
        return ["env", f"PYTHONPATH={self.source}", str(python), *started, *words]


def _are_here(lock: Path) -> bool:
    """Return True when every package of a lock is installed beside this Python, in that version."""
    pins = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", lock.read_text(), re.MULTILINE)
    here = {_plain(found.name): found.version for found in distributions()}
    return bool(pins) and all(here.get(_plain(name)) == version for name, version in pins)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _archive() -> bytes:
    """Return its source as a tar file, fetched when the clone is a shallow one."""
    for fetch in ((), ("--depth=1", "origin", COMMIT), ("--unshallow", "origin")):
        if fetch:
            _git("fetch", "--quiet", *fetch)
        found = _git("archive", "--format=tar", COMMIT)
        if found.returncode == 0:
            return found.stdout
    pytest.fail(f"{WHY}: {found.stderr.decode(errors='replace').strip()}; {HOW}")


def _git(*words: str) -> subprocess.CompletedProcess[bytes]:
    # CI may run as another user than the one whose checkout it is.
    command = ("git", "-c", f"safe.directory={ROOT}")
    return subprocess.run([*command, *words], cwd=ROOT, capture_output=True, check=False, timeout=300)


def _unpack(archive: bytes, source: Path) -> None:
    """Whole or not at all: a run that is cut leaves no half of it."""
    partial = source.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    subprocess.run(["tar", "--extract", "--directory", str(partial)], input=archive, check=True)
    partial.rename(source)
