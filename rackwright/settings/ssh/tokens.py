"""TOKENS of ssh_config(5) in what `ssh -G` shows as it is written: IdentityFile, CertificateFile and ProxyJump."""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import socket
from collections.abc import Mapping
from pathlib import Path

from rackwright.settings.ssh.openssh import SshAnswer, SshQuestion

TOKEN = re.compile(r"%.|\$\{(\w+)\}")


def expanded(text: str, answer: SshAnswer, question: SshQuestion) -> str:
    """Return a file's name with its tokens, variables and tilde filled in; a token that ssh does not know stays."""
    tokens = tokens_of(answer, question)
    return str(Path(TOKEN.sub(lambda found: _text(found, tokens), text)).expanduser())


def tokens_of(answer: SshAnswer, question: SshQuestion) -> Mapping[str, str]:
    """Return the text of each token."""
    host, machine = answer.get("hostname", question.host), socket.gethostname()
    port, user, login = str(question.port or answer.get("port") or 22), pwd.getpwuid(os.getuid()).pw_name, question.user
    remote = login or answer.get("user") or user
    connection = f"{machine}{host}{port}{remote}{answer.get('proxyjump')}"
    alias = answer.get("hostkeyalias") or question.host
    return {
        **{"%%": "%", "%h": host, "%n": question.host, "%p": port, "%r": remote, "%j": answer.get("proxyjump")},
        **{
            "%u": user,
            "%i": str(os.getuid()),
            "%d": str(Path.home()),
            "%k": alias,
        },
        **{"%l": machine, "%L": machine.partition(".")[0], "%C": hashlib.sha1(connection.encode()).hexdigest()},
    }


def _text(found: re.Match[str], tokens: Mapping[str, str]) -> str:
    return os.environ.get(found[1], found[0]) if found[1] else tokens.get(found[0], found[0])
