"""A command that writes a bundle is killed at any moment: no half one counts as whole, and the next one finishes it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from rackwright.bundle.catalog import read_catalog
from rackwright.bundle.checking import changed_files, opened
from rackwright.messages import RackwrightError
from tests.lab.products import with_proof

WRITES = """
import sys, time
from pathlib import Path
from rackwright.bundle import contents, fetching
from rackwright.concerns.encodings import Encoding
from tests.unit import test_bundle as bundle

class Slow(bundle.Servers):
    def opened(self, *words):
        time.sleep(0.02)
        return super().opened(*words)

servers = Slow(bundle.put_files(), ends_after=300_000)
contents.Client = lambda _: servers
contents.ENCODING_FILES = (Encoding("o200k", 10, bundle.sha256(b"vocabulary")),)
fetching.PAUSE, fetching.ATTEMPTS = 0, 100
print("begun", flush=True)
bundle.write(Path(sys.argv[1]), part_size=1 << 20)
"""
PERCENT = range(0, 100, 2)


def begun(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", WRITES, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    process.stdout.readline()
    return process


def damage(folder: Path) -> str:
    """Return the code by which a bundle is refused; empty for a whole one. Raises AssertionError for changed files."""
    try:
        catalog = opened(folder, None)
    except RackwrightError as error:
        return error.code
    changed = list(changed_files(folder, catalog, lambda _: None))
    assert changed == []
    return ""


@pytest.fixture(scope="module")
def seconds(tmp_path_factory: pytest.TempPathFactory) -> float:
    """Return how long the command takes."""
    with begun(tmp_path_factory.mktemp("whole")) as process:
        start = time.monotonic()
        assert process.wait(60) == 0
    return time.monotonic() - start


@pytest.mark.parametrize("percent", with_proof(PERCENT, (10, 50, 90), "three moments of fifty"))
def test_a_kill_leaves_no_bundle_or_a_whole_one_and_the_next_command_finishes_it(
    tmp_path: Path, seconds: float, percent: int
) -> None:
    with begun(tmp_path) as process:
        time.sleep(seconds * percent / 100)
        process.kill()
    assert damage(tmp_path) in ("RW3803", "RW3883", "")
    with begun(tmp_path) as process:
        assert process.wait(60) == 0
    assert damage(tmp_path) == ""
    assert read_catalog(tmp_path).missing() == []
    assert {path.name.partition("-")[0] for path in tmp_path.iterdir()} == {"SHA256SUMS", "bundle.json", "part"}
