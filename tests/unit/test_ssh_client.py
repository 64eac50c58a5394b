"""Bastions and small limits: strict keys on every hop, patience with refusals, a lost connection asked once more."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import paramiko
import pytest
from pyinfra.api.command import StringCommand
from pyinfra.connectors import ssh
from pyinfra.connectors.sshuserclient import client
from pyinfra.connectors.util import CommandOutput

from rackwright.adapter import connection
from rackwright.adapter.ssh import client as own_client
from rackwright.adapter.ssh.client import Checking, HopRefusedError, PatientClient, checked_by, use_patient_client
from rackwright.remote import commands
from rackwright.remote.errors import ConnectionLostError

AUTH_SUCCESSFUL = 0
"""Of paramiko.common, which has no types."""
OWN, OTHER = (paramiko.ECDSAKey.generate() for _ in range(2))
Handler = Callable[[socket.socket, int], None]


class _Everybody(paramiko.ServerInterface):
    def check_auth_none(self, username: str) -> int:
        return AUTH_SUCCESSFUL

    def get_allowed_auths(self, username: str) -> str:
        return "none,publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return AUTH_SUCCESSFUL

    def check_channel_direct_tcpip_request(self, *_: Any) -> int:
        return 0


@contextmanager
def sshd(refuses: int = 0) -> Iterator[tuple[int, list[int]]]:
    """Yield a server with the key OWN that ends its first connections before its greeting: port and connections."""
    listener, came, connections = socket.create_server(("127.0.0.1", 0)), list[int](), list[Any]()

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            came.append(1)
            if len(came) <= refuses:
                connection.close()
                continue
            transport = paramiko.Transport(connection)
            transport.add_server_key(OWN)
            transport.start_server(event=threading.Event(), server=_Everybody())
            connections.append(transport)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1], came
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for one in connections:
            one.close()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_client, "PAUSES", (0.01, 0.01))
    monkeypatch.setattr(own_client, "TURNS", (0.01, 0.01))
    monkeypatch.setattr(connection, "RECONNECT", (0.0, 0.0))
    # Both are put back by monkeypatch, whatever the call below does to them.
    monkeypatch.setattr(client, "SSHClient", client.SSHClient)
    monkeypatch.setattr(ssh, "SSHClient", ssh.SSHClient)
    use_patient_client()


def hop(tmp_path: Path, port: int, key: paramiko.PKey | None, strict: str = "yes", before: str = "Host behind") -> None:
    """Go through a bastion at a port to a host behind it; key: what known_hosts has of the bastion.

    before: what stands before the ProxyJump in the SSH configuration.
    """
    config, known_hosts = tmp_path / f"config-{port}", tmp_path / f"known-{port}"
    config.write_text(f"{before}\n  ProxyJump anna@127.0.0.1:{port}\n")
    lines = f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n" if key else ""
    known_hosts.write_text(lines)
    hopping: Any = PatientClient()
    with checked_by(Checking(strict, str(known_hosts))):
        own_client.patiently(lambda: hopping.parse_config("behind", {"port": 22}, ssh_config_file=str(config)))


@pytest.fixture
def _with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Log in with a key, and look for no other."""
    real = PatientClient._connect_hop
    options = {"pkey": OTHER, "allow_agent": False, "look_for_keys": False}
    monkeypatch.setattr(PatientClient, "_connect_hop", lambda self, name, more: real(self, name, {**more, **options}))


@pytest.mark.usefixtures("_with_a_key")
def test_a_bastion_whose_key_is_known_to_the_host_is_gone_through(tmp_path: Path) -> None:
    with sshd() as (port, _):
        hop(tmp_path, port, OWN)


@pytest.mark.usefixtures("_with_a_key")
@pytest.mark.parametrize("none", ["none", "None"])
def test_a_bastion_may_be_taken_out_of_a_pattern_by_proxyjump_none(tmp_path: Path, none: str) -> None:
    with sshd() as (port, came):
        hop(tmp_path, port, OWN, before=f"Host 127.0.0.1\n  ProxyJump {none}\nHost *")
    assert len(came) == 1


@pytest.mark.timeout(20)
@pytest.mark.usefixtures("_with_a_key")
def test_a_bastion_that_is_reached_through_itself_is_refused(tmp_path: Path) -> None:
    with sshd() as (port, came), pytest.raises(paramiko.SSHException, match=r"through itself.*next: .*ProxyJump none"):
        hop(tmp_path, port, OWN, before="Host *")
    assert came == []


@pytest.mark.usefixtures("_with_a_key")
def test_a_bastion_that_takes_the_connection_and_is_silent_is_named_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = PatientClient._connect_hop
    monkeypatch.setattr(
        PatientClient, "_connect_hop", lambda self, name, more: real(self, name, {**more, "timeout": 1})
    )
    frozen = socket.create_server(("127.0.0.1", 0))
    port = frozen.getsockname()[1]
    with frozen, pytest.raises(paramiko.SSHException, match=r"jump host 127\.0\.0\.1 .* 1 s"):
        hop(tmp_path, port, OWN)


@pytest.mark.usefixtures("_with_a_key")
def test_a_bastion_whose_key_is_unknown_is_refused(tmp_path: Path) -> None:
    with sshd() as (port, came), pytest.raises(paramiko.SSHException, match="No host key for"):
        hop(tmp_path, port, None)
    assert len(came) == 1, "that does not pass by waiting"


@pytest.mark.usefixtures("_with_a_key")
def test_a_bastion_with_another_key_is_refused(tmp_path: Path) -> None:
    with sshd() as (port, _), pytest.raises(paramiko.BadHostKeyException):
        hop(tmp_path, port, OTHER)


@pytest.mark.usefixtures("_with_a_key")
def test_a_bastion_that_lets_nobody_in_for_now_is_tried_again(tmp_path: Path) -> None:
    with sshd(refuses=2) as (port, came):
        hop(tmp_path, port, OWN)
    assert len(came) == 3
    with sshd(refuses=9) as (port, _), pytest.raises(HopRefusedError, match="refuses logins for now"):
        hop(tmp_path, port, OWN)


@pytest.mark.parametrize(
    ("ends", "message", "queues"),
    [(None, "in", True), (ConnectionResetError(), "HopRefusedError", True), (TimeoutError(), "TimeoutError", False)],
)
def test_few_log_in_at_one_bastion_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch, ends: OSError | None, message: str, queues: bool
) -> None:
    """MaxStartups of sshd refuses from the eleventh on; at a bastion that does not answer at all, no login queues."""
    crowd: list[int] = []
    counting, inside = threading.Lock(), 0

    def connect(*_: Any, **__: Any) -> None:
        nonlocal inside
        with counting:
            inside += 1
            crowd.append(inside)
        time.sleep(0.1)
        with counting:
            inside -= 1
        if ends:
            raise ends

    monkeypatch.setattr(PatientClient.__base__, "connect", connect)
    assert set(log_in_side_by_side(f"bastion that says {message}", 40)) == {message}
    assert own_client.LOGINS < 10
    assert (max(crowd) == own_client.LOGINS) is queues


def log_in_side_by_side(bastion: str, count: int) -> list[str]:
    """Let so many go to a bastion at once; what became of each."""

    def one(_: int) -> str:
        try:
            PatientClient()._connect_hop(bastion, {"port": 22})
        except (OSError, HopRefusedError) as error:
            return type(error).__name__
        return "in"

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_a_session_too_many_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def exec_command(_: Any, command: str, **__: Any) -> str:
        calls.append(command)
        if len(calls) < 3:
            raise paramiko.ChannelException(1, "Administratively prohibited")
        return "started"

    monkeypatch.setattr(paramiko.SSHClient, "exec_command", exec_command)
    assert PatientClient().exec_command("true") == "started"
    calls.clear()
    monkeypatch.setattr(own_client, "TURNS", (0.0,))
    with pytest.raises(paramiko.ChannelException):
        PatientClient().exec_command("true")


class _Host:
    """A host whose connection breaks so many times."""

    def __init__(self, breaks: int, comes_back: bool = True) -> None:
        self.name, self.breaks, self.connected, self.runs = "h1", breaks, 0, 0
        self.connector = SimpleNamespace(connect=self._connect, client=None)
        self.state = SimpleNamespace()
        self.comes_back = comes_back

    def _connect(self) -> None:
        self.connected += 1
        if not self.comes_back:
            raise OSError("no route")

    def run(self, *_: Any) -> tuple[bool, CommandOutput]:
        self.runs += 1
        if self.runs <= self.breaks:
            raise connection.GoneError("gone")
        return True, CommandOutput([])


@pytest.mark.parametrize(("twice", "comes_back", "calls"), [(True, True, 2), (False, True, 1), (True, False, 1)])
def test_what_may_run_twice_is_asked_again_over_a_new_connection(
    monkeypatch: pytest.MonkeyPatch, twice: bool, comes_back: bool, calls: int
) -> None:
    host: Any = _Host(1, comes_back)
    monkeypatch.setattr(commands, "run", host.run)
    command: Any = "true"
    if calls == 2:
        assert commands.remote(host, command, twice=twice)[0]
    else:
        with pytest.raises(ConnectionLostError):
            commands.remote(host, command, twice=twice)
    assert host.runs == calls


def test_a_command_while_another_thread_connects_anew_is_a_lost_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    client = PatientClient()  # as pyinfra has it until its connect() is through
    host: Any = SimpleNamespace(
        name="h1",
        connector=SimpleNamespace(client=client),
        run_shell_command=lambda command, **_: client.exec_command(str(command)),
        state=SimpleNamespace(print_output=False, print_input=False),
    )
    monkeypatch.setattr(connection, "_arguments", lambda *_: {})
    with pytest.raises(ConnectionLostError, match="closed"):
        commands.remote(host, StringCommand("true"))
