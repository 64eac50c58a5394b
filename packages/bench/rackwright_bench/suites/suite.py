"""A suite: sets of requests and patterns of arrival, typed; each pair of them is a cell.

The numbers are those of `vllm bench serve`, with which the guide on EAGLE-3 measured: lengths in tokens, requests a
second, burstiness as the shape of a gamma distribution, requests at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from rackwright.settings.misfit import MisfitError
from rackwright.settings.sections import FOLDER, SHA256, Frozen

Tokens = Annotated[int, Field(ge=1, le=1_000_000)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Positive = Annotated[float, Field(gt=0, le=1_000_000)]
Name = Annotated[str, Field(pattern=FOLDER)]
Kind = Literal["random", "sharegpt", "spec_bench", "burstgpt"]


class DataSet(Frozen):
    """A set of requests."""

    kind: Kind
    """`random` is made here; the others are read from a file."""
    input: Tokens | None = None
    """Tokens of a prompt: of `random` alone."""
    output: Tokens | None = None
    """Tokens of an answer. Of `sharegpt` and `burstgpt` the file says it of each request, unless it is set."""
    path: str | None = None
    """The file, absolute or beside the suite's file; without it the one that `--fetch` has brought."""
    sha256: Annotated[str, Field(pattern=SHA256)] | None = None
    """Of the file: other bytes are refused."""

    @model_validator(mode="after")
    def _fits(self) -> DataSet:
        if self.kind == "random" and (self.input is None or self.output is None):
            raise MisfitError("random needs input and output, in tokens", "input" if self.input is None else "output")
        if self.kind == "random" and (self.path is not None or self.sha256 is not None):
            key = "sha256" if self.path is None else "path"
            raise MisfitError(f"random is made, not read: leave {key} out", key)
        if self.kind != "random" and self.input is not None:
            raise MisfitError(f"{self.kind} brings its own prompts: leave input out", "input")
        if self.kind == "spec_bench" and self.output is None:
            raise MisfitError("spec_bench has questions without answers: set output, in tokens", "output")
        return self


class Arrival(Frozen):
    """A pattern of arrival."""

    requests: Count
    """The number of requests."""
    concurrency: Count
    """The most requests that are under way at once."""
    rate: Positive | None = None
    """Requests a second; none: the next is sent when one ends."""
    burstiness: Positive | None = None
    """Shape of the gamma distribution of the pauses: 1 is Poisson, less comes in bursts, more is even."""

    @model_validator(mode="after")
    def _fits(self) -> Arrival:
        if self.burstiness is not None and self.rate is None:
            raise MisfitError("burstiness says nothing without a rate", "rate")
        if self.concurrency > self.requests:
            raise MisfitError("is more than there are requests", "concurrency")
        return self


class Slo(Frozen):
    """Limits that a request must keep to count as good. Milliseconds."""

    ttft: Positive | None = None
    """Until the first token."""
    itl: Positive | None = None
    """Between two tokens, on average over the answer."""
    latency: Positive | None = None
    """Until the last token."""


class Suite(Frozen):
    """A suite: data sets, arrivals, and the cells that they make."""

    datasets: Annotated[dict[Name, DataSet], Field(min_length=1)]
    arrivals: Annotated[dict[Name, Arrival], Field(min_length=1)]
    seed: int = Field(default=1, ge=0, le=2**31)
    """Of the random prompts and pauses: the same seed sends the same requests."""
    warmup: int = Field(default=4, ge=0, le=10_000)
    """Requests before a cell that are not counted: the first one of a fresh engine takes seconds."""
    timeout: int = Field(default=3600, ge=1)
    """Seconds that a cell may take."""
    slo: Slo = Slo()
    """For goodput; none: no goodput is reported."""
    variants: dict[Name, dict[str, Any]] = Field(default_factory=dict)
    """For `--compare`: settings of the endpoint over its own, by the variant's name; `engine` is merged deep."""


@dataclass(frozen=True)
class Cell:
    """One set of requests under one pattern of arrival."""

    dataset: str
    arrival: str
    data: DataSet
    pattern: Arrival

    @property
    def name(self) -> str:
        """As tables and folders call it."""
        return f"{self.dataset}.{self.arrival}"


def cells(suite: Suite) -> Iterator[Cell]:
    """All cells, a set of requests after the other."""
    for dataset, data in suite.datasets.items():
        for arrival, pattern in suite.arrivals.items():
            yield Cell(dataset, arrival, data, pattern)
