"""A bench as one HTML page that needs no network: heat maps of its cells, curves, and what it was measured with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from html import escape
from pathlib import Path

from rackwright.fleet.bench.figures.figures import Measured
from rackwright.fleet.bench.record import Bench
from rackwright.fleet.bench.report.curves import curves
from rackwright.fleet.bench.report.table import acceptance

STYLE = """\
body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#111;background:#fff}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.3em .7em;border:1px solid #ccc;text-align:right}
th:first-child,td:first-child{text-align:left}svg{width:100%;height:auto}.failed{background:#f3d4d4}
"""
MAPS: Mapping[str, tuple[str, Callable[[Measured], float | None], bool]] = {
    "Output tokens a second": ("{:.1f}", lambda cell: cell.output_rate, True),
    "Time to first token, p50, ms": ("{:.4g}", lambda cell: cell.at("ttft", 50), False),
    "End to end, p99, ms": ("{:.4g}", lambda cell: cell.at("latency", 99), False),
    "Accepted draft tokens, %": ("{:.1f}", lambda cell: _percent(cell.drafting.accepted), True),
}
"""Heat maps: how a figure is written, the figure, and whether more is better."""


def write_page(found: Bench, record: Path) -> Path:
    """Write the page beside the record, and each of its pictures as a file; returns the page's path."""
    page = record.with_suffix(".bench.html")
    page.write_text(html(found))
    for name, picture in pictures(found.cells):
        record.with_suffix(f".{name}.svg").write_text(picture)
    return page


def pictures(cells: Mapping[str, Measured]) -> Iterator[tuple[str, str]]:
    """Name and SVG of each."""
    yield "ttft", curves(cells, "ttft", 50, "Time to first token, p50")
    yield "latency", curves(cells, "latency", 99, "End to end, p99")


def html(found: Bench) -> str:
    """The whole page."""
    title = f"{found.conditions.get('host', '?')} {found.conditions.get('endpoint', '?')}: {found.id}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        *_troubles(found),
        *(_heat_map(found.cells, name) for name in MAPS),
        *(picture for _, picture in pictures(found.cells)),
        *_remarks(found),
        *_conditions(found),
    ]
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return f"{head}\n" + "\n".join(parts)


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100


def _troubles(found: Bench) -> Iterator[str]:
    """Errors come first."""
    told = [
        f"{name}: {cell.failed} requests failed: {'; '.join(cell.errors)}"
        for name, cell in found.cells.items()
        if cell.failed
    ]
    told += [f"{name}: {why}" for name, why in found.lost.items()]
    told += [f"{name}: {mark}" for name, cell in found.cells.items() for mark in cell.marks]
    if told:
        yield f"<ul>{''.join(f'<li class=failed>{escape(text)}</li>' for text in told)}</ul>"


def _heat_map(cells: Mapping[str, Measured], name: str) -> str:
    """Sets of requests across, patterns of arrival down, as the guides have it; nothing where nobody has the figure."""
    form, figure, more = MAPS[name]
    values = {key: figure(cell) for key, cell in cells.items() if cell.requests and not cell.failed}
    known = [value for value in values.values() if value is not None]
    if not known:
        return ""
    across = list(dict.fromkeys(key.rpartition(".")[0] for key in cells))
    down = list(dict.fromkeys(key.rpartition(".")[2] for key in cells))
    rows = []
    for arrival in down:
        fields = [_field(values.get(f"{dataset}.{arrival}"), form, min(known), max(known), more) for dataset in across]
        rows.append(f"<tr><th>{escape(arrival)}</th>{''.join(fields)}</tr>")
    heads = "".join(f"<th>{escape(dataset)}</th>" for dataset in across)
    return f"<h2>{escape(name)}</h2><table><tr><th></th>{heads}</tr>{''.join(rows)}</table>"


def _field(value: float | None, form: str, least: float, most: float, more: bool) -> str:
    if value is None:
        return "<td class=failed>no figure</td>"
    share = (value - least) / (most - least) if most > least else 1.0
    good = share if more else 1 - share
    return f'<td style="background:rgba(0,114,178,{0.05 + 0.4 * good:.2f})">{form.format(value)}</td>'


def _remarks(found: Bench) -> Iterator[str]:
    told = [f"{name}: {acceptance(cell.drafting)}" for name, cell in found.cells.items() if not cell.failed]
    yield f"<h2>Drafts</h2><ul>{''.join(f'<li>{escape(text)}</li>' for text in told)}</ul>"


def _conditions(found: Bench) -> Iterator[str]:
    shown = {key: value for key, value in found.conditions.items() if key not in ("time", "kind", "settings")}
    rows = "".join(f"<tr><th>{escape(key)}</th><td>{escape(_told(value))}</td></tr>" for key, value in shown.items())
    yield f"<h2>Measured with</h2><table>{rows}</table><p>{escape(found.text)}</p>"


def _told(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
