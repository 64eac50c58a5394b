"""Runs as the guide on EAGLE-3 prints them, in Markdown. Pure.

Of one set of requests: a figure a row and a variant or run a column, the best of each row in bold, as the guide
compares engines and draft models. Of several sets in a comparison: what a variant does as a share of the first one, a
cell each, sets of requests across and patterns of arrival down, or variants where there is one pattern alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from rackwright.messages import RackwrightError, counted
from rackwright_bench.figures.acceptance import NO_DRAFTING
from rackwright_bench.figures.figures import TPOT, Measured
from rackwright_bench.record import Bench, parted
from rackwright_bench.report.table import doubts, whole

NONE = "–"
Cells = dict[str, Measured]


@dataclass(frozen=True)
class Figure:
    """A figure of the table."""

    name: str
    value: Callable[[Measured], float | None]
    most: bool = True
    """True if the highest is the best; otherwise the lowest is."""


FIGURES = (
    Figure("Output token throughput (tok/s)", lambda cell: cell.output_rate),
    Figure("Total token throughput (tok/s)", lambda cell: cell.total_rate),
    Figure("Mean TTFT (ms)", lambda cell: cell.mean("ttft"), most=False),
    Figure("Mean TPOT (ms)", lambda cell: cell.mean(TPOT), most=False),
    Figure("Acceptance rate (%)", lambda cell: _percent(cell.drafting.accepted)),
    Figure("Acceptance length", lambda cell: cell.drafting.tokens_a_step),
)
SHARES = (
    Figure("Output token throughput", lambda cell: cell.output_rate),
    Figure("TTFT", lambda cell: cell.mean("ttft"), most=False),
)


@dataclass(frozen=True)
class Column:
    """A variant of a run, or a run, in one of its cells."""

    head: str
    cell: str
    at_once: str
    measured: Measured | None


def markdown(runs: Sequence[Bench]) -> str:
    """Return the tables of runs. Raises RackwrightError where they have no figures."""
    if not any(whole(run.cells) for run in runs):
        raise RackwrightError(f"{', '.join(run.id for run in runs)}: no cell has figures", code="RW1557")
    is_grid = len(runs) == 1 and runs[0].against and len(_sets(runs[0])) > 1
    tables = _grids(runs[0]) if is_grid else _figures(runs)
    return "\n\n".join([*tables, *_notes(runs)])


def _notes(runs: Sequence[Bench]) -> Iterator[str]:
    """Yield a list of what a reader of the tables must know: cells that are doubtful, and why others are empty."""
    by_text: dict[str, list[str]] = {}
    for run in runs:
        for name, text in _notes_of(run):
            by_text.setdefault(text, []).append(f"{_name_of(run, runs)} {name}" if len(runs) > 1 else name)
    if by_text:
        yield "\n".join(f"- {', '.join(names)}: {text}" for text, names in by_text.items())


def _notes_of(run: Bench) -> Iterator[tuple[str, str]]:
    for name, cell in run.cells.items():
        yield from ((name, text) for text in doubts(cell))
        if cell.failed:
            yield name, f"{cell.failed} of {counted(len(cell.requests) + cell.failed, 'request')} failed"
    yield from ((name, text.partition("\n")[0]) for name, text in run.lost.items() if name not in run.cells)
    yield from dict.fromkeys(_unmeasured_drafts(run))


def _unmeasured_drafts(run: Bench) -> Iterator[tuple[str, str]]:
    """Yield why drafts were not counted, of each variant, or of each cell of a plain run."""
    for name, cell in run.cells.items():
        if cell.drafting.why_not not in ("", NO_DRAFTING):
            yield parted(name)[0] or name, f"accepted drafts are not measurable: {cell.drafting.why_not}"


def _sets(run: Bench) -> list[str]:
    return list(dict.fromkeys(parted(name)[1].rpartition(".")[0] for name in run.cells))


def _patterns(run: Bench) -> list[str]:
    return list(dict.fromkeys(parted(name)[1].rpartition(".")[2] for name in run.cells))


# -- figures down, variants or runs across


def _figures(runs: Sequence[Bench]) -> Iterator[str]:
    """Yield a table for each set of requests."""
    columns = [column for run in runs for column in _columns(run, runs)]
    by_set = sorted(columns, key=lambda column: column.cell.rpartition(".")[0])
    for dataset, found in groupby(by_set, key=lambda column: column.cell.rpartition(".")[0]):
        yield _figures_table(dataset, list(found))


def _columns(run: Bench, runs: Sequence[Bench]) -> Iterator[Column]:
    good = whole(run.cells)
    for name in _in_order(run, dict.fromkeys([*run.cells, *run.lost])):
        variant, cell = parted(name)
        yield Column(variant or _name_of(run, runs), cell, _at_once(run, cell), good.get(name))


def _in_order(run: Bench, names: Iterable[str]) -> list[str]:
    """Return cells in the suite's order, and of each the variants as they were named."""
    variants = [one.strip() for one in str(run.begin.get("compare", "")).split(",")]
    arrivals = list(run.conditions.get("settings", {}).get("arrivals", {}))

    def order(name: str) -> tuple[int, int]:
        variant, cell = parted(name)
        arrival = cell.rpartition(".")[2]
        return _index(arrivals, arrival), _index(variants, variant)

    return sorted(names, key=order)


def _index(names: list[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


def _name_of(run: Bench, runs: Sequence[Bench]) -> str:
    """Return the engine of a run, where that distinguishes it from the others."""
    engines = [one.conditions.get("engine", "") for one in runs]
    engine = str(run.conditions.get("engine", ""))
    return engine if engine and engines.count(engine) == 1 else run.id


def _at_once(run: Bench, cell: str) -> str:
    arrivals = run.conditions.get("settings", {}).get("arrivals", {})
    return str(arrivals.get(cell.rpartition(".")[2], {}).get("concurrency", NONE))


def _figures_table(dataset: str, columns: Sequence[Column]) -> str:
    positions = max((len(one.measured.drafting.by_position) for one in columns if one.measured), default=0)
    figures = [figure for figure in (*FIGURES, *map(_position, range(positions))) if _has(figure, columns)]
    heads = [["Maximum request concurrency", *(one.at_once for one in columns)]]
    if len({(one.head, one.at_once) for one in columns}) < len(columns):
        heads.insert(0, ["Pattern of arrival", *(one.cell.rpartition(".")[2] for one in columns)])
    rows = [*heads, *(_row(figure, columns) for figure in figures)]
    return _table([dataset, *(one.head for one in columns)], rows)


def _has(figure: Figure, columns: Sequence[Column]) -> bool:
    return any(one.measured is not None and figure.value(one.measured) is not None for one in columns)


def _position(index: int) -> Figure:
    def value(cell: Measured) -> float | None:
        found = cell.drafting.by_position
        return found[index] * 100 if index < len(found) else None

    return Figure(f"Acceptance rate @ Position {index} (%)", value)


def _row(figure: Figure, columns: Sequence[Column]) -> list[str]:
    values = [figure.value(one.measured) if one.measured else None for one in columns]
    bests = [_best(figure, columns, values, one.at_once) for one in columns]
    return [figure.name, *(_shown(value, value == best) for value, best in zip(values, bests, strict=True))]


def _best(figure: Figure, columns: Sequence[Column], values: Sequence[float | None], at_once: str) -> float | None:
    """Return the best of the columns that had as many requests at once; None where only one of them has a value."""
    found = [value for one, value in zip(columns, values, strict=True) if one.at_once == at_once and value is not None]
    return (max if figure.most else min)(found) if len(found) > 1 else None


def _shown(value: float | None, best: bool) -> str:
    if value is None:
        return NONE
    text = f"{value:.2f}"
    return f"**{text}**" if best else text


# -- shares of the first variant, a cell each


def _grids(run: Bench) -> Iterator[str]:
    """Yield the guide's three tables: rates, accepted drafts, time to the first token.

    They are those of each other variant, with patterns of arrival down; of a single pattern and several variants,
    which its tables of one row each would tear apart, the variants are down.
    """
    names = _in_order(run, dict.fromkeys([*run.cells, *run.lost]))
    variants = {parted(name)[0]: Cells() for name in names}
    for name, cell in whole(run.cells).items():
        variant, cell_name = parted(name)
        variants[variant][cell_name] = cell
    base = variants.pop(run.against, {})
    found = {name: _shares_of(base, cells) for name, cells in variants.items()}
    yield from _variants_down(run, found) if len(_patterns(run)) == 1 < len(found) else _patterns_down(run, found)


@dataclass(frozen=True)
class Shares:
    """A variant beside the first one, by cell: shares of its figures, and of its own drafts the accepted ones."""

    rates: Mapping[str, float | None]
    accepted: Mapping[str, float | None]
    firsts: Mapping[str, float | None]


def _shares_of(base: Cells, cells: Cells) -> Shares:
    rates, firsts = ({name: _share(figure, base, cells, name) for name in cells} for figure in SHARES)
    return Shares(rates, {name: cell.drafting.accepted for name, cell in cells.items()}, firsts)


def _patterns_down(run: Bench, found: Mapping[str, Shares]) -> Iterator[str]:
    for variant, shares in found.items():
        if not shares.rates:
            continue
        beside = f"{variant} as a share of {run.against}"
        yield _grid(run, f"{SHARES[0].name}: {beside}", shares.rates)
        if any(share is not None for share in shares.accepted.values()):
            yield _grid(run, f"Accept ratio: {variant}", shares.accepted)
        yield _grid(run, f"{SHARES[1].name}: {beside}", shares.firsts)


def _variants_down(run: Bench, found: Mapping[str, Shares]) -> Iterator[str]:
    (pattern,) = _patterns(run)
    tables = {
        f"{SHARES[0].name} as a share of {run.against}": {name: one.rates for name, one in found.items()},
        "Accept ratio": {name: one.accepted for name, one in found.items()},
        f"{SHARES[1].name} as a share of {run.against}": {name: one.firsts for name, one in found.items()},
    }
    for title, fields in tables.items():
        if any(value is not None for row in fields.values() for value in row.values()):
            rows = [[name, *_across(run, row, pattern)] for name, row in fields.items()]
            yield _table([f"{title}, {pattern}", *_sets(run)], rows)


def _share(figure: Figure, base: Cells, cells: Cells, name: str) -> float | None:
    one = figure.value(base[name]) if name in base else None
    other = figure.value(cells[name])
    return other / one if one and other is not None else None


def _grid(run: Bench, title: str, fields: Mapping[str, float | None]) -> str:
    return _table([title, *_sets(run)], [[one, *_across(run, fields, one)] for one in _patterns(run)])


def _across(run: Bench, fields: Mapping[str, float | None], pattern: str) -> list[str]:
    """Return a row's cells, a set of requests each."""
    return [_percent_text(fields.get(f"{dataset}.{pattern}")) for dataset in _sets(run)]


def _percent_text(share: float | None) -> str:
    return NONE if share is None else f"{share:.1%}"


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])
