"""A test that hangs is ended with its name and its stacks, in whatever it hangs, and the others run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HANGING = """\
import gevent, pytest, threading, time
patient = pytest.mark.timeout(4)  # a busy machine needs a while to write stacks down, and must not meet the hard limit

def deaf():
    time.sleep(60)

def busy():
    while True:
        gevent.sleep(0)

@patient
def test_asleep():
    deaf()

@patient
def test_waiting_for_a_thread():
    thread = threading.Thread(target=deaf, daemon=True)
    thread.start()
    thread.join()

@patient
def test_in_greenlets():
    gevent.spawn(busy).join()

@pytest.mark.timeout(1)
def test_catching_everything():
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass

def test_fine():
    pass
"""
NAMES = ("test_asleep", "test_waiting_for_a_thread", "test_in_greenlets", "test_catching_everything")


def test_a_test_that_hangs_fails_with_its_name_and_stacks_and_the_others_run(tmp_path: Path) -> None:
    file = tmp_path / "test_hanging.py"
    file.write_text(HANGING)
    words = ["-q", "-p", "tests.timelimits", "-n", "2", "--rootdir", str(tmp_path), str(file)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=ROOT, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 1, done.stdout
    assert "4 failed, 1 passed" in done.stdout
    for name in NAMES:
        assert f"test_hanging.py::{name}\n" in done.stdout.replace(" - ", "\n")
    assert done.stdout.count("in deaf") == 2, "the sleeping test's own, and the thread's"
    assert "in busy" in done.stdout, "the greenlet's"
    assert "in test_catching_everything" in done.stderr, "from the hard limit"
