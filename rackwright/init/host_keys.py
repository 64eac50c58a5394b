"""The key of a host that is not in known_hosts: shown, and taken when a person has compared it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import UTC, datetime

from rackwright.adapter.ssh.client import line_to
from rackwright.adapter.ssh.rebuilt_hostkeys import HostKey, accept, first_offered
from rackwright.init.typed_host import TypedHost
from rackwright.messages import RackwrightError
from rackwright.settings.ssh.known_hosts import HostKeyPlace, place_of
from rackwright.settings.ssh.known_keys import KeyVerdict

CONSOLE = "ssh-keygen -lf /etc/ssh/ssh_host_{}_key.pub"
Ask = Callable[[str], str]
"""Asks a question on the terminal; returns the answer."""


def why_untrusted(host: TypedHost, ask: Ask | None) -> str:
    """Return why a host's key is not trusted; empty where it is known, or was compared and accepted just now.

    ask: None where no person can answer, or nothing may be asked; then no key is taken.
    """
    try:
        target = place_of(host.name, host.data)
        if target.names.usable:
            return ""  # the login itself judges the key that the host shows
        key = first_offered(host.name, target, lambda: line_to(host.data, target))
    except RackwrightError as error:
        return error.text.removeprefix(f"{host.name}: ")
    if target.names.judge(key.kind, key.text)[0] is KeyVerdict.REVOKED:
        return "its host key is revoked in known_hosts"
    return _accept_when_compared(host, target, key, ask)


def changed_key(host: TypedHost) -> str:
    """Return what to say of a host that shows another key than known_hosts has."""
    entry = shlex.quote(place_of(host.name, host.data).entry)
    forget = f"ssh-keygen -R {entry}; see docs/how-to/host-keys.md"
    return f"its host key is another one than known_hosts has; if it was reinstalled: {forget}"


def _accept_when_compared(host: TypedHost, target: HostKeyPlace, key: HostKey, ask: Ask | None) -> str:
    if ask is None:
        return f"its host key is not in known_hosts: it shows {key.fingerprint}; compare it by: ssh {_ssh(host)}"
    kind = key.kind.removeprefix("ssh-").partition("-")[0]
    print(f"{host.address}: not in known_hosts; it shows the {kind} key\n  {key.fingerprint}")
    print(f"  on its console: {CONSOLE.format(kind)}")
    if ask("  Is that the same? [y/N] ").strip().lower() not in ("y", "yes"):
        return "its host key was not accepted"
    try:
        file = accept(target, [key], f"{datetime.now(UTC):%Y-%m-%d %H:%M}")
    except RackwrightError as error:
        return error.text
    print(f"  {file} has it now")
    return ""


def _ssh(host: TypedHost) -> str:
    login = f"{host.user}@{host.address}" if host.user else host.address
    return f"-p {host.port} {login}" if host.port else login
