"""Ranks what a site has measured itself: its own figures stand before those of others. Pure.

Figures of different loads do not compare, so what was measured nearest to the load that is asked for comes first, and
among equally near ones the fastest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean

from rackwright_engines.advice import FAR, Load, doublings
from rackwright_engines.fit.gpu import gpu_type

SHORT = 12
"""Letters of a release's hash that people are shown."""


@dataclass(frozen=True)
class OwnFigure:
    """One cell of one bench of the site, without a failed request, sent as fast as answers came."""

    run: str
    date: str
    """`2026-11-23`."""
    host: str
    endpoint: str
    variant: str
    """Its name where several were compared; empty otherwise."""
    release: str
    image: str
    engine: str
    drafting: str
    model: str
    product: str
    """The GPU's name, as nvidia-smi has it."""
    gpus: int
    cell: str
    load: Load
    rate: float
    """Tokens of answers a second."""
    ttft: float
    """Median time to the first token, milliseconds."""
    marks: tuple[str, ...] = ()

    @property
    def gpu(self) -> str:
        """The GPU's name as `GpuType` has it; empty for one that is not known."""
        found = gpu_type(self.product)
        return found.name if found else ""


@dataclass(frozen=True)
class OwnAdvice:
    """One release that the site has measured, by its figures that are nearest to the load."""

    figures: tuple[OwnFigure, ...]
    distance: float
    """Of the load that was measured from the one asked for, in doublings."""

    @property
    def rate(self) -> float:
        """Tokens of answers a second: the mean of `figures`."""
        return fmean(figure.rate for figure in self.figures)

    @property
    def is_far(self) -> bool:
        """True if its figures say little of the load that was asked for."""
        return self.distance > FAR


def own_advice(gpu: str, load: Load, figures: Iterable[OwnFigure]) -> list[OwnAdvice]:
    """Return the releases that were measured on such a GPU: nearest load first, and of equal loads the fastest.

    gpu: its name as `GpuType` has it. A cell that was measured again counts by its newest figure.
    """
    releases: dict[tuple[str, int], dict[tuple[str, Load], OwnFigure]] = {}
    for figure in sorted(figures, key=lambda one: one.run):
        if figure.gpu == gpu:
            releases.setdefault((figure.release, figure.gpus), {})[figure.cell, figure.load] = figure
    found = [_nearest(list(cells.values()), load) for cells in releases.values()]
    return sorted(found, key=lambda one: (round(one.distance, 1), -one.rate))


def _nearest(figures: list[OwnFigure], load: Load) -> OwnAdvice:
    least = min(_distance(figure.load, load) for figure in figures)
    return OwnAdvice(tuple(one for one in figures if _distance(one.load, load) <= least + 0.01), least)


def _distance(measured: Load, wanted: Load) -> float:
    output = doublings(measured.output, wanted.output) if measured.output and wanted.output else 0.0
    return doublings(measured.context, wanted.context) + doublings(measured.concurrency, wanted.concurrency) + output


# -- in words


def heading(one: OwnAdvice) -> str:
    """`llm on gpu-03 with eagle3, release 1a2b3c4d5e6f (1 GPU): 2643 tokens/s`."""
    newest = one.figures[-1]
    drafting = f" with {newest.drafting}" if newest.drafting else ""
    gpus = f"{newest.gpus} GPU{'s' if newest.gpus > 1 else ''}"
    release = newest.release[:SHORT] or "unknown"
    return f"{newest.endpoint} on {newest.host}{drafting}, release {release} ({gpus}): {_rate(one.rate)}"


def reasons(one: OwnAdvice) -> Iterator[str]:
    """Yield a sentence for each figure: the load, and when, with what and on what it was measured."""
    for figure in one.figures:
        load = f"{figure.load.context} tokens in, {figure.load.output} out, {figure.load.concurrency} at once"
        far = "; far from the load asked for" if one.is_far else ""
        marks = "".join(f"; {mark}" for mark in figure.marks)
        yield f"{_rate(figure.rate)}, first token after {figure.ttft:.4g} ms at {load}{far}{marks} [{_source(figure)}]"


def _source(figure: OwnFigure) -> str:
    variant = f" as {figure.variant}" if figure.variant else ""
    return (
        f"your run {figure.run} of {figure.date}: {figure.cell}{variant}; {figure.model} by {figure.engine}, "
        f"{figure.image}; {figure.gpus} x {figure.product}"
    )


def _rate(rate: float) -> str:
    return f"{rate:.1f} tokens/s"
