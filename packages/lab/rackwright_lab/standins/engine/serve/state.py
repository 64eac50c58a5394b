"""The serving engine's state: options, speed, statistics, and the faults that are looked at per request."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from .. import log
from ..dialects import Dialect
from ..faults import Faults
from ..speculation import LOOKUPS, DraftStats, draft_steps
from .timing import REQUEST, RequestTimes, TimeSums

ITERATION_SECONDS = 0.002
_KEPT_ITERATIONS = 1000


@dataclass
class Engine:
    """One loaded model. `options` are the effective ones, as a plain dict."""

    model_id: str
    options: dict[str, Any]
    dialect: Dialect
    faults: Faults
    started: float = field(default_factory=time.monotonic)
    requests: int = 0

    def __post_init__(self) -> None:
        self.iterations: deque[dict[str, Any]] = deque(maxlen=_KEPT_ITERATIONS)
        most = self.options.get("perf_metrics_max_requests") or 0
        self.performance: deque[dict[str, Any]] = deque(maxlen=most)
        self.totals = {"requests": 0, "tokens": 0, "drafted": 0, "accepted": 0}
        self.times = TimeSums()
        self._slots = asyncio.Semaphore(self.options.get("max_batch_size") or 1)
        self._iteration = 0

    @property
    def draft_length(self) -> int:
        """Return how many tokens are drafted a step, 0 without speculative decoding."""
        return int(self._drafting.get("max_draft_len") or 0)

    def longest(self) -> int:
        """Return the longest sequence, in tokens."""
        return int(self.options.get("max_seq_len") or 131072)

    def age(self) -> float:
        """Return the seconds since the engine began to serve."""
        return time.monotonic() - self.started

    def count_request(self) -> None:
        """Count one request; the fault `die_after_requests` ends the process here."""
        self.requests += 1
        REQUEST.set(RequestTimes())
        limit = self.faults.active().get("die_after_requests")
        if limit is not None and self.requests > int(limit):
            self.die("CUDA error: an illegal memory access was encountered")

    def die(self, reason: str) -> None:
        """End the process at once, as an engine does whose CUDA context is gone."""
        log.emit(f"Fatal error: {reason}", "E")
        os._exit(1)

    def slots(self) -> asyncio.Semaphore:
        """Return the places of the running batch."""
        return self._slots

    def drafted(self, tokens: int, copied: bool) -> tuple[int, DraftStats]:
        """Return the iterations that so many tokens take, and what was drafted; `copied`: a lookup finds them."""
        wins = copied or str(self._drafting.get("decoding_type")).casefold() not in LOOKUPS
        wins = wins and "never_accepts" not in self.faults.active()
        return draft_steps(tokens, self.draft_length, wins, self.accepts())

    def accepts(self) -> list[int]:
        """Return how many draft tokens each iteration of a request in turn accepts, where the lab has set it."""
        return [int(count) for count in self.faults.active().get("accepts", ())]

    @property
    def _drafting(self) -> dict[str, Any]:
        return self.options.get("speculative_config") or {}

    def spoils(self, temperature: float | None) -> bool:
        """Tell whether the fault `spoils_samples` meets an answer at a temperature; None is the engine's own."""
        effective = self.options.get("temperature", 1.0) if temperature is None else temperature
        return bool(effective) and self.draft_length > 0 and "spoils_samples" in self.faults.active()

    def hangs(self) -> bool:
        """Tell whether the fault `hang_after_seconds` has stopped the core."""
        limit = self.faults.active().get("hang_after_seconds")
        return limit is not None and self.age() >= float(limit)

    async def pace(self, tokens: int, copied: bool = False) -> None:
        """Wait as long as so many tokens take; for ever while the core hangs."""
        while self.hangs():
            await asyncio.sleep(0.2)
        steps, _ = self.drafted(tokens, copied)
        slow = float(self.faults.active().get("slow_factor", 1))
        since, times = time.monotonic(), REQUEST.get()
        await asyncio.sleep(steps * ITERATION_SECONDS * slow)
        if times is not None and tokens:
            times.made(since, steps)

    def record(self, request_id: str, prompt: int, generated: int, copied: bool = False) -> float:
        """Keep one finished request's statistics; return its decoded tokens per iteration."""
        steps, drafts = self.drafted(generated, copied)
        self.totals["requests"] += 1
        self.totals["tokens"] += generated
        self.totals["drafted"] += drafts.proposed
        self.totals["accepted"] += drafts.accepted
        self.times.end(REQUEST.get(), generated)
        if self.options.get("enable_iter_perf_stats"):
            self.iterations.append(self._iteration_stats(steps, drafts))
        if self.options.get("return_perf_metrics") and self.performance.maxlen:
            self.performance.append(_performance(request_id, self._iteration, steps, drafts, prompt, generated))
        self._iteration += steps
        return generated / steps if steps else 0.0

    def _iteration_stats(self, steps: int, drafts: DraftStats) -> dict[str, Any]:
        stats: dict[str, Any] = {
            "iter": self._iteration + steps,
            "iterLatencyMS": ITERATION_SECONDS * 1000,
            "numActiveRequests": 1,
            "numQueuedRequests": 0,
            "gpuMemUsage": 0,
            "cpuMemUsage": 0,
            "kvCacheStats": {
                "maxNumBlocks": 4096,
                "freeNumBlocks": 4095,
                "usedNumBlocks": 1,
                "cacheHitRate": 0.0,
            },
        }
        if self.draft_length:
            stats["specDecodingStats"] = {
                "numDraftTokens": drafts.proposed,
                "numAcceptedTokens": drafts.accepted,
                "acceptanceLength": 1 + drafts.accepted / max(steps, 1),
            }
        return stats


def _performance(
    request_id: str, first: int, steps: int, drafts: DraftStats, prompt: int, generated: int
) -> dict[str, Any]:
    now = time.monotonic()
    took = steps * ITERATION_SECONDS
    timing = {
        "arrival_time": now - took,
        "first_scheduled_time": now - took,
        "last_token_time": now,
        "first_token_time": now - took + ITERATION_SECONDS,
    }
    metrics = {
        "first_iter": first,
        "last_iter": first + steps,
        "timing_metrics": timing,
        "kv_cache_metrics": {"num_total_allocated_blocks": prompt // 32 + 1, "num_reused_blocks": 0},
        "speculative_decoding": {
            "acceptance_rate": drafts.acceptance_rate,
            "total_accepted_draft_tokens": drafts.accepted,
            "total_draft_tokens": drafts.proposed,
        },
    }
    return {"request_id": request_id, "perf_metrics": metrics, "num_generated_tokens": generated}
