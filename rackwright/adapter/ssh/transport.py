"""The transport below pyinfra's SSH client: paramiko's, with a bound on what a host sends unasked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramiko import SSHException, Transport
from paramiko.common import MSG_CHANNEL_DATA, MSG_CHANNEL_EXTENDED_DATA

from rackwright.adapter.patch import held

_HANDLERS: dict[int, Callable[[Any, Any], None]] = held(Transport, "_channel_handler_table")


def _within_window(feed: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Take what a channel is sent, as far as it may be: paramiko keeps whatever comes, without end."""

    def checked(channel: Any, message: Any) -> None:
        feed(channel, message)
        if len(channel.in_buffer) + len(channel.in_stderr_buffer) > 2 * channel.in_window_size:
            raise SSHException("the host sent more than SSH lets it")

    return checked


class BoundedTransport(Transport):
    """Closes a connection whose host sends more than SSH's window lets it."""

    _channel_handler_table = {  # noqa: RUF012 - as paramiko has it
        **_HANDLERS,
        MSG_CHANNEL_DATA: _within_window(_HANDLERS[MSG_CHANNEL_DATA]),
        MSG_CHANNEL_EXTENDED_DATA: _within_window(_HANDLERS[MSG_CHANNEL_EXTENDED_DATA]),
    }
