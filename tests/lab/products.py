"""What `make test` leaves to `make proof`, each with its reason: most cases of a product, and tests of a kin."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def in_proof(why: str) -> pytest.MarkDecorator:
    """Mark a test or a case for `make proof` only; why: where `make test` sees what it promises."""
    return pytest.mark.proof(why)


def with_proof(cases: Iterable[Any], few: Collection[Any], why: str) -> list[Any]:
    """Mark all but a few cases for `parametrize` with `proof` and why. Raises when one of the few is not a case."""
    cases = list(cases)
    if unknown := [case for case in few if case not in cases]:
        raise ValueError(f"no such case: {unknown}")
    return [pytest.param(*_values(case), marks=() if case in few else in_proof(why)) for case in cases]


def without_reason(items: Iterable[pytest.Item]) -> list[str]:
    """Return tests that are left to `make proof` without a reason."""
    return [
        item.nodeid
        for item in items
        for mark in item.iter_markers("proof")
        if not (mark.args and isinstance(mark.args[0], str) and mark.args[0].strip())
    ]


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
