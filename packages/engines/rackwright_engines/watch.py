"""Signs of an engine that works and of one that hangs: its metrics, and how long they may stand still."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rackwright_engines.data import table
from rackwright_engines.metrics import options_of, scrape
from rackwright_engines.serving import Serving


@dataclass(frozen=True)
class Signs:
    """Signs of one endpoint that its engine makes steps."""

    path: str
    """Path of its metrics; empty where nothing can be read."""
    after: int
    """Seconds without a step and without an answer after which it hangs."""
    steps: tuple[str, ...]
    """Metrics that each step moves; the first that is there counts."""
    moves: tuple[str, ...]
    """More metrics that only a working engine changes."""
    sleep: str
    """Metric of an engine that was put to sleep; empty for an engine that cannot sleep."""
    awake: str
    """Label of its row that is 1 while the engine is awake."""
    batch: int
    """The most requests at a time, by its options, or at least by its default; 0 where neither says it."""
    compilers: tuple[str, ...]
    """Programs that an engine starts, and waits for, at a first request of a new shape."""


def signs(endpoint: Serving) -> Signs:
    """Return the signs of an endpoint's engine."""
    facts, every = table("watch")[endpoint.engine_kind], table("watch")
    sleep = facts.get("sleep", {})
    return Signs(
        scrape(endpoint).path,
        facts["after"],
        tuple(facts["steps"]),
        tuple(facts["moves"]),
        sleep.get("name", ""),
        sleep.get("awake", ""),
        _whole(options_of(endpoint), facts["batch"]) or facts.get("least", 0),
        tuple(every["compilers"]),
    )


def _whole(options: Mapping[str, Any], name: str) -> int:
    text = str(options.get(name, ""))
    return int(text) if text.isdecimal() else 0
