"""Runs as the guide on EAGLE-3 prints them, in Markdown. Pure.

Of one set of requests: a figure a row and a variant or run a column, the best of each row in bold, as the guide
compares engines and draft models. Of several sets in a comparison: what a variant does as a share of the first one, a
cell each, sets of requests across and patterns of arrival down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from rackwright.messages import RackwrightError, counted
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
    is_grid = len(runs) == 1 and runs[0].against and _sets(runs[0]) > 1
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


def _sets(run: Bench) -> int:
    return len({parted(name)[1].rpartition(".")[0] for name in run.cells})


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
    """Yield the guide's three tables of each other variant: rates, accepted drafts, time to the first token."""
    variants: dict[str, Cells] = {}
    for name, cell in whole(run.cells).items():
        variant, cell_name = parted(name)
        variants.setdefault(variant, {})[cell_name] = cell
    base = variants.pop(run.against, {})
    for variant, cells in variants.items():
        rates, firsts = ({name: _share(figure, base, cells, name) for name in cells} for figure in SHARES)
        accepted = {name: cell.drafting.accepted for name, cell in cells.items()}
        beside = f"{variant} as a share of {run.against}"
        yield _grid(run, f"{SHARES[0].name}: {beside}", rates)
        if any(share is not None for share in accepted.values()):
            yield _grid(run, f"Accept ratio: {variant}", accepted)
        yield _grid(run, f"{SHARES[1].name}: {beside}", firsts)


def _share(figure: Figure, base: Cells, cells: Cells, name: str) -> float | None:
    one = figure.value(base[name]) if name in base else None
    other = figure.value(cells[name])
    return other / one if one and other is not None else None


def _grid(run: Bench, title: str, fields: Mapping[str, float | None]) -> str:
    names = [parted(name)[1] for name in run.cells]
    across = dict.fromkeys(name.rpartition(".")[0] for name in names)
    down = dict.fromkeys(name.rpartition(".")[2] for name in names)
    rows = [[one, *(_percent_text(fields.get(f"{dataset}.{one}")) for dataset in across)] for one in down]
    return _table([title, *across], rows)


def _percent_text(share: float | None) -> str:
    return NONE if share is None else f"{share:.1%}"


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])
