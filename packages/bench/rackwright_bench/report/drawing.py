"""A bench's pictures as files, SVG and PNG: drawn by matplotlib in aiperf's environment, which every bench has."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rackwright.messages import RackwrightError, printable
from rackwright_bench.aiperf.environment import without_ours
from rackwright_bench.record import Bench
from rackwright_bench.report.curves import Curves, curves
from rackwright_bench.report.grids import Field, Grid, grids

PLOTS = Path(__file__).with_name("plots.py")
SECONDS = 120


def curves_of(found: Bench) -> tuple[Curves, ...]:
    """Return the curves of a bench."""
    arrivals = found.conditions.get("settings", {}).get("arrivals", {})
    return (
        curves(found.cells, arrivals, "ttft", 50, "Time to first token, p50, ms"),
        curves(found.cells, arrivals, "latency", 99, "End to end, p99, ms"),
    )


def draw(found: Bench, record: Path, python: Path) -> dict[str, Path]:
    """Draw each picture beside the record as SVG and PNG; returns the SVG of each by name.

    python: that of aiperf's environment. Raises RackwrightError.
    """
    drawn = [_curves_values(one, _stem(record, one.name)) for one in curves_of(found)]
    tables = [_grid_values(one, _stem(record, one.name)) for one in grids(found)]
    failure = _failure(python, json.dumps({"curves": drawn, "grids": tables}))
    if failure is not None:
        raise RackwrightError(
            f"the pictures could not be drawn: {printable(failure) or 'no reason given'}; the page's tables and "
            f"the record are there; next: rm -r {python.parents[1]}, and the next bench installs aiperf's environment "
            "again",
            code="RW1540",
        )
    return {one["name"]: Path(f"{one['stem']}.svg") for one in [*drawn, *tables]}


def _stem(record: Path, name: str) -> str:
    return str(record.with_suffix(f".{name}"))


def _curves_values(one: Curves, stem: str) -> dict[str, Any]:
    return {**asdict(one), "title": one.latency, "stem": stem}


def _grid_values(one: Grid, stem: str) -> dict[str, Any]:
    rows = [[_field_values(one.at(down, across)) for across in one.across] for down in one.down]
    shown = {name: getattr(one, name) for name in ("name", "title", "legend", "across", "down")}
    return {**shown, "rows": rows, "stem": stem}


def _field_values(field: Field | None) -> dict[str, str] | None:
    return None if field is None else {"text": field.text, "colour": field.colour}


def _failure(python: Path, pictures: str) -> str | None:
    """Return the last line of what went wrong, or None."""
    try:
        done = subprocess.run(
            [str(python), "-P", str(PLOTS)],
            env=without_ours(os.environ),
            input=pictures,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "".join(done.stderr.strip().splitlines()[-1:]) if done.returncode else None


def svg_texts(drawn: dict[str, Path]) -> Iterator[str]:
    """Yield the curves as elements of a page."""
    for name in ("ttft", "latency"):
        if name in drawn:
            text = drawn[name].read_text()
            yield text[text.index("<svg") :]
