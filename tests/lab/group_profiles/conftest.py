"""The hosts of this file: each profile takes as many of them as its endpoint has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rackwright_lab.lab import Lab
from tests.lab.conftest import own_lab


@pytest.fixture(scope="package")
def worker_lab() -> Iterator[Lab]:
    """Boot four lived-in hosts for this file alone."""
    with own_lab("k", hosts=4) as lab:
        yield lab
