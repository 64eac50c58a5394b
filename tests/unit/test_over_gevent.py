"""Turn queue, download slots and lease pass the same tests over gevent, as under pyinfra, and over plain threads.

The files themselves run over threads; here they run in a process that gevent has patched, as pyinfra's command is.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FILES = ("test_turn_queue.py", "test_slots.py", "test_downloads.py", "test_lease.py")
PATCHED = """
from gevent import monkey

monkey.patch_all()
import sys
import threading

import pytest

assert monkey.is_module_patched("threading") and threading.get_ident.__module__.startswith("gevent")
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-n0", *sys.argv[1:]]))
"""


@pytest.mark.parametrize("file", FILES)
def test_what_waits_passes_over_gevent_too(file: str) -> None:
    path = Path(__file__).with_name(file)
    done = subprocess.run(
        [sys.executable, "-c", PATCHED, str(path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
