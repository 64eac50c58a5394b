"""Simple steps that travel as one command: each gets its own input, and the first that fails ends them."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyinfra.connectors.util import CommandOutput, OutputLine

from rackwright.plan.change import Shell, WriteFile
from rackwright.remote import commands
from rackwright.remote.commands import command_of, run_simple
from rackwright.remote.errors import StepFailedError
from rackwright.remote.stdin_payload import MOST, as_one, failed_of
from rackwright.settings.secret import Secret
from tests.unit.test_by_input import ran, sent

TEXTS = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


def done(*steps: Shell) -> subprocess.CompletedProcess[str]:
    return ran(command_of(as_one(steps)))


@given(st.lists(TEXTS, min_size=1, max_size=4), st.booleans())
def test_each_step_gets_its_own_input(texts: list[str | None], unseen: bool) -> None:
    shown = done(*(Shell("od -An -tx1 | tr -d ' \\n'; echo", stdin=text, unseen=unseen) for text in texts))
    expected = ["" if text is None else (text if text.endswith("\n") else f"{text}\n").encode().hex() for text in texts]
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.split("\n")[:-1] == expected


@pytest.mark.parametrize("filler", [0, MOST])
def test_the_first_that_fails_ends_them_and_is_named(filler: int) -> None:
    steps = [Shell(f": {'x' * filler}\necho one"), Shell("cat >&2; exit 7", stdin="why\n"), Shell("echo three")]
    shown = done(*steps)
    assert (shown.returncode, shown.stdout) == (7, "one\n")
    assert failed_of(shown.stderr.splitlines()) == (1, ["why"])
    assert failed_of(done(Shell("printf why >&2; false")).stderr.splitlines()) == (0, ["why"])


def test_a_steps_own_set_e_holds() -> None:
    shown = done(Shell("set -e\necho one\nfalse\necho two"), Shell("echo three"))
    assert (shown.returncode, shown.stdout) == (1, "one\n")


def test_they_share_the_sum_of_their_times() -> None:
    assert as_one([Shell("sleep 30", timeout=2), Shell("true", timeout=3)]).timeout == 5
    assert done(Shell("sleep 30", timeout=1)).returncode == 124


def test_no_step_sees_what_another_has_set() -> None:
    assert done(Shell("x=1; cd /; umask 077; set -e"), Shell('echo "<$x>"')).stdout == "<>\n"


@pytest.mark.parametrize("cut", [1, 2, 8, 9, 10, 14, 20, 40])
def test_of_a_file_whose_content_was_cut_nothing_is_written(tmp_path: Path, cut: int) -> None:
    """A part of base64 is mostly base64 too."""
    file = tmp_path / "file"
    file.write_text("before")
    owner = f"{file.owner()}:{file.group()}"
    steps = [WriteFile(str(file), "0123456789" * 20, owner=owner), WriteFile(f"{file}.2", "0" * 10, owner=owner)]
    command, text = sent(command_of(as_one([commands._shell_of(step) for step in steps])))
    cut_off = subprocess.run(["sh", "-c", command], input=text[:-cut], capture_output=True, text=True, check=False)
    assert cut_off.returncode == (1 if cut > 1 else 0)
    assert file.read_text() in ("before", "0123456789" * 20)
    assert Path(f"{file}.2").exists() == (cut == 1)


def test_secrets_and_unseen_scripts_are_no_argument() -> None:
    steps: list[Shell | WriteFile] = [Shell("cat", stdin=Secret("a-secret"))]
    steps += [Shell(": a-password", unseen=True), WriteFile("/f", "of a file")]
    command, _ = sent(command_of(as_one([commands._shell_of(step) for step in steps])))
    words = ("a-secret", "a-password", base64.b64encode(b"of a file").decode())
    assert not any(argument in command for argument in words)


def test_the_error_names_the_file_that_could_not_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = done(Shell("true"), Shell("echo no space >&2; false"))
    lines = [OutputLine("stderr", row) for row in shown.stderr.splitlines()]
    monkeypatch.setattr(commands, "under_lease", lambda *_: (False, CommandOutput(lines)))
    host: Any = None
    with pytest.raises(StepFailedError) as caught:
        run_simple(host, Shell("true"), WriteFile("/etc/file", ""))
    assert str(caught.value).endswith("/etc/file failed: no space")
