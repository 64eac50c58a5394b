"""The source of the vault password, by the command line: the same for every verb that loads settings."""

from __future__ import annotations

import argparse
import os
from getpass import getpass
from pathlib import Path

from rackwright.loading.password import hand_out
from rackwright.messages import RackwrightError

PASSWORD_FILE = "ANSIBLE_VAULT_PASSWORD_FILE"


def open_vault(args: argparse.Namespace) -> None:
    """Let ansible-vault find the password that was named or is typed, here and in commands that this one starts."""
    if getattr(args, "vault_password_file", None):
        os.environ[PASSWORD_FILE] = str(Path(args.vault_password_file).expanduser().absolute())
    elif getattr(args, "ask_vault_pass", False):
        os.environ[PASSWORD_FILE] = str(hand_out(_typed()))


def _typed() -> str:
    try:
        return getpass("Vault password: ")
    except EOFError:
        raise RackwrightError(
            "no vault password was typed, since standard input is closed; nothing was done; next: the same command on "
            "a terminal, or with --vault-password-file FILE",
            code="RW1071",
        ) from None
