"""Commands reach sh unchanged through every login's shell."""

from __future__ import annotations

import shlex
import subprocess
from shutil import which

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.adapter.ssh.any_shell import for_any_shell

SHELLS = [shell for shell in ("sh", "bash", "csh", "tcsh", "fish", "zsh", "ksh") if which(shell)]
SCRIPTS = (
    "echo one\necho two",
    r"""printf '%s|' 'a\\b' '\' "it's" "\$HOME" '!x' '!!' 'ü€' '%b\n' ; echo""",
    "case 'a*b' in *\\**) echo star ;; esac",
    "cat; exit 7",
    'if ! false; then echo no; fi\n\n# title with \' in it\necho "$0 $#"\n',
)


def ran(shell: str, command: str) -> tuple[int, bytes]:
    done = subprocess.run([shell, "-c", command], input=b"given\n", capture_output=True, check=False, timeout=20)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_does_the_same_below_every_shell(shell: str, script: str) -> None:
    assert ran(shell, for_any_shell(f"sh -c {shlex.quote(script)}")) == ran("sh", f"sh -c {shlex.quote(script)}")


@settings(max_examples=40, deadline=None)
@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=60))
def test_any_argument_arrives_as_it_is(text: str) -> None:
    command = for_any_shell(f"sh -c {shlex.quote('printf %s ' + shlex.quote(text))}")
    assert ran("sh", command) == (0, text.encode())


@given(st.text(max_size=80))
def test_nothing_is_left_that_csh_or_fish_reads_in_its_own_way(text: str) -> None:
    command = for_any_shell(f"sh -c {shlex.quote(text)}")
    assert not set(command) & {"\n", "!"}
    assert "\\\\" not in command
    assert "\\'" not in command


def test_a_plain_command_stays_as_it_is() -> None:
    assert for_any_shell("sudo -H -n sh -c 'id'") == "sudo -H -n sh -c 'id'"
