"""A host of a run, the run's state, and what is shown of them. pyinfra's own classes are behind them."""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyinfra import host as current_host
from pyinfra import logger
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import ctx_host

from rackwright.messages import paragraph, printable

__all__ = ["Host", "State", "acting_on", "logger", "real_host", "say", "shout", "this_host"]


def say(host: Host, text: str, colour: str = "") -> None:
    """Print one line of progress for a host."""
    text = printable(text)
    host.log_styled(text, fg=colour) if colour else host.log(text)


def shout(host: Host, text: str) -> None:
    """Print an error for a host, line by line."""
    for row in paragraph(text.rstrip()).split("\n"):
        host.log_styled(row, fg="red", log_func=logger.error)


def real_host(host: Host) -> Host:
    """Return the host itself: `pyinfra.host` is one proxy object for all hosts, so it must never be a key."""
    found = host.state.inventory.get_host(host.name)
    assert isinstance(found, Host)
    return found


def this_host() -> Host:
    """Return the host that pyinfra works on now: itself, and not the proxy object that stands for all hosts."""
    return real_host(current_host)


def acting_on(host: Host) -> AbstractContextManager[None]:
    """Have pyinfra take this host for the one that it works on."""
    return ctx_host.use(host)
