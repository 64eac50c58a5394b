"""Measures the cells of a suite, one after the other: aiperf from this machine, the engine's counters on the host.

A cell that fails is a cell that says why; those before it stay in the record, and those after it are tried.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from rackwright.adapter.concurrency import sleep
from rackwright.messages import RackwrightError
from rackwright_bench.aiperf.environment import without_ours
from rackwright_bench.aiperf.failure_cause import failure_cause
from rackwright_bench.aiperf.process import LOG, begun
from rackwright_bench.aiperf.results import EACH, read_results
from rackwright_bench.aiperf.words import GRACE, Target, profile_words, surroundings
from rackwright_bench.endpoint_on_host import GpuSample, Measuree
from rackwright_bench.figures.acceptance import grown_between
from rackwright_bench.figures.figures import Measured
from rackwright_bench.figures.guards import others, slowed
from rackwright_bench.suites.suite import Cell, Suite

EVERY = 2.0
"""Seconds between two samples of the host's GPUs."""


@dataclass(frozen=True)
class Tool:
    """aiperf's environment, and what its runs share."""

    python: Path
    target: Target
    vocabularies: Path
    folder: Path
    """Of this run: what a failed cell leaves lies here."""
    key: str = field(default="", repr=False)
    """The endpoint's API key; empty: it asks for none."""
    beat: Callable[[], None] = lambda: None
    """Called again and again while a cell is measured."""


def measure_cell(tool: Tool, measuree: Measuree, suite: Suite, cell: Cell, prompts: Path | None) -> Measured:
    """One cell. prompts: the file of a set that is not made by aiperf. Raises RackwrightError where none came out."""
    out = tool.folder / cell.name
    before = measuree.counts()
    words = profile_words(tool.python, tool.target, suite, cell, prompts, out)
    samples, why = _run(words, tool, suite, out, measuree)
    grown = grown_between(before, measuree.counts())
    found = _found(out, why)
    shutil.rmtree(out)
    foreign = others(grown, len(found.requests) + suite.warmup) if not found.failed else ""
    readings = [sample for sample in samples if sample is not None]
    marks = [foreign, slowed(_reasons(readings))]
    return replace(
        found,
        drafting=measuree.drafting(grown, found.drafting),
        marks=tuple(filter(None, marks)),
        gpu=_gpu(readings, found),
    )


def _found(out: Path, why: str) -> Measured:
    """Return what came out. Raises RackwrightError where nothing did; when all requests fail, aiperf fails too."""
    if not why:
        return read_results(out)
    if (out / EACH).exists() and (found := read_results(out)).failed:
        return found
    raise RackwrightError(f"{why}; its words: {out / LOG}{_next(why)}", code="RW1512")


def _next(why: str) -> str:
    """Return the next command where the cause names one."""
    return "; next: the same command with --tokenizer DIR, files that it reads" if "tokenizer" in why.lower() else ""


def _run(
    words: Sequence[str], tool: Tool, suite: Suite, out: Path, measuree: Measuree
) -> tuple[list[GpuSample | None], str]:
    """Run aiperf; returns samples of the GPUs, and why it ended badly, if it did."""
    out.mkdir(parents=True)
    until = time.monotonic() + suite.timeout + GRACE
    with begun(words, tool.key, surroundings(without_ours(os.environ), tool.vocabularies), out) as process:
        samples = list(_samples(process, until, measuree, tool.beat))
    if process.returncode == 0:
        return samples, ""
    why = (
        f"it took more than {suite.timeout} s"
        if time.monotonic() > until
        else failure_cause((out / LOG).read_text(errors="replace"))
    )
    return samples, f"aiperf ended with {process.returncode}: {why}"


def _samples(
    process: subprocess.Popen[bytes], until: float, measuree: Measuree, beat: Callable[[], None]
) -> Iterator[GpuSample | None]:
    looked = 0.0
    while process.poll() is None and time.monotonic() < until:
        beat()
        if time.monotonic() - looked >= EVERY:
            looked = time.monotonic()
            yield measuree.gpus()
        sleep(0.2)


def _reasons(samples: Sequence[GpuSample]) -> int:
    found = 0
    for sample in samples:
        found |= sample.reasons or 0
    return found


def _gpu(samples: Sequence[GpuSample], found: Measured) -> Mapping[str, float]:
    """Means over all samples, of what the GPUs say."""
    means = {"watts": _mean(sample.watts for sample in samples), "mhz": _mean(sample.mhz for sample in samples)}
    figures = {name: value for name, value in means.items() if value is not None}
    if "watts" in figures and found.requests and not found.failed:
        figures["joules_a_token"] = figures["watts"] / found.output_rate
    return figures


def _mean(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return fmean(numbers) if numbers else None
