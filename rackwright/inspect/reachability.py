"""Checks from outside a deploy that permitted clients reach what a host serves now."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from rackwright.adapter.command_output import tail
from rackwright.adapter.run.session import Connected
from rackwright.concerns.endpoint.formats import readable
from rackwright.concerns.firewall import ListenAddress
from rackwright.hostside import host_script
from rackwright.messages import ReadingError
from rackwright.paths import STATE
from rackwright.plan.change import Shell
from rackwright.plan.reach import client_port_of
from rackwright.plan.reading import decode
from rackwright.remote.commands import command_of, remote
from rackwright.remote.errors import StepFailedError
from rackwright.remote.port_probe import reach_of


def reach_of_all(one: Connected) -> list[str]:
    """Return a sentence on each endpoint that runs there and listens on more than loopback; never an error."""
    script = host_script("serving_read", home=f"{STATE}/endpoints")
    try:
        ok, output = remote(one.host, command_of(Shell(script, timeout=60)))
        if not ok:
            raise StepFailedError(tail(output), code="RW0801")
        return list(_sentences(one, parse_serving(output.stdout_lines)))
    except (StepFailedError, ReadingError) as error:
        return [f"whether its ports are reachable is not checked: {error}"]


def parse_serving(lines: Iterable[str]) -> dict[str, ListenAddress]:
    """Return where each endpoint listens that runs, by name. Raises ReadingError."""
    rows = [row.split(" ") for row in lines if row.startswith("serves ")]
    try:
        return {name: ListenAddress.of(readable(json.loads(decode(text)))) for _, name, text in rows}
    except (ValueError, KeyError) as error:
        raise ReadingError(f"where its endpoints listen is unreadable: {error!r}", code="RW0801") from error


def _sentences(one: Connected, serving: dict[str, ListenAddress]) -> Iterator[str]:
    for name, listen in serving.items():
        settings = one.entry.settings.all_endpoints.get(name)
        if settings is None:
            yield f"endpoint {name}: not checked: it is not in the settings, which say who may reach it"
        elif client_port := client_port_of(listen.put(settings), one.entry.settings.direct_clients):
            yield f"endpoint {name}: {reach_of(one.host, client_port)}"
