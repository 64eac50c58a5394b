"""Evaluates Jinja in a process of its own, with limits: `python -P -m rackwright.loading.ansible.evaluating SECONDS`.

Standard input: a pickled list of texts by key, each with its context. Standard output: a line of JSON for each, with
the texts that Jinja made; a text that it makes nothing of stays.
"""

from __future__ import annotations

import json
import pickle
import signal
import sys
from collections.abc import Mapping
from typing import Any

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

DEPTH = 8
"""The number of times that a variable may stand for a text with Jinja in it."""
LONGEST = 1 << 16
"""Characters of a text that is made."""
MARKS = ("{{", "{%", "{#")


def main() -> None:
    """Evaluate all, in their order; an endless one ends the process, after the lines of those before it."""
    site = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    for texts, context in pickle.load(sys.stdin.buffer):
        signal.alarm(int(sys.argv[1]))  # seconds for the texts of one host
        made = {key: _made(site, text, context) for key, text in texts.items()}
        signal.alarm(0)
        sys.stdout.write(f"{json.dumps(made)}\n")
        sys.stdout.flush()


def _made(site: ImmutableSandboxedEnvironment, value: str, context: Mapping[str, Any]) -> str | None:
    """Return the text that Jinja makes; None for one that is too long or takes too much memory."""
    text = value
    for _ in range(DEPTH):
        if not any(mark in text for mark in MARKS):
            return text
        try:
            text = site.from_string(text).render(context)
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError):
            break
        except MemoryError:
            return None
        if len(text) > LONGEST:
            return None
    return value


if __name__ == "__main__":
    main()
