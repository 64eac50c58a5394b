"""Log lines in the form of the real engine, on standard output at once."""

from __future__ import annotations

import time
from collections.abc import Callable

from . import __version__

Form = Callable[[str, str], str]


def _tensorrt_llm(text: str, level: str) -> str:
    return f"[{time.strftime('%m/%d/%Y-%H:%M:%S')}] [TRT-LLM] [{level}] {text}"


_form: Form = _tensorrt_llm


def use(form: Form) -> None:
    """Write lines in another engine's form from now on; `form` gets the text and the level (I, W or E)."""
    global _form  # noqa: PLW0603
    _form = form


def line(text: str, level: str = "I") -> None:
    """Print one log line; level is I, W or E."""
    print(_form(text, level), flush=True)


def banner() -> None:
    """Print what the real package prints when it is imported by the server."""
    print(f"[TensorRT-LLM] TensorRT-LLM version: {__version__}", flush=True)
