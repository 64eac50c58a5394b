"""Limits how many hosts of a run download at once: a site's line, its mirror and its registry have limits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Slots:
    """A counting semaphore. Its condition variable is gevent's under pyinfra, which patches threading."""

    busy: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    @contextmanager
    def one(self, most: int | None, wait: Callable[[int], None]) -> Iterator[None]:
        """Hold a slot of `most` (None: of any number). `wait` is called once with their number when all are taken."""
        with self.changed:
            if most is not None and self.busy >= most:
                wait(self.busy)
                self.changed.wait_for(lambda: self.busy < most)
            self.busy += 1
        try:
            yield
        finally:
            with self.changed:
                self.busy -= 1
                self.changed.notify_all()
