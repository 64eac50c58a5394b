"""The tokens of prompt and answer that an endpoint's settings hold. Pure."""

from __future__ import annotations

from rackwright.settings.host_settings import EndpointSettings
from rackwright_bench.suites.suite import Cell
from rackwright_engines.data import table
from rackwright_engines.fit.sizes import plan_of


def context_of(endpoint: EndpointSettings) -> int | None:
    """Return the length in the engine's options, or else the model's; None where neither is known."""
    if length := plan_of(endpoint).number("sequence", 0):
        return length
    model = endpoint.model.repository if endpoint.model else ""
    return next((int(row["context"]) for row in table("models") if row["repository"] == model), None)


def longest_request(cells: list[Cell]) -> int:
    """Return the most tokens that a request of made sets takes; 0 where all are read from files."""
    return max((cell.data.input + (cell.data.output or 0) for cell in cells if cell.data.input is not None), default=0)
