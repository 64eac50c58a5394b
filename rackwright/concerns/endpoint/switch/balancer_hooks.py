"""The site's own commands before an endpoint's stop and after its proof. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rackwright.hostside import host_script
from rackwright.paths import endpoint_dir
from rackwright.settings.host_settings import EndpointSettings


def drain_hook_script(endpoint: str, settings: EndpointSettings, release: str) -> str:
    """Return the site's hook before a stop, as a script; empty without one."""
    return _hook("drain_hook", settings.drain_hook, endpoint, settings, release)


def ready_script(endpoint: str, settings: EndpointSettings, release: str) -> str:
    """Return the site's hook that lets clients in again, as a script; empty without one."""
    return _hook("ready_hook", settings.ready_hook, endpoint, settings, release)


def _hook(name: str, words: Sequence[str], endpoint: str, settings: EndpointSettings, release: str) -> str:
    if not words:
        return ""
    return host_script(
        "hook",
        hook=name,
        words=shlex.join(words),
        program=words[0],
        seconds=settings.hook_timeout,
        endpoint=endpoint,
        port=settings.port,
        release=release,
    )


def not_admitted_mark(endpoint: str) -> str:
    """Return the file that is on the host until the ready hook has let clients in again."""
    return f"{endpoint_dir(endpoint)}/not-admitted"
