"""Tokens in the names of keys and jump hosts are filled in as ssh itself fills them in."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from rackwright.adapter.ssh.logins import identities
from rackwright.adapter.ssh.proxy_route import chain_of
from rackwright.settings.ssh.openssh import SshAnswer, SshQuestion
from rackwright.settings.ssh.tokens import expanded

QUESTION = SshQuestion("gpu01")
SAID = SshAnswer({"hostname": ("10.0.0.1",), "hostkeyalias": ("rack1",), "user": ("zed",), "port": ("2222",)})
WORDS = ("%h", "%%h", "%n", "%p", "%r", "%u", "%i", "%d", "%l", "%L", "%k", "%C", "%%C", "${HOME}", "$HOME", "100%%")


@pytest.mark.skipif(not shutil.which("ssh"), reason="it asks ssh itself")
@pytest.mark.parametrize("token", WORDS)
def test_a_token_is_what_ssh_makes_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("HOME", pwd.getpwuid(os.getuid()).pw_dir)
    monkeypatch.delenv("USER", raising=False)
    file = tmp_path / "config"
    options = "HostName 10.0.0.1\nHostKeyAlias rack1\nUser zed\nPort 2222\n"
    file.write_text(f"{options}UserKnownHostsFile /keys/x-{token}\n")
    shown = subprocess.run(["ssh", "-G", "-F", file, "gpu01"], capture_output=True, text=True, check=True).stdout
    [row] = [row for row in shown.splitlines() if row.startswith("userknownhostsfile ")]
    assert expanded(f"/keys/x-{token}", SAID, QUESTION) == row.removeprefix("userknownhostsfile ")


def test_keys_are_found_by_their_tokens(tmp_path: Path) -> None:
    (tmp_path / "rack1.key").touch()
    answer = SshAnswer({**SAID.options, "identityfile": (f"{tmp_path}/%k.key",)})
    assert identities(answer, QUESTION) == [f"{tmp_path}/rack1.key"]


def test_a_jump_host_has_the_tokens_of_the_host_behind_it() -> None:
    answer = SshAnswer({**SAID.options, "proxyjump": ("%r@jump-%n",)})
    [hop] = chain_of(answer, QUESTION)
    assert (hop.user, hop.host) == ("zed", "jump-gpu01")
