"""The hosts of these files: they stay one endpoint by a stand-in of vLLM from file to file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rackwright_lab.lab import Lab
from tests.lab.conftest import own_lab


@pytest.fixture(scope="package")
def worker_lab() -> Iterator[Lab]:
    """Boot two lived-in hosts for these files alone: an endpoint of both is in the way of one that a host has alone."""
    with own_lab("p", hosts=2) as lab:
        yield lab
