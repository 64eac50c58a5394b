"""pyinfra's question to a closed standard input."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
from rackwright.messages import RackwrightError
from rackwright.adapter.terminal import say_when_nobody_answers
say_when_nobody_answers()
from pyinfra_cli import cli
assert "input" in cli._do_confirm.__code__.co_names
try:
    print("answer", repr(cli.input()))
except RackwrightError as error:
    print(error)
"""


@pytest.mark.parametrize(("typed", "message"), [("", "no answer"), ("\n", "answer ''")])
def test_a_closed_standard_input_is_told_in_a_line(typed: str, message: str) -> None:
    done = subprocess.run([sys.executable, "-c", CODE], input=typed, capture_output=True, text=True, check=True)
    assert message in done.stdout
    assert len(done.stdout.splitlines()) == 1
