"""An SSH server whose host misbehaves as the login's name says; `python -m tests.programs.ssh_standin FOLDER`.

It prints its port once it listens, and leaves a client's key (`id`), and its own public key (`known_hosts`) in FOLDER.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import paramiko
from paramiko.common import AUTH_SUCCESSFUL, OPEN_SUCCEEDED, cMSG_CHANNEL_DATA

FOR_EVER = 600.0
BLOCK = b"A" * 32_000


def flood(channel: paramiko.Channel) -> None:
    """Print without end, and without a line break."""
    while True:
        channel.sendall(BLOCK)


def flood_lines(channel: paramiko.Channel) -> None:
    """Print empty lines without end."""
    while True:
        channel.sendall(b"\n" * 32_000)


def flood_errors(channel: paramiko.Channel) -> None:
    """Print errors without end."""
    while True:
        channel.sendall_stderr(BLOCK)


def flood_past_window(channel: paramiko.Channel) -> None:
    """Print without end though the client has not asked for more."""
    transport: Any = channel.transport
    while True:
        message = paramiko.Message()
        message.add_byte(cMSG_CHANNEL_DATA)
        message.add_int(channel.remote_chanid)
        message.add_string(BLOCK)
        transport._send_user_message(message)


def hang(channel: paramiko.Channel) -> None:
    """Print nothing, and do not end."""
    time.sleep(FOR_EVER)


def no_status(channel: paramiko.Channel) -> None:
    """Print a line, end both streams, and do not end."""
    channel.sendall(b"hello\n")
    channel.shutdown_write()
    time.sleep(FOR_EVER)


def healthy(channel: paramiko.Channel) -> None:
    """Print a line, whose bytes are no text, and end."""
    channel.sendall(b"hello \xff\n")
    channel.send_exit_status(0)
    channel.close()


def read_again_and_again(channel: paramiko.Channel) -> None:
    """Answer each line of standard input with a reading, as the script of `rackwright top` does."""
    requests, uptime = channel.makefile("r"), 500
    for request in requests:
        uptime += 2
        status = f"uptime {uptime}\nend\n" if request.strip() == "status" else ""
        channel.sendall(f"{status}uptime {uptime}\nover\n".encode())


def stop_after_two(channel: paramiko.Channel) -> None:
    """Answer two lines of standard input, and then none."""
    requests = channel.makefile("r")
    for _ in range(2):
        requests.readline()
        channel.sendall(b"uptime 500\nend\nuptime 500\nover\n")
    time.sleep(FOR_EVER)


def freeze(channel: paramiko.Channel) -> None:
    """Stop the whole server, as a host does whose sshd is stopped: its kernel keeps running."""
    os.kill(os.getpid(), signal.SIGSTOP)


def machine(*rows: str) -> Callable[[paramiko.Channel], None]:
    """Return a host that says these lines of itself to whatever is asked."""

    def answer(channel: paramiko.Channel) -> None:
        channel.sendall("".join(f"{row}\n" for row in ("arch x86_64", "system Debian 12", "sudo yes", *rows)).encode())
        channel.send_exit_status(0)
        channel.close()

    return answer


COMMANDS: dict[str, Callable[[paramiko.Channel], None]] = {
    "flood": flood,
    "flood-lines": flood_lines,
    "flood-errors": flood_errors,
    "flood-window": flood_past_window,
    "hang": hang,
    "freeze": freeze,
    "no-status": no_status,
    "healthy": healthy,
    "reads": read_again_and_again,
    "stops": stop_after_two,
    "b200": machine("devices 8", "status 0", *["gpu NVIDIA B200, 575.57.08"] * 8),
    "h200": machine("devices 8", "status 0", *["gpu NVIDIA H200, 575.57.08"] * 8),
    "no-gpu": machine("devices 0"),
    "no-driver": machine("devices 8"),
    "controls": machine("devices 1", "status 9", "error \x1b]0;owned\x07\x1b[2Jgone"),
}


class Host(paramiko.ServerInterface):
    """Lets anybody in; the login's name says what it does with a command."""

    name = ""

    def get_allowed_auths(self, username: str) -> str:
        """Keys alone."""
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        """Let it in, or never answer."""
        self.name = username
        if username == "no-login":
            time.sleep(FOR_EVER)
        return AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        """Open a session, or never answer."""
        if self.name == "no-session":
            time.sleep(FOR_EVER)
        return OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        """Begin the command, or never answer."""
        if self.name == "no-start":
            time.sleep(FOR_EVER)
        threading.Thread(target=_run, args=(COMMANDS[self.name], channel), daemon=True).start()
        return True


def _run(command: Callable[[paramiko.Channel], None], channel: paramiko.Channel) -> None:
    time.sleep(0.2)  # the reply that it has begun goes first
    try:
        command(channel)
    except (OSError, EOFError, paramiko.SSHException):
        return  # the client has gone


def serve(listener: socket.socket, key: paramiko.PKey) -> None:
    """Let each client in, in threads of their own."""
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_greet, args=(connection, key), daemon=True).start()


def _greet(connection: socket.socket, key: paramiko.PKey) -> None:
    transport = paramiko.Transport(connection)
    transport.add_server_key(key)
    try:
        transport.start_server(server=Host())
    except (OSError, EOFError, paramiko.SSHException):
        return


def main(folder: Path) -> None:
    """Listen until the process is killed."""
    key: Any = paramiko.ECDSAKey.generate()
    host_key: Any = paramiko.ECDSAKey.generate()
    host_key.write_private_key_file(str(folder / "id"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n")
        print(port, flush=True)
        serve(listener, key)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
