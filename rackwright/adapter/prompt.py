"""A question on the terminal that a signal always ends, whenever it comes."""

from __future__ import annotations

import builtins
import sys

from gevent.monkey import get_original

LOOK = 0.2
"""Seconds between two looks for a signal."""


def answer_to(prompt: object = "") -> str:
    """Read a typed line, without its end. Raises EOFError where the input has ended.

    Python's own input() waits for ever where a signal comes between its prompt and its read: the handler has not run
    then, and nothing interrupts the read afterwards. Here the read begins once there is something to read.
    """
    print(prompt, end="", flush=True)
    _wait_for_input()
    return builtins.input()


def _wait_for_input() -> None:
    # gevent's own select would let other greenlets print below the question.
    select = get_original("select", "select")
    try:
        while not select([sys.stdin], [], [], LOOK)[0]:
            pass
    except (AttributeError, OSError, TypeError, ValueError):  # closed, or no file: input() has the words for it
        return
