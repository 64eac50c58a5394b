"""The shells that complete verbs and options do so with what `rackwright completion SHELL` prints."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rackwright.cli.main import main

BASH = (
    "source {script}; COMP_WORDS=({words}); COMP_CWORD={last}; _shtab_rackwright; printf '%s\\n' \"${{COMPREPLY[@]}}\""
)
FISH = "source {script}; complete -C '{typed}'"


@pytest.fixture(name="script")
def _script(tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Path:
    """Write the script of the shell that the test is for; skip without that shell."""
    shell = request.param
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    assert main(["completion", shell]) == 0
    path = tmp_path / f"rackwright.{shell}"
    path.write_text(capsys.readouterr().out)
    return path


def printed(*command: str) -> list[str]:
    """Return the rows that a shell prints, without fish's descriptions."""
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return [row.partition("\t")[0] for row in done.stdout.splitlines()]


ZSH = r"""
zmodload zsh/zpty
zpty -b shell zsh -f -i
# Sends keys; prints what the line is then, which a widget writes to a file.
zpty -w shell "cd $1; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D
show() { print -r -- \$BUFFER >line; BUFFER= }; zle -N show; bindkey '^X' show; touch ready"
for try in {1..300}; do [ -e $1/ready ] && break; sleep 0.1; done
for typed in "${@:2}"; do
  zpty -w -n shell "$typed"$'\t\x18'
  for try in {1..100}; do [ -s $1/line ] && break; sleep 0.1; done
  cat $1/line; rm $1/line
done
zpty -d shell
"""
SHELL_WORDS = [("rackwright dra", "drain"), ("rackwright drain --rea", "--reason"), ("rackwright lease b", "break")]
TYPED = pytest.mark.parametrize(
    ("typed", "completed"),
    SHELL_WORDS,
)


@TYPED
@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash_completes_verbs_and_options(script: Path, typed: str, completed: str) -> None:
    last = typed.count(" ")
    command = BASH.format(script=script, words=typed, last=last)
    assert printed("bash", "--norc", "-i", "-c", command) == [completed]


@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash_completes_an_inventory_as_a_file(script: Path, tmp_path: Path) -> None:
    (tmp_path / "inventory.py").touch()
    command = BASH.format(script=script, words=f"rackwright status {tmp_path}/inv", last=2)
    assert printed("bash", "--norc", "-i", "-c", command) == [f"{tmp_path}/inventory.py"]


@TYPED
@pytest.mark.parametrize("script", ["fish"], indirect=True)
def test_fish_completes_verbs_and_options(script: Path, typed: str, completed: str) -> None:
    assert completed in printed("fish", "--no-config", "-c", FISH.format(script=script, typed=typed))


@pytest.mark.parametrize("script", ["zsh"], indirect=True)
def test_zsh_completes_verbs_options_and_files(script: Path, tmp_path: Path) -> None:
    script.rename(tmp_path / "_rackwright")
    (tmp_path / "inventory.py").touch()
    rows = printed(
        "zsh", "-f", "-c", ZSH, "zsh", str(tmp_path), *(typed for typed, _ in SHELL_WORDS), "rackwright status inv"
    )
    rows_wanted = [f"{typed.rpartition(' ')[0]} {completed} " for typed, completed in SHELL_WORDS]
    assert [row for row in rows if row] == [*rows_wanted, "rackwright status inventory.py "]
