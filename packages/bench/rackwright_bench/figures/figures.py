"""The figures of one cell, as plain values: what a record keeps of it, and what tables, pages and comparisons read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

PERCENTILES = (50, 90, 99)
TPOT = "tpot"
"""Milliseconds a token after the first one: the pause between two tokens, on average over an answer."""


@dataclass(frozen=True)
class Request:
    """One request that was answered. Milliseconds; `ended` in seconds since the first one began."""

    ttft: float
    itl: float
    latency: float
    ended: float
    tokens: int
    """Of the answer, as the server counts them."""


@dataclass(frozen=True)
class Drafting:
    """The engine's own counts of its drafts while the cell ran, the requests before it included."""

    tokens_a_step: float | None = None
    accepted: float | None = None
    """Share of the drafted tokens, 0 to 1."""
    by_position: tuple[float, ...] = ()
    """The same of each place in a draft, the first one first."""
    why_not: str = ""
    """The reason for a missing measurement."""


@dataclass(frozen=True)
class Measured:
    """One cell that was measured."""

    requests: tuple[Request, ...]
    seconds: float
    input_tokens: float = 0.0
    """Of a prompt, on average, as the server counts them."""
    short: int = 0
    """Answers that were shorter than asked for."""
    goodput: float | None = None
    """Requests a second that kept the SLO; None where none was given."""
    failed: int = 0
    errors: tuple[str, ...] = ()
    """Answers to the failed ones, each kind once, with how often."""
    drafting: Drafting = Drafting(why_not="the engine was not asked")
    marks: tuple[str, ...] = ()
    """Doubts about the cell: other clients' requests, a GPU that was slowed down."""
    gpu: Mapping[str, float] = field(default_factory=dict)
    """`watts` and `mhz`, on average over the cell's looks, and `joules_a_token`: those that the GPUs tell."""
    rounds: tuple[Measured, ...] = ()
    """Of which it was pooled; none for a single one."""

    @property
    def has_figures(self) -> bool:
        """True if its requests were answered, all of them."""
        return bool(self.requests) and not self.failed

    @property
    def request_rate(self) -> float:
        """Answered requests a second."""
        return len(self.requests) / self.seconds

    @property
    def output_rate(self) -> float:
        """Tokens of answers a second."""
        return sum(request.tokens for request in self.requests) / self.seconds

    @property
    def total_rate(self) -> float:
        """Tokens of prompts and answers a second, as `vllm bench serve` prints it."""
        return self.output_rate + self.input_tokens * self.request_rate

    def values(self, latency: str) -> list[float]:
        """One of `ttft`, `itl`, `latency`, `tpot` of all requests, the lowest first.

        `tpot` is `itl` without answers of a single token, which have none: `vllm bench serve` leaves them out, too.
        """
        if latency == TPOT:
            return sorted(request.itl for request in self.requests if request.tokens > 1) or [0.0]
        return sorted(getattr(request, latency) for request in self.requests)

    def at(self, latency: str, percentile: int) -> float:
        """Return a percentile of one of them."""
        return quantile(self.values(latency), percentile / 100)

    def mean(self, latency: str) -> float:
        """Return the mean of one of them."""
        return fmean(self.values(latency))


UNMEASURED = Measured((), 1.0)
"""In the place of a round of which nothing came out, so that the rounds of two variants stay pairs."""


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which a share of them lies; between two values, linearly. ordered: at least one."""
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


# -- as a record keeps it


def as_json(measured: Measured) -> dict[str, Any]:
    """Plain values: every request in a row of its own, and the figures for readers who want no more."""
    found = asdict(measured)
    found.pop("rounds")
    found["requests"] = [[one.ttft, one.itl, one.latency, one.ended, one.tokens] for one in measured.requests]
    return {"figures": figures_of(measured), **found}


def figures_of(measured: Measured) -> dict[str, Any]:
    """Return what a program that reads a record wants first; no rate and no latency where requests have failed."""
    figures: dict[str, Any] = {"answered": len(measured.requests), "failed": measured.failed}
    if not measured.has_figures:
        return figures
    figures |= {"request_rate": measured.request_rate, "output_rate": measured.output_rate, "goodput": measured.goodput}
    figures |= {"total_rate": measured.total_rate, "ttft_mean": measured.mean("ttft"), "tpot_mean": measured.mean(TPOT)}
    for name in ("ttft", "itl", "latency"):
        figures |= {f"{name}_p{percentile}": measured.at(name, percentile) for percentile in PERCENTILES}
    return figures | {"tokens_a_step": measured.drafting.tokens_a_step, "accepted": measured.drafting.accepted}


def measured_of(values: Mapping[str, Any]) -> Measured:
    """Return the same from a record. Raises KeyError, TypeError or ValueError for what is not a cell."""
    fields = {key: value for key, value in values.items() if key in Measured.__dataclass_fields__ and key != "rounds"}
    drafting = dict(fields["drafting"])
    fields["drafting"] = Drafting(**{**drafting, "by_position": tuple(drafting["by_position"])})
    fields["requests"] = tuple(Request(*row) for row in fields["requests"])
    return Measured(**{**fields, "errors": tuple(fields["errors"]), "marks": tuple(fields["marks"])})
