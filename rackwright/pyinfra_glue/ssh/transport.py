"""The transport below pyinfra's SSH client: what paramiko does, with the ciphers first that cost this machine least."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramiko import SSHException, Transport
from paramiko.common import MSG_CHANNEL_DATA, MSG_CHANNEL_EXTENDED_DATA

from rackwright.pyinfra_glue.patch import held

KNOWN: tuple[str, ...] = held(Transport, "_preferred_ciphers")
"""paramiko's own ciphers, in its order; before 3.5 those with a checksum of their own are not among them."""
_HANDLERS: dict[int, Callable[[Any, Any], None]] = held(Transport, "_channel_handler_table")


def _within_window(feed: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Take what a channel is sent, as far as it may be: paramiko keeps whatever comes, without end."""

    def checked(channel: Any, message: Any) -> None:
        feed(channel, message)
        if len(channel.in_buffer) + len(channel.in_stderr_buffer) > 2 * channel.in_window_size:
            raise SSHException("the host sent more than SSH lets it")

    return checked


class QuickTransport(Transport):
    """Asks for AES-GCM first, which OpenSSH has had since 6.2, and for the others when a host has none.

    With any other cipher each packet has a separate checksum, which paramiko computes by objects of Python's and
    compares byte by byte (`paramiko.util.constant_time_bytes_eq`): a third of what a connection's packets cost.
    """

    _preferred_ciphers = tuple(sorted(KNOWN, key=lambda name: "-gcm" not in name))
    _channel_handler_table = {  # noqa: RUF012 - as paramiko has it
        **_HANDLERS,
        MSG_CHANNEL_DATA: _within_window(_HANDLERS[MSG_CHANNEL_DATA]),
        MSG_CHANNEL_EXTENDED_DATA: _within_window(_HANDLERS[MSG_CHANNEL_EXTENDED_DATA]),
    }
