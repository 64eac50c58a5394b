"""The results that a site has measured, read from the records of its benches, as figures to choose by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from rackwright.messages import RackwrightError
from rackwright.record.journal import SECOND, records
from rackwright_bench.figures.figures import Measured
from rackwright_bench.record import BENCH, Bench, parted, read_bench
from rackwright_engines.advice import Load
from rackwright_engines.own import OwnFigure

DAY = len("2026-01-31")


def own_figures(root: Path, say: Callable[[str], None]) -> list[OwnFigure]:
    """Every cell of every bench of a site that says something. say: of a record that is damaged, and left out."""
    found = list[OwnFigure]()
    for path in records(root):
        if path.stem[SECOND:].startswith(f"-{BENCH}"):
            try:
                found += figures_of(read_bench(root, path.stem))
            except RackwrightError as error:
                say(f"{error}; it is left out")
    return found


def figures_of(bench: Bench) -> Iterator[OwnFigure]:
    """Yield the cells of one run without a failed request, in which each request was sent as soon as another ended."""
    for name, cell in bench.cells.items():
        variant, cell_name = parted(name)
        conditions = bench.variants.get(variant, {}) if variant else bench.conditions
        pattern = _pattern(conditions, cell_name)
        if pattern and pattern.get("rate") is None and cell.requests and not cell.failed and conditions.get("gpus"):
            yield _figure(bench, variant, cell_name, cell, conditions, int(pattern["concurrency"]))


def _pattern(conditions: Mapping[str, Any], cell: str) -> Mapping[str, Any]:
    """Return the pattern by which its requests arrived. Empty where the record does not say it."""
    arrivals: Mapping[str, Mapping[str, Any]] = conditions.get("settings", {}).get("arrivals", {})
    return arrivals.get(cell.rpartition(".")[2], {})


def _figure(
    bench: Bench, variant: str, name: str, cell: Measured, conditions: Mapping[str, Any], concurrency: int
) -> OwnFigure:
    answer = fmean(request.tokens for request in cell.requests)
    return OwnFigure(
        run=bench.id,
        date=str(conditions["time"])[:DAY],
        host=str(conditions.get("host", "?")),
        endpoint=str(conditions.get("endpoint", "?")),
        variant=variant,
        release=str(conditions.get("release", "")),
        image=str(conditions.get("image", "?")),
        engine=str(conditions.get("engine", "?")),
        drafting=str(conditions.get("drafting", "")),
        model=str(conditions.get("repository") or conditions.get("model", "?")),
        product=str(conditions["gpus"][0]),
        gpus=int(conditions.get("gpu_count", len(conditions["gpus"]))),
        cell=name,
        load=Load(max(1, round(cell.input_tokens)), concurrency, max(1, round(answer))),
        rate=cell.output_rate,
        ttft=cell.at("ttft", 50),
        marks=cell.marks,
    )
