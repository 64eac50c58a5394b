"""Cheaper lookups with the same answers for what pyinfra computes again for each operation and host.

An operation's place in the order is the line numbers of its callers. pyinfra takes them from `inspect.stack()`, which
finds the source text around each of thirty frames, several times an operation: a third of what a converged run of
sixteen hosts costs its client (bench/README.md). The names and types of its global arguments never change either, and
their values are asked of five layers of a host's data, one by one: a fifth of what a run of 48 hosts costs its client.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from functools import cache
from importlib import import_module
from types import FrameType, SimpleNamespace
from typing import Any, NamedTuple, cast, get_type_hints

from pyinfra.api import arguments, util
from pyinfra.api.host import Host, extract_callable_datas
from pyinfra.api.state import State
from pyinfra.connectors import base

from rackwright.adapter.patch import patch

ASKING = ("pyinfra.api.arguments", "pyinfra.api.deploy", "pyinfra.api.facts", "pyinfra.api.operation")
"""Modules that ask for global arguments; `deploy` and `operation` of pyinfra.api itself are decorators."""


class Place(NamedTuple):
    """The position of a frame: the fields of inspect's Traceback that pyinfra reads."""

    filename: str
    lineno: int


_hints = cache(get_type_hints)
_asked_slowly: Callable[..., Any] = arguments.pop_global_arguments


def use_cheap_lookups() -> None:
    """Let pyinfra look up callers and argument types in this way, from now on in this process."""
    patch(util, "stack", calling_frames)
    patch(util, "getframeinfo", place_of)
    for module in (arguments, base):
        patch(module, "get_type_hints", _hints)
    for name in ASKING:
        patch(import_module(name), "pop_global_arguments", global_arguments, takes="state host kwargs")


def calling_frames() -> list[tuple[FrameType]]:
    """Return the frames from the caller outwards, each as the first item of a tuple, as in `inspect.stack()`."""
    found: list[tuple[FrameType]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        found.append((frame,))
        frame = frame.f_back
    return found


def place_of(frame: FrameType) -> Place:
    """Return the current file and line of a frame, as `inspect.getframeinfo` does."""
    return Place(frame.f_code.co_filename, frame.f_lineno)


def global_arguments(state: State, host: Host, kwargs: dict[str, Any]) -> tuple[arguments.AllArguments, list[str]]:
    """Return what pyinfra's `pop_global_arguments` returns, from host data already looked up, each layer once."""
    layers = list(extract_callable_datas(cast(list[Any], host.data.datas)))
    values = {
        key: copy(layer[key]) for layer in reversed(layers) for key in arguments.all_argument_meta if key in layer
    }
    looked_up = SimpleNamespace(current_deploy_kwargs=host.current_deploy_kwargs, data=SimpleNamespace(**values))
    return cast(tuple[arguments.AllArguments, list[str]], _asked_slowly(state, looked_up, kwargs))
