"""Ctrl-C is no success, and a sudo password is not asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pyinfra.connectors import util

from rackwright import effects  # noqa: F401 - it refuses passwords
from rackwright.interrupt import STATUS
from rackwright.sudo import PasswordWantedError

PROGRAM = """\
import pyinfra_cli
import os, signal, time
from types import SimpleNamespace
from gevent.pool import Pool
from pyinfra.context import ctx_state
from rackwright.interrupt import fail_on_interrupt

def send():
    os.kill(os.getpid(), signal.NUMBER)
    sum(range(100_000))
    print("the packet is whole")
    time.sleep(60)

fail_on_interrupt()
state = SimpleNamespace(pool=Pool(1))
ctx_state.set(state)
state.pool.spawn(send)
try:
    time.sleep(60)
finally:
    state.pool.spawn(print, "disconnects").join()
"""


@pytest.mark.parametrize(("number", "word"), [("SIGINT", "Ctrl-C"), ("SIGTERM", "SIGTERM")])
def test_ctrl_c_exits_as_interrupted_and_says_what_goes_on(number: str, word: str) -> None:
    program = PROGRAM.replace("NUMBER", number)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == STATUS
    assert f"Stopped by {word}: " in done.stderr
    assert "run the same command again" in done.stderr
    assert done.stdout.splitlines() == ["the packet is whole", "disconnects"]


def test_pyinfra_cannot_ask_for_a_sudo_password() -> None:
    with pytest.raises(PasswordWantedError, match="NOPASSWD"):
        util.getpass("    [host] sudo password: ")
