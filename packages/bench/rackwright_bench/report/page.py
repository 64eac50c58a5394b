"""A bench as one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path

from rackwright.messages import writing
from rackwright_bench.record import Bench
from rackwright_bench.report.grids import Field, Grid, grids
from rackwright_bench.report.table import (
    COLUMNS,
    acceptance,
    clients_lines,
    remarks_lines,
    rows,
    whole,
)

STYLE = """\
body{font:15px/1.5 system-ui,sans-serif;max-width:90em;margin:2em auto;padding:0 1em;color:#111;background:#fff}
h2{font-size:1.2em;margin:1.6em 0 .4em}h3{font-size:1em;margin:.6em 0 .3em}
table{border-collapse:collapse;margin:.3em 0}td,th{padding:.3em .7em;border:1px solid #ccc;text-align:right}
th:first-child,td:first-child,.words td{text-align:left}th{background:#f6f6f6}svg{width:100%;height:auto}
.failed{background:#f3d4d4}.legend{color:#555;font-size:.9em;margin:0}.wide{overflow-x:auto}
.side{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(34em,100%),1fr));gap:.5em 2em;align-items:start}
.maps{grid-template-columns:repeat(auto-fit,minmax(min(24em,100%),1fr))}.side>div{overflow-x:auto}
"""


def write_page(found: Bench, record: Path, drawn: Iterable[str] = ()) -> Path:
    """Write the page beside the record; returns its path. Raises RackwrightError.

    drawn: its curves, as SVG elements.
    """
    page = record.with_suffix(".bench.html")
    with writing(page):
        page.write_text(html(found, drawn))
    return page


def html(found: Bench, drawn: Iterable[str] = ()) -> str:
    """Return the whole page. drawn: its curves, as SVG elements."""
    title = f"{found.conditions.get('host', '?')} {found.conditions.get('endpoint', '?')}: {found.id}"
    parts = [
        f"<h1>{escape(title)}</h1><p>{escape(found.text)}</p>",
        *_troubles(found),
        *(f"<p><b>{escape(text)}</b></p>" for text in found.verdicts),
        *_conditions(found),
        "<h2>Heat maps</h2>",
        _side_by_side(map(_heat_map, grids(found)), "side maps"),
        *_curves(drawn),
        *_figures(found),
        *_remarks(found),
    ]
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return f"{head}\n" + "\n".join(parts)


def _troubles(found: Bench) -> Iterator[str]:
    """Errors come first."""
    problems = [
        f"{name}: {cell.failed} requests failed: {'; '.join(cell.errors)}"
        for name, cell in found.cells.items()
        if cell.failed
    ]
    problems += [f"{name}: {why}" for name, why in found.lost.items()]
    problems += [f"{name}: {mark}" for name, cell in found.cells.items() for mark in cell.marks]
    if problems:
        yield f"<ul>{''.join(f'<li class=failed>{escape(text)}</li>' for text in problems)}</ul>"


def _curves(drawn: Iterable[str]) -> Iterator[str]:
    if parts := list(drawn):
        yield "<h2>Throughput and latency</h2>"
        yield _side_by_side(iter(parts))


def _side_by_side(parts: Iterator[str], kind: str = "side") -> str:
    return f"<div class='{kind}'>{''.join(f'<div>{part}</div>' for part in parts)}</div>"


def _figures(found: Bench) -> Iterator[str]:
    """Yield all figures of all cells, as the terminal has them."""
    heads = "".join(f"<th>{escape(column.head)}</th>" for column in COLUMNS)
    body = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows(found.cells))
    lines = "".join(f"<tr>{row}</tr>" for row in body)
    yield f"<h2>Figures</h2><div class=wide><table><tr>{heads}</tr>{lines}</table></div>"


def _heat_map(grid: Grid) -> str:
    lines = []
    for down in grid.down:
        fields = "".join(_field(grid.at(down, across)) for across in grid.across)
        lines.append(f"<tr><th>{escape(down)}</th>{fields}</tr>")
    heads = "".join(f"<th>{escape(across)}</th>" for across in grid.across)
    table = f"<table><tr><th></th>{heads}</tr>{''.join(lines)}</table>"
    return f"<h3>{escape(grid.title)}</h3>{table}<p class=legend>{escape(grid.legend)}</p>"


def _field(field: Field | None) -> str:
    if field is None:
        return "<td class=failed>no figure</td>"
    return f'<td style="background:{field.colour}">{escape(field.text)}</td>'


def _remarks(found: Bench) -> Iterator[str]:
    remarks = remarks_lines({name: [acceptance(cell.drafting)] for name, cell in whole(found.cells).items()})
    yield f"<h2>Drafts</h2><ul>{''.join(f'<li>{escape(text)}</li>' for text in remarks)}</ul>"


def _conditions(found: Bench) -> Iterator[str]:
    yield "<h2>Measured with</h2>"
    yield _side_by_side(_condition_tables(found))
    yield from (f"<p class=legend>{escape(text)}</p>" for text in clients_lines(found))


def _condition_tables(found: Bench) -> Iterator[str]:
    for conditions in found.variants.values() or [found.conditions]:
        shown = {
            key: _value_text(value) for key, value in conditions.items() if key not in ("time", "kind", "settings")
        }
        lines = (f"<tr><th>{escape(key)}</th><td>{escape(text)}</td></tr>" for key, text in shown.items() if text)
        yield f"<table class=words>{''.join(lines)}</table>"


def _value_text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
