"""What the tests of the stand-ins share: the real encodings, and the lab's hub on disk."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rackwright_lab.machine.paths import cache_root
from rackwright_lab.standins.encodings import ensure_encodings
from rackwright_lab.standins.hub_content import Store
from tests.programs.model_hub import hub, server

__all__ = ["hub", "server"]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def encodings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the encodings; from the lab's cache where there is one to write to."""
    cache = cache_root() if os.access(cache_root().parent, os.W_OK) else tmp_path_factory.mktemp("cache")
    return ensure_encodings(cache)[0].parent


@pytest.fixture(scope="session")
def haproxy() -> Path:
    """Return Debian's HAProxy, which is unpacked and not installed; downloads it once."""
    run = subprocess.run([ROOT / "scripts/haproxy"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return Path(run.stdout.strip()) / "bin/haproxy"


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Make the repositories of the lab's hub."""
    return Store(tmp_path_factory.mktemp("hub"))
