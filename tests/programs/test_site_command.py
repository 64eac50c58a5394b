"""The site's own commands, hooks and notify's, as a run starts them: under gevent."""

from __future__ import annotations

import subprocess
import sys

import pytest

UNDER_GEVENT = """
from gevent import monkey
monkey.patch_all()
import time
from pathlib import Path
from rackwright.site_command import run_site_command
began = time.monotonic()
ended = run_site_command({argv!r}, "given", {seconds}, Path("/"))
print(ended.status, ended.output.strip(), time.monotonic() - began < 20, sep="|")
"""


def run(seconds: float, script: str) -> str:
    """Run a script for `sh` as a site's command; returns its end, its output, and whether that took under 20 s."""
    text = UNDER_GEVENT.format(argv=("sh", "-c", script), seconds=seconds)
    done = subprocess.run([sys.executable, "-c", text], timeout=60, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("seconds", "script", "ended"),
    [
        (10, "cat; exit 3", "3|given|True"),
        (0.5, "cat; echo seen; exec sleep 60", "was ended after 0.5 s|givenseen|True"),
        (0.5, "exec >/dev/null 2>&1; cat; sleep 60", "was ended after 0.5 s||True"),
        (10, "sleep 40 & echo left", "0|left|True"),
        (10, "head -c 3000000 /dev/zero | tr '\\\\0' x | wc -c; exit 0", "0|3000000|True"),
    ],
)
def test_a_command_ends_in_its_time_whatever_it_does_with_its_pipes(seconds: float, script: str, ended: str) -> None:
    assert run(seconds, script) == ended
