"""Debian's Prometheus, unpacked by scripts/prometheus, and a folder for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def programs() -> Path:
    """Return the folder with prometheus, promtool and prometheus-node-exporter; downloads them once."""
    run = subprocess.run([ROOT / "scripts/prometheus"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return Path(run.stdout.strip()) / "usr/bin"
