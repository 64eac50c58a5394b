"""The hosts of these files: each ends what the one before serves on them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rackwright_lab.lab import Lab
from tests.lab.conftest import own_lab


@pytest.fixture(scope="package")
def worker_lab() -> Iterator[Lab]:
    """Boot two lived-in hosts for these files alone."""
    with own_lab("q", hosts=2) as lab:
        yield lab
