"""Make the standard library cooperative, for Rackwright commands that connect by pyinfra.

Locks, queues and threads that are made before are real ones: a greenlet that waits for one stops the only thread, and
with it the greenlet that would release it. Make them within `session.connected`, never at import or before.
"""

from __future__ import annotations

import sys
import threading
from types import ModuleType

from paramiko import Transport

from rackwright.adapter.patch import held, patch

SECONDS_TO_END = 2.0
"""Seconds that a closed connection's thread may take to end."""
REFRESHED = ("paramiko", "pyinfra")
"""Packages that are loaded before the patch, and have imported names of the standard library by then."""


def cooperate() -> None:
    """Make the standard library cooperative; commands that connect nowhere must not be changed by it."""
    from gevent import events, monkey  # noqa: PLC0415

    _let_connections_end()
    # At each of some thirty steps, gevent would look through all installed packages for one with a hook.
    patch(events, "notify_and_call_entry_points", held(events, "notify"))
    # pyinfra_cli does this too, but while it is imported: with another thread alive, such as that of a connection which
    # ends just now, gevent leaves the lock of that import to a thread that it has renamed.
    monkey.patch_all()
    _refresh(held(monkey, "saved"))
    import pyinfra_cli  # noqa: F401, PLC0415


def _let_connections_end() -> None:
    """Wait for threads of closed connections: one that ends after the patch is unknown by then, and says so aloud."""
    for thread in threading.enumerate():
        if isinstance(thread, Transport) and not thread.is_active():
            thread.join(SECONDS_TO_END)


def _refresh(saved: dict[str, dict[str, object]]) -> None:
    """Give modules that have imported a patched name the patched one: `select` of paramiko's blocks all hosts.

    saved: what was patched, by module and name.
    """
    replaced = {
        id(old): vars(sys.modules[module])[name]
        for module, names in saved.items()
        for name, old in names.items()
        if callable(old) and name in vars(sys.modules[module])
    }
    for module in [one for name, one in sys.modules.items() if name.partition(".")[0] in REFRESHED]:
        _replace(module, replaced)


def _replace(module: ModuleType, replaced: dict[int, object]) -> None:
    for name, old in list(vars(module).items()):
        if id(old) in replaced:
            patch(module, name, replaced[id(old)])
