"""pyinfra's SSH client where bastions and small sshd limits are: strict keys on every hop, and patience.

pyinfra connects to the jump hosts of an SSH configuration with no word of how keys are checked, and of where they
lie; and a connection that sshd's own limits refuse (MaxStartups on a bastion, MaxSessions on a host) is lost to it.
"""

from __future__ import annotations

import getpass
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from paramiko import ChannelException, HostKeys, SSHException
from pyinfra.connectors import ssh
from pyinfra.connectors.sshuserclient import client
from pyinfra.connectors.sshuserclient.client import SSHClient

from rackwright.adapter.patch import held, patch
from rackwright.adapter.ssh.any_shell import for_any_shell
from rackwright.adapter.ssh.bounded_commands import limit_commands
from rackwright.adapter.ssh.hostkey_check import Trust
from rackwright.messages import SettingsError
from rackwright.settings.ssh.known_hosts import STRICT, HostKeyPlace, place_for, refuse_unfit
from rackwright.settings.ssh.openssh import SshAnswer, SshQuestion, ask, through_itself

SECONDS = 10
"""Within which a server must have answered, and shown its key."""
SILENT = "No existing session"
"""paramiko's words where a server has not shown its key by then."""
LOGIN = 30
"""Seconds within which a host must have let a login in, for each key that is offered."""
CHANNEL = 30
"""Seconds within which a host must have opened a session; paramiko's own limit is an hour."""
PAUSES = (0.5, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0)
"""Seconds, about, between two tries at a bastion that refuses connections for now."""
LOGINS = 8
"""Logins under way at one bastion at the same time: sshd's own MaxStartups begins to refuse at ten."""
TURNS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 3.2)
"""Seconds between two tries at a host that has no session left."""
OVERRIDDEN = {
    "connect": "self hostname _pyinfra_ssh_forward_agent _pyinfra_ssh_config_file _pyinfra_ssh_known_hosts_file "
    "_pyinfra_ssh_strict_host_key_checking _pyinfra_ssh_paramiko_connect_kwargs kwargs",
    "parse_config": "self hostname initial_cfg ssh_config_file strict_host_key_checking",
    "gateway": "self hostname host_port target target_port timeout",
    "exec_command": "self command bufsize timeout get_pty environment",
}
"""Methods of pyinfra's client, each with its parameters."""


@dataclass(frozen=True)
class Checking:
    """The check of a host's keys, and so of those of every hop before it."""

    strict: str | None
    known_hosts: str | None

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the same, as arguments of pyinfra's client."""
        return {f"{_OURS}strict_host_key_checking": self.strict or "yes", f"{_OURS}known_hosts_file": self.known_hosts}


class HopRefusedError(SSHException):
    """A jump host ended the connection before it said who it is: most likely too many come at once."""


_OURS = "_pyinfra_ssh_"
"""Begins pyinfra's own arguments of a connection."""
_OUTER: ContextVar[Checking | None] = ContextVar("rackwright_ssh_checking", default=None)
"""Of the host that a connection is for; set while its hops are connected to."""
_HOPS: ContextVar[tuple[str, ...]] = ContextVar("rackwright_ssh_hops", default=())
"""Jump hosts that are being connected to, each for the one before it."""


class PatientClient(SSHClient):
    """pyinfra's client, by what ssh itself says of a host; a hop's keys are checked as its host's.

    What is refused for now is tried again.
    """

    checking: Checking

    def connect(self, hostname: str, **arguments: Any) -> None:  # type: ignore[override]
        """Connect to a host, or, from within such a call, to a hop before it."""
        arguments = {"auth_timeout": LOGIN, "channel_timeout": CHANNEL, **arguments}
        outer = _OUTER.get()
        if outer is not None:
            self._connect_hop(hostname, {**arguments, **outer.arguments})
            return
        checking = Checking(
            arguments.get(f"{_OURS}strict_host_key_checking"), arguments.get(f"{_OURS}known_hosts_file")
        )
        with checked_by(checking):
            patiently(lambda: self._connect(hostname, arguments))

    def _connect(self, hostname: str, arguments: Mapping[str, Any]) -> None:
        question = _question(hostname, arguments)
        answer = _answer(question)
        if answer.options:
            from rackwright.adapter.ssh.logins import adapted  # noqa: PLC0415 - few machines configure ssh

            arguments = {**arguments, **adapted(answer, question, arguments)}
        try:
            super().connect(hostname, **arguments)  # type: ignore[no-untyped-call]
        except SSHException as error:
            if str(error) != SILENT:
                raise
            raise SSHException(silent(hostname, arguments.get("timeout") or SECONDS)) from error

    def _connect_hop(self, hostname: str, arguments: Mapping[str, Any]) -> None:
        try:
            with on_the_way(hostname), logins_at(hostname, arguments.get("port")).login():
                self._connect(hostname, arguments)
        except (SSHException, EOFError, ConnectionResetError) as error:
            if isinstance(error, SSHException) and "banner" not in str(error):
                raise
            why = str(error) or type(error).__name__
            raise HopRefusedError(f"jump host {hostname} refuses logins for now ({why}); its MaxStartups?") from error

    def parse_config(
        self,
        hostname: str,
        initial_cfg: Any = None,
        ssh_config_file: str | None = None,
        strict_host_key_checking: str | None = None,
    ) -> Any:
        """Return what a connection needs, from the host's ssh settings, in the order that pyinfra's client expects."""
        options: dict[str, Any] = dict(initial_cfg or {})
        question = _question(hostname, {**options, f"{_OURS}config_file": ssh_config_file})
        answer, checking = _answer(question), _OUTER.get() or Checking(strict_host_key_checking, None)
        target = place_for(question, answer, checking.known_hosts)
        trust = Trust(target, checking.strict == "accept-new", answer.is_set("hashknownhosts", "yes"))
        found = {**options, "port": target.port, "transport_factory": trust.transport}
        if not answer.options:
            return target.address, found, False, trust, (), 0, None
        from rackwright.adapter.ssh.logins import agent_of, keys_of  # noqa: PLC0415 - few machines configure ssh

        found |= keys_of(answer, question, options)
        if user := options.get("username") or answer.get("user"):
            found["username"] = user
        if not options.get("sock"):
            found["sock"] = self._way(question, answer, target, found)
        forwards = answer.get("forwardagent", "no") != "no"
        return target.address, found, forwards, trust, (), int(answer.get("serveraliveinterval") or 0), agent_of(answer)

    def _way(self, question: SshQuestion, answer: SshAnswer, target: HostKeyPlace, options: Mapping[str, Any]) -> Any:
        """Open what leads to the host's sshd: a program, its last jump host, or None for a plain connection."""
        from rackwright.adapter.ssh import proxy_route  # noqa: PLC0415 - few machines configure ssh

        if answer.get("proxycommand"):
            return proxy_route.program(
                answer, question, target.address, target.port, options.get("username") or getpass.getuser()
            )
        way: Any = None
        chain = proxy_route.chain_of(answer, question)
        for hop, following in zip(chain, (*chain[1:], None), strict=False):
            one = PatientClient()
            login = {key: value for key, value in (("username", hop.user), ("port", hop.port), ("sock", way)) if value}
            file = {f"{_OURS}config_file": question.file, "timeout": options.get("timeout")}
            one.connect(hop.host, **file, **login)
            at, to = _target(hop.question(question.file)), target
            if following:
                to = _target(following.question(question.file))
            way = one.gateway(at.address, at.port, to.address, to.port, timeout=options.get("timeout"))
        return way or proxy_route.bound_socket(answer, target.address, target.port, options.get("timeout"))

    def gateway(self, hostname: str, host_port: int, target: str, target_port: int, timeout: Any = None) -> Any:
        """Open the channel from this hop to the next one, or to the host."""
        try:
            return super().gateway(hostname, host_port, target, target_port, timeout=timeout)  # type: ignore[no-untyped-call]
        except ChannelException as error:
            text = f"the jump host does not get through to {target} port {target_port}: {error.text}"
            raise SSHException(text) from error

    def exec_command(self, command: str, *args: Any, **arguments: Any) -> Any:
        """Start a command; where sshd lets no other session in (MaxSessions), the one before is given time to end."""
        command = for_any_shell(command)
        for pause in TURNS:
            try:
                return super().exec_command(command, *args, **arguments)
            except ChannelException:
                time.sleep(pause)
        return super().exec_command(command, *args, **arguments)


@dataclass
class Logins:
    """Limits concurrent logins at one bastion; lifts the limit while it is unreachable, so that all fail at once."""

    inside: int = 0
    dead: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)

    @contextmanager
    def login(self) -> Iterator[None]:
        """Hold one login slot; waits for a free one."""
        with self.changed:
            self.changed.wait_for(lambda: self.dead or self.inside < LOGINS)
            self.inside += 1
        try:
            yield
            self.dead = False
        except OSError as error:
            self.dead = not isinstance(error, ConnectionResetError)
            raise
        finally:
            with self.changed:
                self.inside -= 1
                self.changed.notify_all()


@cache
def logins_at(hostname: str, port: object) -> Logins:  # noqa: ARG001 - both tell one from another
    """Return the limit of a bastion, shared by all hosts behind it."""
    return Logins()


def silent(hostname: str, seconds: float) -> str:
    """Return what to say of a host or a jump host that takes a connection and then does not answer."""
    who = f"jump host {hostname}" if hostname in _HOPS.get() else hostname
    why = "its sshd hangs, or another program has its port"
    return f"{who} took the connection and did not answer within {seconds:g} s: {why}"


@contextmanager
def on_the_way(hop: str) -> Iterator[None]:
    """Connect to a hop within the block. Raises SSHException when that leads through itself, and so never ends."""
    if hop in _HOPS.get():
        raise SSHException(through_itself(hop))
    token = _HOPS.set((*_HOPS.get(), hop))
    try:
        yield
    finally:
        _HOPS.reset(token)


@contextmanager
def checked_by(checking: Checking) -> Iterator[None]:
    """Check the keys of every hop so within the block."""
    token = _OUTER.set(checking)
    try:
        yield
    finally:
        _OUTER.reset(token)


def checking_of(data: Mapping[str, Any]) -> Checking:
    """Return how a host's data say that its keys are checked."""
    known_hosts = data.get("ssh_known_hosts_file")
    return Checking(str(data.get(STRICT) or "yes"), str(known_hosts) if known_hosts else None)


def patiently(connect: Callable[[], None]) -> None:
    """Connect, retrying while a bastion refuses; at random moments, as the others wait as well."""
    for pause in PAUSES:
        try:
            return connect()
        except HopRefusedError:
            time.sleep(pause * random.uniform(0.5, 1.5))
    return connect()


def _question(hostname: str, arguments: Mapping[str, Any]) -> SshQuestion:
    file, user, port = (arguments.get(key) for key in (f"{_OURS}config_file", "username", "port"))
    return SshQuestion(hostname, file or None, user or None, int(port) if port else None)


def _target(question: SshQuestion) -> HostKeyPlace:
    return place_for(question, _answer(question), None)


def _answer(question: SshQuestion) -> SshAnswer:
    """Ask for a host's ssh settings. Raises SSHException for unfit ones: it ends this connection alone."""
    try:
        answer = ask(question)
        refuse_unfit(question, answer)
    except SettingsError as error:
        raise SSHException(error.text) from error
    return answer


def line_to(data: Mapping[str, Any], target: HostKeyPlace) -> Any:
    """Connect to a host's sshd, through the jump hosts of the SSH configuration, without a login."""
    use_patient_client()
    found: list[Any] = []
    stated, file = str(data.get("ssh_hostname") or target.address), data.get("ssh_config_file")

    def hop() -> None:
        client: Any = PatientClient()
        login = {"username": data.get("ssh_user"), "port": data.get("ssh_port")}
        found.append(client.parse_config(stated, login, ssh_config_file=file)[1].get("sock"))

    with checked_by(checking_of(data)):
        patiently(hop)
    return found[-1] or socket.create_connection((target.address, target.port), timeout=SECONDS)


def _no_keys(_: Any) -> HostKeys:
    """Return no keys: paramiko then asks Trust for each."""
    return HostKeys()


def use_patient_client() -> None:
    """Make pyinfra connect by it from now on, hops included; its commands have limits. Safe to repeat."""
    limit_commands()
    for name, parameters in OVERRIDDEN.items():
        held(SSHClient, name, parameters)
    patch(ssh, "SSHClient", PatientClient)
    patch(client, "SSHClient", PatientClient)
    patch(client, "get_host_keys", _no_keys, takes="filenames")
