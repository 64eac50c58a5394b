"""Ranks profiles for a GPU and a load by what was measured; where nothing was, it says so and guesses nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rackwright.engines.data import table
from rackwright.engines.gpu import gpu_type

FAR = 2.0
"""Doublings of context, or of concurrency, beyond which a figure says little of the load that was asked for."""


@dataclass(frozen=True)
class Load:
    """What is asked for: tokens of a prompt, requests at once, and tokens of an answer if they are known."""

    context: int
    concurrency: int
    output: int | None = None


@dataclass(frozen=True)
class Advice:
    """One profile: its share of the GPU's usual profile in percent (None: not measured), and why."""

    profile: str
    percent: float | None
    reasons: tuple[str, ...]
    runs: bool = True
    """False when it is known not to."""
    fits: bool = True
    """False when it works on fewer requests at once than were asked for."""
    remarked: bool = False
    """True when its source calls it the better one for such a load, without a figure."""


def advise(gpu: str, load: Load) -> list[Advice]:
    """Profiles for a GPU, the fastest first; those that nobody measured come after, those that fail last.

    gpu: a product name, as `B200` or `NVIDIA RTX PRO 6000 Blackwell`. Empty for a GPU without profiles.
    """
    known = gpu_type(gpu)
    rows = [row for row in table("measured")["profiles"] if known and row["gpu"] == known.name]
    return sorted((_advice(row, load) for row in rows if row["context"] >= load.context), key=_order)


def _order(advice: Advice) -> tuple[bool, bool, float, bool, bool]:
    percent = advice.percent
    return not advice.runs, percent is None, -(percent or 0), not advice.remarked, not advice.fits


def _advice(row: Mapping[str, Any], load: Load) -> Advice:
    name, gpu = row["name"], row["gpu"]
    figures, limits, remarks = _nearest(gpu, name, load), _limits(row, load), _remarks(gpu, name, load)
    percent = sum(figure["percent"] for figure in figures) / len(figures) if figures else None
    reasons = [_figure(gpu, name, figure, load) for figure in figures] or ["not measured on this GPU"]
    if "fails" in row:
        return Advice(name, None, (f"does not run: {row['fails']}",), runs=False)
    better = any(row.get("better") for row in remarks)
    told = [f"{row['text']} [{_source(row)}]" for row in remarks]
    return Advice(name, percent, (*reasons, *limits, *told), fits=not limits, remarked=better)


def _nearest(gpu: str, name: str, load: Load) -> list[Mapping[str, Any]]:
    """The figures that are nearest to the load, all of them when several are equally near.

    The baseline counts as 100 % wherever another profile was measured against it.
    """
    data = table("measured")
    own = [figure for figure in data["figures"] if figure["gpu"] == gpu and figure["profile"] == name]
    if data["baselines"].get(gpu) == name:
        return [{**own[0], "percent": 100}]
    least = min((_distance(figure, load) for figure in own), default=0.0)
    return [figure for figure in own if _distance(figure, load) <= least + 0.01]


def _distance(figure: Mapping[str, Any], load: Load) -> float:
    output = _doublings(figure["output"], load.output) if load.output else 0.0
    return _doublings(figure["input"], load.context) + _doublings(figure["concurrency"], load.concurrency) + output


def _doublings(one: int, other: int) -> float:
    return abs(math.log2(one) - math.log2(other))


def _figure(gpu: str, name: str, figure: Mapping[str, Any], load: Load) -> str:
    data = table("measured")
    baseline = data["baselines"][gpu]
    share = "the usual profile of this GPU" if name == baseline else f"{figure['percent']:g} % of {baseline}'s speed"
    shown = f" ({figure['figure']})" if "figure" in figure else ""
    load_ = f"{figure['input']} tokens in, {figure['output']} out, {figure['concurrency']} at once"
    far = "; far from the load asked for" if _distance(figure, load) > FAR else ""
    return f"{share}{shown} at {load_}{far} [{_source(figure)}]"


def _limits(row: Mapping[str, Any], load: Load) -> list[str]:
    limit = row.get("concurrency")
    waits = (
        f"works on {limit} request{'s' if limit != 1 else ''} at once, so {load.concurrency} would wait for each other"
    )
    return [waits] if limit and limit < load.concurrency else []


def _remarks(gpu: str, name: str, load: Load) -> list[Mapping[str, Any]]:
    return [
        row
        for row in table("measured")["remarks"]
        if (row["gpu"], row["profile"]) == (gpu, name) and load.context < row.get("context_below", math.inf)
    ]


def _source(row: Mapping[str, Any]) -> str:
    return str(table("measured")["sources"].get(row["source"], row["source"]))
