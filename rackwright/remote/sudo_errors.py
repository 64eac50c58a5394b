"""Rights that a login lacks, as one sentence that names the cause."""

from __future__ import annotations

from collections.abc import Sequence

from rackwright.adapter.ssh.passwords import PASSWORD
from rackwright.messages import coded
from rackwright.plan.reading import HEAD

_TRY = "next, from here: ssh LOGIN@HOST sudo -n sh -c id"
_SHELL = "rackwright needs one that reads sh; next, on the host, LOGIN being its name: chsh -s /bin/bash LOGIN"
_CAUSES = (
    ("Unmatched '", "RW0769", f"the login's shell is csh or tcsh, and {_SHELL}"),
    ("account is currently not available", "RW0769", f"the login's shell is nologin, which runs nothing: {_SHELL}"),
    ("rbash: ", "RW0769", f"the login's shell is a restricted one (rbash), and {_SHELL}"),
    ("a password is required", "RW0708", PASSWORD),
    (
        "must have a tty",
        "RW0733",
        "sudo on this host wants a terminal (requiretty in its sudoers), and none is opened; next, on the host, LOGIN "
        "being its name: echo 'Defaults:LOGIN !requiretty' | sudo tee /etc/sudoers.d/LOGIN-tty",
    ),
    (
        "is not in the sudoers file",
        "RW0708",
        "the login may not use sudo; next, on the host, LOGIN being its name: echo 'LOGIN ALL=(ALL) NOPASSWD: ALL' | "
        "sudo tee /etc/sudoers.d/LOGIN",
    ),
)
NOEXEC = (
    "RW0734",
    "sudo on this host lets no program start another one (noexec in its sudoers), so nothing can be read; next, on the "
    "host, LOGIN being its name: echo 'Defaults:LOGIN !noexec' | sudo tee /etc/sudoers.d/LOGIN-exec",
)
REPLACED = (
    "RW0735",
    "the login's shell did not run what it was sent: a start file of it (~/.bashrc, ~/.zshenv) replaces the "
    f"shell, or ends it; next: let that file do so only where a person types (case $- in *i*)); {_TRY}",
)


def why_refused(errors: Sequence[str], output: Sequence[str]) -> str | None:
    """Return the sentence for a command that sudo or the login shell refused, with its code; None for another cause."""
    found = why_unread(False, *([row for row in lines if row] for lines in (output, errors)))
    return coded(*found) if found else None


def why_unread(ok: bool, output: Sequence[str], errors: Sequence[str]) -> tuple[str, str] | None:
    """Return code and sentence of the cause, where a login's output of a reading tells it; None for another one."""
    for mark, code, text in _CAUSES:
        if any(mark in row for row in (*errors, *(() if ok else output))):
            return code, text
    if not (ok or output or errors):
        return "RW0769", f"the login's shell ended without a word, as /bin/false does: {_SHELL}"
    if any(_starts_nothing(row) for row in errors):
        return NOEXEC
    return REPLACED if ok and not any(row.startswith(HEAD) for row in output) else None


def _starts_nothing(row: str) -> bool:
    """Return whether a shell, or `timeout`, says that it could not start a program that everybody may start."""
    return row.endswith(tuple(f": {program}: Permission denied" for program in ("sh", "base64", "timeout")))
