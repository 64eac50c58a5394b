"""Ctrl-C is a failure, and a sudo password is not asked for."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyinfra.connectors import util

from rackwright.adapter.ssh.passwords import PasswordWantedError, refuse_passwords
from rackwright.exit_codes import ExitCode

PROGRAM = """\
import pyinfra_cli
import os, signal, time
from types import SimpleNamespace
from gevent.pool import Pool
from pyinfra.api.state import StateStage
from pyinfra.context import ctx_state
from rackwright.adapter.run.interrupt import fail_on_interrupt

def send():
    os.kill(os.getpid(), signal.NUMBER)
    sum(range(100_000))
    print("the packet is whole")
    time.sleep(60)

fail_on_interrupt()
state = SimpleNamespace(pool=Pool(1), current_stage=StateStage.Execute)
ctx_state.set(state)
state.pool.spawn(send)
try:
    time.sleep(60)
finally:
    state.pool.spawn(print, "disconnects").join()
"""


@pytest.mark.parametrize(("number", "signal_name"), [("SIGINT", "Ctrl-C"), ("SIGTERM", "SIGTERM")])
def test_ctrl_c_exits_as_interrupted_and_says_what_goes_on(number: str, signal_name: str) -> None:
    program = PROGRAM.replace("NUMBER", number)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == ExitCode.INTERRUPTED
    assert f"Stopped by {signal_name}: " in done.stderr
    assert "run the same command again" in done.stderr
    assert done.stdout.splitlines() == ["the packet is whole", "disconnects"]


DEAF = """\
import click, os, signal, sys, time
from pathlib import Path
from types import SimpleNamespace
from gevent.pool import Pool
import gevent.monkey
gevent.monkey.patch_all()
from pyinfra.api.state import StateStage
from pyinfra.context import ctx_state
from rackwright.adapter.run.interrupt import die_with_rollout, fail_on_interrupt

fail_on_interrupt()
die_with_rollout()
ctx_state.set(SimpleNamespace(pool=Pool(1), current_stage=StateStage.Execute))
Path(sys.argv[1]).write_text(str(os.getpid()))
try:
    time.sleep(60)
finally:
    click.echo("--> Disconnecting", err=True)
    Path(sys.argv[1]).write_text("disconnected")
"""
NURSE = """\
import os, subprocess, sys, time
from rackwright.record.handover import Handover
words = [sys.executable, "-c", sys.argv[1], sys.argv[2]]
subprocess.Popen(words, env=Handover(parent=os.getpid()).environment)
time.sleep(60)
"""


def until(path: Path, done: Callable[[str], bool]) -> str:
    deadline = time.monotonic() + 20
    while not (path.exists() and done(path.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return path.read_text()


def test_it_disconnects_though_nobody_reads_any_more(tmp_path: Path) -> None:
    log = tmp_path / "events.log"
    words = [sys.executable, "-c", DEAF, str(log)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        until(log, str.isdigit)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stderr.close()
        process.terminate()
        process.wait(20)
    assert log.read_text() == "disconnected"


def test_a_rollout_that_is_killed_leaves_no_pyinfra_behind(tmp_path: Path) -> None:
    log = tmp_path / "events.log"
    words = [sys.executable, "-c", NURSE, DEAF, str(log)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as rollout:
        until(log, str.isdigit)
        rollout.kill()
    until(log, "disconnected".__eq__)


def test_pyinfra_cannot_ask_for_a_sudo_password() -> None:
    refuse_passwords()
    with pytest.raises(PasswordWantedError, match="NOPASSWD"):
        util.getpass("    [host] sudo password: ")
