"""Heat maps: sets of requests across, patterns of arrival down, as the guide on EAGLE-3 has its tables. Pure.

Of a comparison, what a variant does is shown as a share of the first one, as the guide does. Several variants under a
single pattern are down in one map, and not a map of one row each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rackwright_bench.figures.compare import estimate, ratio_of
from rackwright_bench.figures.figures import Measured
from rackwright_bench.record import Bench, parted

BETTER, WORSE, NEITHER = (0, 114, 178), (213, 94, 0), (255, 255, 255)
"""Colours of a field's tint, red, green, blue: of those that everybody can distinguish."""
DARKER = "darker: better than the other cells of this table"

Coordinates = tuple[str, str]
"""A set of requests, and what is down: a pattern of arrival, or a variant."""
Cells = Mapping[Coordinates, Measured]


@dataclass(frozen=True)
class Field:
    """One cell: its figure, and how good it is, from -1 (bad) to 1."""

    text: str
    tint: float

    @property
    def colour(self) -> str:
        """Pale, so that black letters can be read on it."""
        end, share = (BETTER, self.tint) if self.tint > 0 else (WORSE, -self.tint)
        mixed = (round(white + (one - white) * 0.45 * share) for white, one in zip(NEITHER, end, strict=True))
        return "#" + "".join(f"{value:02x}" for value in mixed)


@dataclass(frozen=True)
class Grid:
    """One heat map."""

    name: str
    """Of its picture's file."""
    title: str
    across: tuple[str, ...]
    down: tuple[str, ...]
    fields: Mapping[Coordinates, Field]
    """Those without a figure are not there."""
    legend: str
    """The meaning of the colours."""

    def at(self, down: str, across: str) -> Field | None:
        """Return the field of a row and a set of requests."""
        return self.fields.get((across, down))


@dataclass(frozen=True)
class Map:
    """A figure that heat maps show."""

    name: str
    title: str
    form: str
    figure: Callable[[Measured], float | None]
    more_is_better: bool
    compared: str = ""
    """The same figure's name in comparisons; empty: no share of another one says anything."""


MAPS = (
    Map("output-rate", "Output tokens a second", "{:.1f}", lambda cell: cell.output_rate, True, "output_rate"),
    Map("ttft-p50", "Time to first token, p50, ms", "{:.4g}", lambda cell: cell.at("ttft", 50), False, "ttft_p50"),
    Map("latency-p99", "End to end, p99, ms", "{:.4g}", lambda cell: cell.at("latency", 99), False, "latency_p99"),
    Map("accepted", "Accepted draft tokens, %", "{:.1f}", lambda cell: _percent(cell.drafting.accepted), True),
)


def grids(found: Bench) -> Iterator[Grid]:
    """All heat maps that have figures: of a comparison the shares first."""
    variants: dict[str, Cells] = {}
    for name, cell in found.cells.items():
        variant, (dataset, _, pattern) = parted(name)[0], parted(name)[1].rpartition(".")
        variants[variant] = {**variants.get(variant, {}), (dataset, pattern): cell}
    base = variants.get(found.against, {})
    others = {name: cells for name, cells in variants.items() if name != found.against} if base else {}
    if len(others) > 1 and len({pattern for cells in variants.values() for _, pattern in cells}) == 1:
        others, variants = {"": _variants_down(others)}, {"": _variants_down(variants)}
        base = _repeated(base, others[""])
    for other, cells in others.items():
        yield from (_shares(one, found.against, other, base, cells) for one in MAPS if one.compared)
    for variant, cells in variants.items():
        yield from filter(None, (_values(one, variant, cells) for one in MAPS))


def _variants_down(variants: Mapping[str, Cells]) -> Cells:
    """Return the cells of a single pattern with their variant in the place of the pattern."""
    return {(dataset, name): cell for name, cells in variants.items() for (dataset, _), cell in cells.items()}


def _repeated(base: Cells, cells: Cells) -> Cells:
    """Return the first variant's cell of each set, at the coordinates of the cells beside it."""
    by_set = {dataset: cell for (dataset, _), cell in base.items()}
    return {at: by_set[at[0]] for at in cells if at[0] in by_set}


def _shares(one: Map, first: str, other: str, base: Cells, cells: Cells) -> Grid:
    fields = {}
    for at, cell in cells.items():
        if at in base and cell.has_figures and base[at].has_figures:
            share = ratio_of(estimate(base[at], one.compared), estimate(cell, one.compared)).value
            gain = (share - 1 if one.more_is_better else 1 - share) * 2
            fields[at] = Field(f"{share:.1%}", max(-1.0, min(1.0, gain)))
    beside = f"{other} as a share of {first}" if other else f"each as a share of {first}"
    title = f"{one.title.partition(', ms')[0]}: {beside}"
    return _grid(
        f"{other or 'each'}-of-{first}-{one.name}", title, cells, fields, f"blue: better than {first}; orange: worse"
    )


def _values(one: Map, variant: str, cells: Cells) -> Grid | None:
    found = {at: one.figure(cell) for at, cell in cells.items() if cell.has_figures}
    figures = {at: value for at, value in found.items() if value is not None}
    if not figures:
        return None
    least, most = min(figures.values()), max(figures.values())
    fields = {}
    for at, value in figures.items():
        share = (value - least) / (most - least) if most > least else 0.0
        better = share if one.more_is_better else 1 - share
        fields[at] = Field(one.form.format(value), 0.1 + 0.9 * better if most > least else 0.0)
    name, title = (f"{variant}-{one.name}", f"{one.title}: {variant}") if variant else (one.name, one.title)
    return _grid(name, title, cells, fields, DARKER)


def _grid(name: str, title: str, cells: Cells, fields: Mapping[Coordinates, Field], legend: str) -> Grid:
    across, down = (tuple(dict.fromkeys(at[side] for at in cells)) for side in (0, 1))
    return Grid(name, title, across, down, fields, legend)


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100
