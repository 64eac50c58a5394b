"""How long each request takes, and the sums that the servers show Prometheus of it."""

from __future__ import annotations

import time
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class RequestTimes:
    """The clock of one request."""

    began: float = field(default_factory=time.monotonic)
    first: float | None = None
    """Seconds to the first token; None before it."""

    def made(self, since: float, steps: int) -> None:
        """Note that so many steps have been made since a moment: the first of them had the first token."""
        if self.first is None:
            self.first = since - self.began + (time.monotonic() - since) / max(1, steps)


REQUEST: ContextVar[RequestTimes | None] = ContextVar("REQUEST", default=None)
"""Of the request that a task works on."""


@dataclass
class TimeSums:
    """Sums over all requests that have ended."""

    requests: int = 0
    first: float = 0.0
    decode: float = 0.0
    tokens: int = 0
    mean: float = 0.0
    """Sum of each request's own mean of seconds a token."""

    def end(self, times: RequestTimes | None, tokens: int) -> None:
        """Count a request that has ended."""
        if times is None or times.first is None:
            return
        decode = time.monotonic() - times.began - times.first
        self.requests += 1
        self.first += times.first
        self.decode += decode
        self.tokens += tokens
        self.mean += decode / max(1, tokens - 1)
