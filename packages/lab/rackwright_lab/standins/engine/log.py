"""Log lines in the form of the real engine, on standard output at once."""

from __future__ import annotations

import json
import logging
import logging.config
import time
from collections.abc import Callable
from pathlib import Path

from . import __version__

Form = Callable[[str, str], str]


def _tensorrt_llm(text: str, level: str) -> str:
    return f"[{time.strftime('%m/%d/%Y-%H:%M:%S')}] [TRT-LLM] [{level}] {text}"


_form: Form = _tensorrt_llm


def use(form: Form) -> None:
    """Write lines in another engine's form from now on; `form` gets the text and the level (I, W or E)."""
    global _form  # noqa: PLW0603
    _form = form


def configure(file: str | None) -> None:
    """Take the levels of a configuration of Python's `logging`, as vLLM and SGLang do of their file."""
    if file:
        logging.config.dictConfig(json.loads(Path(file).read_text(encoding="utf-8")))


def named_line(logger: str, text: str) -> None:
    """Print what the real engine's module says by `logging`, if its logger is to say it."""
    found = logging.getLogger(logger)
    if found.level == logging.NOTSET or found.isEnabledFor(logging.INFO):
        emit(text)


def emit(text: str, level: str = "I") -> None:
    """Print one log line; level is I, W or E."""
    print(_form(text, level), flush=True)


def banner() -> None:
    """Print what the real package prints when it is imported by the server."""
    print(f"[TensorRT-LLM] TensorRT-LLM version: {__version__}", flush=True)
