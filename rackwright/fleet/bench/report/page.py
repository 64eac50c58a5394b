"""A bench as one HTML page that needs no network, and its pictures as files for reports, as SVG and as PNG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

from rackwright.fleet.bench.record import Bench
from rackwright.fleet.bench.report.curves import curves
from rackwright.fleet.bench.report.grids import Field, Grid, drawn_grid, grids
from rackwright.fleet.bench.report.png import write_png
from rackwright.fleet.bench.report.shapes import Picture, svg
from rackwright.fleet.bench.report.table import acceptance
from rackwright.messages import writing

STYLE = """\
body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#111;background:#fff}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.3em .7em;border:1px solid #ccc;text-align:right}
th:first-child,td:first-child{text-align:left}svg{width:100%;height:auto}.failed{background:#f3d4d4}
"""


def write_page(found: Bench, record: Path) -> Path:
    """Write the page beside the record, and each picture as SVG; returns the page's path. Raises RackwrightError."""
    page = record.with_suffix(".bench.html")
    with writing(page):
        page.write_text(html(found))
        for picture in pictures(found):
            record.with_suffix(f".{picture.name}.svg").write_text(svg(picture))
    return page


def write_png_pictures(found: Bench, record: Path, python: Path) -> None:
    """Write each picture as PNG beside the record. python: aiperf's. Raises RackwrightError."""
    write_png(python, [(picture, record.with_suffix(f".{picture.name}.png")) for picture in pictures(found)])


def pictures(found: Bench) -> Iterator[Picture]:
    """The curves, and every heat map."""
    yield from _curves(found)
    yield from map(drawn_grid, grids(found))


def _curves(found: Bench) -> Iterator[Picture]:
    yield curves(found.cells, "ttft", 50, "Time to first token, p50")
    yield curves(found.cells, "latency", 99, "End to end, p99")


def html(found: Bench) -> str:
    """The whole page."""
    title = f"{found.conditions.get('host', '?')} {found.conditions.get('endpoint', '?')}: {found.id}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        *_troubles(found),
        *(f"<p><b>{escape(text)}</b></p>" for text in found.verdicts),
        *map(_heat_map, grids(found)),
        *map(svg, _curves(found)),
        *_remarks(found),
        *_conditions(found),
    ]
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return f"{head}\n" + "\n".join(parts)


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


def _heat_map(grid: Grid) -> str:
    rows = []
    for down in grid.down:
        fields = "".join(_field(grid.at(down, across)) for across in grid.across)
        rows.append(f"<tr><th>{escape(down)}</th>{fields}</tr>")
    heads = "".join(f"<th>{escape(across)}</th>" for across in grid.across)
    return f"<h2>{escape(grid.title)}</h2><table><tr><th></th>{heads}</tr>{''.join(rows)}</table>"


def _field(field: Field | None) -> str:
    if field is None:
        return "<td class=failed>no figure</td>"
    return f'<td style="background:{field.colour}">{escape(field.text)}</td>'


def _remarks(found: Bench) -> Iterator[str]:
    told = [f"{name}: {acceptance(cell.drafting)}" for name, cell in found.cells.items() if not cell.failed]
    yield f"<h2>Drafts</h2><ul>{''.join(f'<li>{escape(text)}</li>' for text in told)}</ul>"


def _conditions(found: Bench) -> Iterator[str]:
    yield "<h2>Measured with</h2>"
    for told in found.variants.values() or [found.conditions]:
        shown = {key: value for key, value in told.items() if key not in ("time", "kind", "settings")}
        rows = (f"<tr><th>{escape(key)}</th><td>{escape(_value_text(value))}</td></tr>" for key, value in shown.items())
        yield f"<table>{''.join(rows)}</table>"
    yield f"<p>{escape(found.text)}</p>"


def _value_text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
