"""The turn of the host that is served: one host at a time, so that a link is never divided. Pure decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rackwright.hostside.hand_on.pieces import PIECE

LAG = 2 * PIECE
"""Bytes by which a host that comes earlier in the order may be behind the one that it replaces."""
IDLE = 5.0
"""Seconds after which the turn of a host that asks nothing is over."""
SERVED, BUSY, PASSED = "", "busy", "passed"


class ServingSlot:
    """The turn of one host of `order`: the earlier ones in it come first, those that were passed last."""

    def __init__(self, order: Sequence[str], now: Callable[[], float]) -> None:
        self.order, self.now = list(order), now
        self.passed: set[str] = set()
        self.holder, self.held, self.seen = "", 0, 0.0

    def ask(self, host: str, held: int, passing: str = "") -> str:
        """Decide whether a host is served now. held: bytes that it has; passing: a slow host, which it leaves out."""
        if passing and passing != host:
            self.passed.add(passing)
            self.passed.discard(host)
        if not self._is_free(host) and not self._comes_first(host, held):
            return PASSED if host in self.passed else BUSY
        self.holder, self.held, self.seen = host, held, self.now()
        return SERVED

    def still(self, host: str) -> None:
        """Note that a host is being served."""
        if host == self.holder:
            self.seen = self.now()

    def leave(self, host: str) -> None:
        """End the turn of a host that left."""
        if host == self.holder:
            self.holder = ""

    def _is_free(self, host: str) -> bool:
        return self.holder in ("", host) or self.now() - self.seen > IDLE

    def _comes_first(self, host: str, held: int) -> bool:
        """Return True for a better place in the order, unless the holder would then wait for this one to catch up."""
        if self._place(host) > self._place(self.holder):
            return False
        return held + LAG >= self.held or self.holder in self.passed

    def _place(self, host: str) -> tuple[bool, int]:
        return host in self.passed, self.order.index(host)
