"""A process of seconds no longer searches its loaded modules for garbage; what it drops is found anyway."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc, weakref
from rackwright.garbage import SELDOM, collect_seldom
collect_seldom()
collect_seldom()
assert gc.isenabled() and gc.get_threshold()[0] == SELDOM and gc.get_freeze_count() > 1000
class Ring: pass
ring = Ring(); ring.own = ring
seen = weakref.ref(ring)
del ring
kept = [[] for _ in range(2 * SELDOM)]
print("found" if seen() is None else "kept")
"""


def test_what_is_dropped_later_is_still_found() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("found\n", "")
