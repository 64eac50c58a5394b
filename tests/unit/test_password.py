"""A typed vault password: every reader gets it once, whole, and no file holds it."""

from __future__ import annotations

import argparse
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rackwright.cli import vault
from rackwright.cli.main import parsed, parser
from rackwright.loading.password import hand_out

VERBS = (
    "check",
    "render",
    "pin",
    "plan",
    "drift",
    "rollout",
    "rollback",
    "status",
    "logs",
    "exec",
    "chat",
    "teardown",
)


def test_every_reader_gets_it_once_and_whole() -> None:
    pipe = hand_out("hunter2")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert stat.S_IMODE(pipe.stat().st_mode) == 0o600
    assert [pipe.read_text() for _ in range(50)] == ["hunter2\n"] * 50
    script = [sys.executable, "-c", "import sys; print(open(sys.argv[1]).read(), end='')", str(pipe)]
    outputs = [subprocess.run(script, capture_output=True, text=True, check=True).stdout for _ in range(3)]
    assert outputs == ["hunter2\n"] * 3


def test_it_goes_with_the_process_that_asked_for_it() -> None:
    code = "from rackwright.loading.password import hand_out; p = hand_out('x'); p.read_text(); print(p.parent)"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert made
    assert not Path(made).exists()


def test_the_command_line_tells_ansible_vault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(vault.PASSWORD_FILE, "before")
    monkeypatch.chdir(tmp_path)
    vault.open_vault(argparse.Namespace())
    assert os.environ[vault.PASSWORD_FILE] == "before"
    vault.open_vault(argparse.Namespace(vault_password_file="pw", ask_vault_pass=False))
    assert os.environ[vault.PASSWORD_FILE] == str(tmp_path / "pw")
    monkeypatch.setattr(vault, "getpass", lambda _prompt: "typed")
    vault.open_vault(argparse.Namespace(vault_password_file=None, ask_vault_pass=True))
    assert Path(os.environ[vault.PASSWORD_FILE]).read_text() == "typed\n"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_that_loads_settings_takes_it(verb: str) -> None:
    words = {"exec": ["i", "--", "true"], "chat": ["i", "--", "why"], "render": ["i", "--out", "o"]}.get(verb, ["i"])
    args = parsed(parser(verb), [verb, "--ask-vault-pass", *words])
    assert args.ask_vault_pass
