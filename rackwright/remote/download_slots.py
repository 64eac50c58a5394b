"""Limit concurrent downloads: the line of a site, its mirror, and its registry are shared by all hosts of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rackwright.adapter.concurrency import new_condition

if TYPE_CHECKING:
    from rackwright.adapter.concurrency import Condition


@dataclass
class Slots:
    """Counts the hosts that fetch."""

    fetching: Counter[str] = field(default_factory=Counter)
    """The number of jobs that each host has under way."""
    changed: Condition = field(default_factory=new_condition)

    @property
    def busy(self) -> int:
        """Return how many hosts fetch."""
        return len(self.fetching)

    @contextmanager
    def one(self, host: str, most: int | None, wait: Callable[[int], None]) -> Iterator[None]:
        """Hold a slot of `most` (None: of any number) for a host, which has one however many jobs it runs.

        `wait` is called once, with how many hosts fetch, when all slots are taken.
        """
        with self.changed:
            if most is not None and not self._free(host, most):
                wait(self.busy)
                self.changed.wait_for(lambda: self._free(host, most))
            self.fetching[host] += 1
        try:
            yield
        finally:
            with self.changed:
                self.fetching[host] -= 1
                self.fetching += Counter()  # drops what is at zero
                self.changed.notify_all()

    def _free(self, host: str, most: int) -> bool:
        return host in self.fetching or self.busy < most
