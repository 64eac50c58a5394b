"""The keys and the agent by which a login is tried: those that ssh would try."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paramiko import PKey, SSHException
from pyinfra.api.exceptions import PyinfraError
from pyinfra.connectors.ssh_util import load_key_with_certificate

from rackwright.settings.ssh.openssh import SshAnswer, SshQuestion
from rackwright.settings.ssh.tokens import expanded


def adapted(answer: SshAnswer, question: SshQuestion, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a connection that ssh's configuration sets in place of pyinfra's defaults."""
    found: dict[str, Any] = {}
    if answer.every("identityfile") or answer.is_set("identitiesonly", "yes"):
        found["look_for_keys"] = False  # the usual files count only where no other is set
    only = answer.is_set("identitiesonly", "yes") and arguments.get("pkey") is None and _loaded(answer, question)
    if only or answer.every("identityagent") == ["none"]:
        found["allow_agent"] = False
    if answer.get("connecttimeout"):
        found["timeout"] = int(answer.get("connecttimeout"))
    return found


def agent_of(answer: SshAnswer) -> str | None:
    """Return the socket of IdentityAgent; None for the usual one."""
    stated = answer.get("identityagent")
    if stated.startswith("$"):
        return os.environ.get(stated[1:].strip("{}"))
    return str(Path(stated).expanduser()) if stated and stated != "SSH_AUTH_SOCK" else None


def keys_of(answer: SshAnswer, question: SshQuestion, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of IdentityFile, unless the settings have one: the first that opens as a key, others by file."""
    files = identities(answer, question)
    if options.get("pkey") is not None or not files:
        return {}
    certificates = [expanded(path, answer, question) for path in answer.every("certificatefile")]
    for file in files:
        if (key := _key(file, next(iter(certificates), None))) is not None:
            return {"pkey": key, "key_filename": [other for other in files if other != file]}
    return {"key_filename": files}


def identities(answer: SshAnswer, question: SshQuestion) -> list[str]:
    """Return the identity files that exist."""
    named = [expanded(path, answer, question) for path in answer.every("identityfile") if path.lower() != "none"]
    return [file for file in named if Path(file).is_file()]


def _key(file: str, certificate: str | None) -> PKey | None:
    """Return the key; None for one with a passphrase, which its agent has, and for one that cannot be read."""
    try:
        return load_key_with_certificate(key_filename=file, certificate_filename=certificate, allow_prompt=False)
    except (PyinfraError, SSHException, OSError, ValueError):
        return None


def _loaded(answer: SshAnswer, question: SshQuestion) -> bool:
    return any(_key(file, None) is not None for file in identities(answer, question))
