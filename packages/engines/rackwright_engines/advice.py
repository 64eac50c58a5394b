"""Ranks profiles for a GPU and a load by what was measured, then by what a source advises; it guesses nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rackwright_engines.data import table

FAR = 2.0
"""Doublings of context, or of concurrency, beyond which a figure says little of the load that was asked for."""


MODEL = "openai/gpt-oss-120b"
"""The model of profiles that name no other one."""


@dataclass(frozen=True)
class Load:
    """The load that is asked for: tokens of a prompt, requests at once, and tokens of an answer if they are known."""

    context: int
    concurrency: int
    output: int | None = None

    @property
    def length(self) -> int:
        """Tokens that a request takes of the context: the prompt, and the answer if it is known."""
        return self.context + (self.output or 0)


@dataclass(frozen=True)
class Advice:
    """One profile, how fast it was measured for such a load, and why it stands where it does."""

    profile: str
    gpus: int
    percents: tuple[float, ...]
    """Its shares of the speed of the GPU's usual profile, the nearest ones; empty when it was not measured."""
    reasons: tuple[str, ...]
    at_once: int
    """Requests of those asked for that it works on at once."""
    runs: bool = True
    """False when it is known not to."""
    advised: bool = False
    """True when its source calls it the better one for such a load, without a speed."""
    serves: str = ""
    """The model, where it is another one than gpt-oss-120b."""
    beyond: bool = False
    """True when such advice is for shorter requests than those asked for."""

    @property
    def percent(self) -> float | None:
        """The mean of `percents`."""
        return sum(self.percents) / len(self.percents) if self.percents else None


def advise(gpu: str, load: Load) -> list[Advice]:
    """Return profiles for a GPU: the fastest first, then those without a measurement, and last those that fail.

    Of those without a measurement, what serves gpt-oss-120b comes before other models, then what a source advises for
    such a load, then what works on more requests at once. gpu: its name as `GpuType` has it. Empty when no profile
    holds requests of that length.
    """
    rows = [row for row in table("measured")["profiles"] if row["gpu"] == gpu and _holds(row, load)]
    return sorted((_advice(row, load) for row in rows), key=_order)


def _holds(row: Mapping[str, Any], load: Load) -> bool:
    """Return True if a profile takes such requests: its context holds them, and its steps their prompts."""
    return bool(row["context"] >= load.length and row.get("prompt", row["context"]) >= load.context)


def longest(gpu: str) -> int:
    """Return the longest context in tokens that a profile for this GPU has; 0 for a GPU without profiles."""
    return max((row["context"] for row in table("measured")["profiles"] if row["gpu"] == gpu), default=0)


def _order(advice: Advice) -> tuple[bool, bool, float, bool, bool, int, bool]:
    measured = advice.percent is None, -(advice.percent or 0)
    return not advice.runs, *measured, bool(advice.serves), not advice.advised, -advice.at_once, advice.beyond


def _advice(row: Mapping[str, Any], load: Load) -> Advice:
    name, gpu, limit = row["name"], row["gpu"], row.get("concurrency", load.concurrency)
    remarks, figures = _remarks(gpu, name), _nearest(gpu, name, load)
    better = [remark for remark in remarks if remark.get("better")]
    first = [f"does not run: {row['fails']}"] if "fails" in row else [_figure(figure, load) for figure in figures]
    return Advice(
        profile=name,
        gpus=row["gpus"],
        percents=tuple(figure["percent"] for figure in figures),
        reasons=(*(first or [_unmeasured(row)]), *_limits(row, load), *(_remark(remark, load) for remark in remarks)),
        at_once=min(limit, load.concurrency),
        runs="fails" not in row,
        serves=row.get("serves", ""),
        advised=any(load.length <= remark["context_below"] for remark in better),
        beyond=any(load.length > remark["context_below"] for remark in better),
    )


def _remarks(gpu: str, name: str) -> list[Mapping[str, Any]]:
    return [row for row in table("measured")["remarks"] if (row["gpu"], row["profile"]) == (gpu, name)]


def _nearest(gpu: str, name: str, load: Load) -> list[Mapping[str, Any]]:
    """Return the figures that are nearest to the load, all of them when several are equally near."""
    figures = [row for row in table("measured")["figures"] if (row["gpu"], row["profile"]) == (gpu, name)]
    least = min((_distance(figure, load) for figure in figures), default=0.0)
    return [figure for figure in figures if _distance(figure, load) <= least + 0.01]


def _distance(figure: Mapping[str, Any], load: Load) -> float:
    output = doublings(figure["output"], load.output) if load.output else 0.0
    return doublings(figure["input"], load.context) + doublings(figure["concurrency"], load.concurrency) + output


def doublings(one: int, other: int) -> float:
    """Return how many times one count must be doubled, or halved, to be the other. Both: at least 1."""
    return abs(math.log2(one) - math.log2(other))


def _figure(figure: Mapping[str, Any], load: Load) -> str:
    baseline = table("measured")["baselines"][figure["gpu"]]
    usual = figure["profile"] == baseline
    share = "the usual profile of this GPU" if usual else f"{figure['percent']:g} % of {baseline}'s speed"
    shown = f" ({figure['figure']})" if "figure" in figure else ""
    at = f"{figure['input']} tokens in, {figure['output']} out, {figure['concurrency']} at once"
    far = "; far from the load asked for" if _distance(figure, load) > FAR else ""
    return f"{share}{shown} at {at}{_more(figure)}{far} [{_source(figure)}]"


def _more(figure: Mapping[str, Any]) -> str:
    arriving = ", ".join(f"{percent:g} % at {rate} a second" for rate, percent in figure.get("arriving", {}).items())
    return "".join(
        (
            f"; when they arrive by and by: {arriving}" if arriving else "",
            f"; first token after {figure['first_token']:g} % of its time" if "first_token" in figure else "",
            f"; {figure['accepted']:g} % of the drafted tokens accepted" if "accepted" in figure else "",
        )
    )


def _unmeasured(row: Mapping[str, Any]) -> str:
    serves = f"; it serves {row['serves']}" if "serves" in row else ""
    return f"its speed was not measured on this GPU; settings from {table('measured')['sources'][row['from']]}{serves}"


def _limits(row: Mapping[str, Any], load: Load) -> list[str]:
    limit = row.get("concurrency", load.concurrency)
    some = f"{limit} request{'s' if limit != 1 else ''}"
    waits = f"works on {some} at once, so {load.concurrency} would wait for each other"
    return [waits] if limit < load.concurrency else []


def _remark(remark: Mapping[str, Any], load: Load) -> str:
    return f"{remark['kind']}: {remark['text']}{_reach(remark, load)} [{_source(remark)}]"


def _reach(remark: Mapping[str, Any], load: Load) -> str:
    """Return what the advice's limit means for this load. At the limit it counts: no better figure exists there."""
    limit = remark.get("context_below")
    if limit is None or load.length < limit:
        return ""
    if load.length > limit:
        return f"; {load.length} tokens are more than those {limit}, so this does not count here"
    return f"; {limit} is that limit itself: this counts, and no more with a longer prompt or with an answer (--output)"


def _source(row: Mapping[str, Any]) -> str:
    return str(table("measured")["sources"].get(row["source"], row["source"]))
