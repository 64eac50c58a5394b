"""Products of cases that say much the same: `make test` runs a few of each, `make proof` the rest as well."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def with_proof(cases: Iterable[Any], few: Collection[Any]) -> list[Any]:
    """Cases for `parametrize`: all but a few have the mark `proof`. Raises when one of the few is no case."""
    cases = list(cases)
    if strangers := [case for case in few if case not in cases]:
        raise ValueError(f"no such case: {strangers}")
    return [pytest.param(*_values(case), marks=() if case in few else pytest.mark.proof) for case in cases]


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
