"""Cheaper lookups with the same answers for what pyinfra computes again for each operation and host.

An operation's place in the order is the line numbers of its callers. pyinfra takes them from `inspect.stack()`, which
finds the source text around each of thirty frames, several times an operation: a third of what a converged run of
sixteen hosts costs its client (bench/README.md). The names and types of its global arguments never change either.
"""

from __future__ import annotations

import sys
from functools import cache
from types import FrameType
from typing import NamedTuple, get_type_hints

from pyinfra.api import arguments, util
from pyinfra.connectors import base


class Place(NamedTuple):
    """Where a frame stands: what pyinfra asks of inspect's Traceback."""

    filename: str
    lineno: int


_hints = cache(get_type_hints)


def use_cheap_lookups() -> None:
    """Let pyinfra look up callers and argument types in this way, from now on in this process."""
    vars(util).update(stack=calling_frames, getframeinfo=place_of)
    vars(arguments).update(get_type_hints=_hints)
    vars(base).update(get_type_hints=_hints)


def calling_frames() -> list[tuple[FrameType]]:
    """The frames from the caller outwards, each as the first item of a tuple, as in `inspect.stack()`."""
    found: list[tuple[FrameType]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        found.append((frame,))
        frame = frame.f_back
    return found


def place_of(frame: FrameType) -> Place:
    """The file and the line at which a frame stands now, as `inspect.getframeinfo` says them."""
    return Place(frame.f_code.co_filename, frame.f_lineno)
