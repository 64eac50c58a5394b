"""Status output for the hosts' replies: rows, and lines below them. Loaded while the hosts log in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rackwright.adapter.run.poll import Reply
from rackwright.inspect.common_address import sentences_of
from rackwright.inspect.left_hosts import left_hosts
from rackwright.inspect.status.last_runs import last_runs
from rackwright.inspect.status.reading import Asked, parse
from rackwright.inspect.status.rows import GATEWAY, StatusRow, rows_of, unknown_row, values_of
from rackwright.inspect.status.table import render
from rackwright.messages import ReadingError, paragraph
from rackwright.record.quarantine import load_quarantine
from rackwright.settings.host_settings import HostSettings
from rackwright.tables import folded, shown_width
from rackwright_engines.requests import ignored_parameters

__all__ = ["all_rows", "as_json", "ignored_of", "left_hosts", "table"]


def all_rows(
    settings: Mapping[str, HostSettings], replies: Mapping[str, Reply], root: Path, now: datetime
) -> list[StatusRow]:
    """Return the rows of all hosts; hosts with equal settings share what is computed from them. root: the site's."""
    made = {id(one): Asked(one) for one in settings.values()}
    runs = last_runs(root, settings.keys(), now)
    quarantined = {host: f"since {entry.since}, {entry.why}" for host, entry in load_quarantine(root).items()}
    found = [
        replace(row, last_run=runs.get(host, ""), quarantine=row.quarantine or quarantined.get(host, ""))
        for host, one in settings.items()
        for row in rows_on(host, made[id(one)], replies[host], now)
    ]
    return with_owners(found, settings)


def with_owners(rows: Sequence[StatusRow], settings: Mapping[str, HostSettings]) -> list[StatusRow]:
    """Return the rows with a note on gateways where not exactly one of them has the common address."""
    read = (row for row in rows if row.endpoint == GATEWAY and row.gpus is not None)
    wrong = sentences_of(settings, ((row.host, bool(row.address)) for row in read))
    return [replace(row, note=wrong.get(row.host, "")) if row.endpoint == GATEWAY else row for row in rows]


def as_json(rows: Sequence[StatusRow], left_behind: Sequence[str]) -> str:
    """Return the same for programs. left_behind: sentences on hosts that have left the inventory."""
    return json.dumps({**values_of(rows), "left_behind": left_behind}, indent=1)


def table(
    rows: Sequence[StatusRow], left_behind: Sequence[str], settings: Iterable[HostSettings], columns: Sequence[str] = ()
) -> str:
    """For people. columns: their names; none for all that say something."""
    width = shown_width()
    return folded(paragraph("\n".join([render(rows, width, columns), *ignored_of(settings), *left_behind])), width)


def ignored_of(hosts: Iterable[HostSettings]) -> list[str]:
    """Parameters of requests that are ignored, a line for each endpoint name and reason."""
    found = {
        f"endpoint {name}: it ignores {', '.join(ignored.parameters)} of requests: {ignored.text}"
        for settings in {id(one): one for one in hosts}.values()
        for name, endpoint in settings.all_endpoints.items()
        for ignored in ignored_parameters(endpoint)
    }
    return sorted(found)


def rows_on(name: str, wanted: Asked, reply: Reply, now: datetime) -> list[StatusRow]:
    """Return the rows of one host, or one that says why nothing is known."""
    if reply.trouble:
        return [unknown_row(name, wanted, reply.trouble)]
    try:
        return rows_of(name, wanted, parse(reply.lines), now)
    except ReadingError as error:
        return [unknown_row(name, wanted, str(error))]
