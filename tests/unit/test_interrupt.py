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
import os, signal, time
from rackwright.interrupt import fail_on_interrupt
fail_on_interrupt()
os.kill(os.getpid(), signal.SIGINT)
time.sleep(5)
"""


def test_ctrl_c_exits_as_interrupted_and_says_what_goes_on() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == STATUS
    assert "run the same command again" in done.stderr


def test_pyinfra_cannot_ask_for_a_sudo_password() -> None:
    with pytest.raises(PasswordWantedError, match="NOPASSWD"):
        util.getpass("    [host] sudo password: ")
