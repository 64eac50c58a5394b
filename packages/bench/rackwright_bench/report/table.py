"""A run's cells as a table for a terminal: a cell with failed requests says that, and no figure. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rackwright.messages import counted
from rackwright.tables import Column, drawn
from rackwright_bench.figures.compare import Compared, in_percent
from rackwright_bench.figures.figures import PERCENTILES, TPOT, Drafting, Measured
from rackwright_bench.record import Bench

COLUMNS = (
    Column("cell"),
    Column("req/s"),
    Column("tok/s"),
    Column("total tok/s", 6),
    Column("mean TTFT/TPOT", 5),
    Column("TTFT p50/p90/p99"),
    Column("ITL p50/p90/p99", 3),
    Column("end to end p50/p90/p99", 2),
    Column("goodput", 4),
    Column("tok/step", 1),
)
COMPARED = (Column("cell"), Column("figure"), Column("change"), Column("verdict", 1, 30))
NONE = "-"
GPU = {"watts": "{:.0f} W", "mhz": "{:.0f} MHz", "joules_a_token": "{:.3g} J a token"}


def table(cells: Mapping[str, Measured], width: int | None = None) -> str:
    """All cells of an endpoint, by name, as aligned columns; below it what must be known of single cells.

    width: the terminal's.
    """
    good = whole(cells)
    lines = [_failed(name, cell) for name, cell in cells.items() if name not in good]
    if good:
        lines.append(drawn(COLUMNS, rows(cells), width))
    return "\n".join([*lines, *remarks_lines({name: list(_remarks(cell)) for name, cell in good.items()})])


def whole(cells: Mapping[str, Measured]) -> dict[str, Measured]:
    """Return the cells that have figures."""
    return {name: cell for name, cell in cells.items() if not cell.failed and cell.requests}


def rows(cells: Mapping[str, Measured]) -> list[tuple[str, ...]]:
    """Return a row for each cell that has figures, below the heads of COLUMNS."""
    return [_row(name, cell) for name, cell in whole(cells).items()]


def remarks_lines(remarks: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Each cell's remarks below its name; what holds for all of them is said once."""
    common = [text for text in next(iter(remarks.values()), ()) if all(text in texts for texts in remarks.values())]
    if len(remarks) > 1:
        yield from (f"each cell: {text}" for text in common)
        remarks = {name: [text for text in texts if text not in common] for name, texts in remarks.items()}
    yield from (f"{name}: {text}" for name, texts in remarks.items() for text in texts)


def _failed(name: str, cell: Measured) -> str:
    requests = counted(len(cell.requests) + cell.failed, "request")
    return f"{name}: {cell.failed} of {requests} failed, so it has no figures: {'; '.join(cell.errors)}"


def _row(name: str, cell: Measured) -> tuple[str, ...]:
    return (
        name,
        f"{cell.request_rate:.2f}",
        f"{cell.output_rate:.1f}",
        f"{cell.total_rate:.1f}",
        f"{cell.mean('ttft'):.4g}/{cell.mean(TPOT):.4g} ms",
        *(_milliseconds(cell, latency) for latency in ("ttft", "itl", "latency")),
        NONE if cell.goodput is None else f"{cell.goodput:.2f}",
        NONE if cell.drafting.tokens_a_step is None else f"{cell.drafting.tokens_a_step:.2f}",
    )


def _milliseconds(cell: Measured, latency: str) -> str:
    return f"{'/'.join(f'{cell.at(latency, percentile):.4g}' for percentile in PERCENTILES)} ms"


def doubts(cell: Measured) -> Iterator[str]:
    """Yield why the figures of a cell are not to be taken as they are."""
    yield from (f"doubtful: {mark}" for mark in cell.marks)
    if cell.short:
        yield f"{counted(cell.short, 'answer')} shorter than asked for: rates do not compare"


def _remarks(cell: Measured) -> Iterator[str]:
    yield from doubts(cell)
    yield acceptance(cell.drafting)
    if cell.gpu:
        yield ", ".join(form.format(cell.gpu[key]) for key, form in GPU.items() if key in cell.gpu)


def acceptance(drafting: Drafting) -> str:
    """One sentence on the drafts of a cell."""
    if drafting.tokens_a_step is None and drafting.accepted is None:
        return f"accepted drafts: not measurable: {drafting.why_not or 'no draft was made'}"
    share = "" if drafting.accepted is None else f"{drafting.accepted:.1%} of draft tokens accepted"
    places = ", ".join(f"{rate:.1%}" for rate in drafting.by_position)
    by_place = f"by position {places}" if places else "by position not measurable"
    if drafting.tokens_a_step is None:
        return f"{share}; tokens a step not measurable; {by_place}"
    return f"{drafting.tokens_a_step:.2f} tokens a step; {share}; {by_place}"


def switches_lines(found: Bench) -> Iterator[str]:
    """Yield the engine's options, below every table: of variants one line, unless their options differ."""
    variants = {name: one["switches"] for name, one in (found.variants or {"": found.conditions}).items()}
    alike = len({tuple(one.items()) for one in variants.values()}) == 1
    for name, switches in list(variants.items())[: 1 if alike else None]:
        with_ = ", ".join(f"{switch} {value}" for switch, value in switches.items())
        yield f"measured with {with_}" if alike else f"{name}: measured with {with_}"


def clients_lines(found: Bench) -> Iterator[str]:
    """Say whether requests of other clients would have been noticed: only vLLM counts what it has answered."""
    engines = {str(one.get("engine", "")) for one in (found.variants or {"": found.conditions}).values()}
    for engine in sorted(engines - {"vllm", ""}):
        yield f"{engine} does not count requests of other clients: the figures are right only where there were none"


def compared_table(rows: Sequence[Compared], width: int | None = None) -> str:
    """Return a comparison of two runs, a line a figure; percentiles but the 50th and the 99th are left out."""
    shown = [row for row in rows if not row.figure.name.endswith("_p90")]
    table_rows = [(row.cell, row.figure.name, in_percent(row.ratio), row.verdict) for row in shown]
    return drawn(COMPARED, table_rows, width)
