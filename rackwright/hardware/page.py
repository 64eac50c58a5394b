"""A bundle as a page to read: tables of what its values say, and then the values themselves. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rackwright.hardware.readings import Json
from rackwright.messages import counted
from rackwright.record.view.report.figures import UNITS, figure

FENCE = "```"
PROMISE = """\
It holds numbers, versions and words of Rackwright's own lists. No name of a host, user, site or file, no address, no
serial number, no UUID, no answer of a model and no text that a host printed is in it. Read it before you send it."""


def page(bundle: Json) -> str:
    """Return the whole page, in Markdown."""
    run = bundle["run"]
    when = f"{run.get('day', 'unknown day')}, exit {run.get('status', '-')}, {run.get('seconds', '-')} s"
    lines = [
        f"# Rackwright {bundle['rackwright']} on real hardware",
        "",
        f"{when}, {counted(run['hosts'], 'host')}.",
        "",
        PROMISE,
        *(row for host in bundle["hosts"] for row in _host(host)),
        "",
        f"{FENCE}json",
        json.dumps(bundle, indent=1),
        FENCE,
    ]
    return "\n".join(lines) + "\n"


def values(text: str) -> Json:
    """Return the values of a page. Raises ValueError for a malformed text."""
    _, fence, body = text.partition(f"{FENCE}json\n")
    if not fence:
        raise ValueError("no bundle: it has no JSON")
    found: Json = json.loads(body.partition(f"\n{FENCE}")[0])
    return found


def _host(host: Json) -> Iterator[str]:
    profile = f", profile {host['profile']}" if "profile" in host else ""
    yield from ("", f"## Host {host['host']}: {host['state']}{profile}", "")
    gpus = (f"{gpu['count']} x {gpu['name']}" for gpu in host.get("gpus", ()))
    yield from _table(("", ""), [("GPUs", ", ".join(gpus)), *_pairs(host.get("machine", {}))])
    several = len(host["endpoints"]) > 1
    for number, endpoint in enumerate(host["endpoints"], 1):
        head = f"endpoint {number}" if several else "endpoint"
        yield from _table((head, ""), _pairs({**endpoint, **endpoint["options"]}))
    for name in dict.fromkeys(row.get("endpoint") for row in host["gate"]):
        rows = [_row(row) for row in host["gate"] if row.get("endpoint") == name]
        yield from _table((f"gate of endpoint {name}" if name else "gate", "", "figure"), rows)
    yield from _table(("phase", "seconds"), _pairs(host["seconds"]))
    checks = [(row["check"], f"{row['verdict']} {row.get('code', '')}".strip()) for row in host.get("preflight", ())]
    yield from _table(("preflight", ""), checks or [("not read", "-")])


def _row(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["row"], row.get("mark", "-"), _figure(row)


def _figure(row: Mapping[str, Any]) -> str:
    if "figure" not in row:
        return ""
    return f"{figure(row['row'], row['figure'])}{UNITS.get(row['row'], (1.0, ''))[1]}"


def _pairs(section: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in section.items() if not isinstance(value, Mapping)]


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""
