"""Shared code of the programs that run inside a serving image; it is prepended to each of them.

The image's Python and engine may be of any version, so only the standard library is assumed.
"""

from __future__ import annotations

import importlib
import os
import signal
from typing import IO, Any, NoReturn


def first(*names: str) -> Any:
    """Return the first `MODULE:ATTRIBUTE` that this image has. Raises ImportError with every reason without one."""
    reasons = []
    for name in names:
        module, _, attribute = name.partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except Exception as error:  # an engine's import may fail with anything
            reasons.append(f"{name}: {type(error).__name__}: {error}")
    raise ImportError("; ".join(reasons))


VLLM_PARSERS = tuple(
    f"vllm.entrypoints.{package}.cli_args:make_arg_parser" for package in ("openai", "launchers", "common")
)
"""Functions in which vLLM fills its parser: seen in 0.14.1, in 0.32.0 and in 0.33.0."""


def real_output() -> IO[str]:
    """Return the real standard output; the engine's output goes to standard error from now on."""
    # The first process of a container ignores signals that it has no handler for.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return out


def leave(out: IO[str], text: str, status: int = 0) -> NoReturn:
    """Write the answer and end the process."""
    out.write(f"{text}\n")
    out.flush()
    # Engines leave threads that would keep the process alive.
    os._exit(status)
