"""The hosts of these files: they stay one endpoint by a stand-in of vLLM from file to file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rackwright_lab.lab import Lab
from tests.lab.conftest import forget_hosts


@pytest.fixture(scope="package")
def hosts_of_a_group(worker_lab: Lab) -> Iterator[None]:
    """Hosts that are reset before and after all of these files."""
    forget_hosts(worker_lab)
    yield
    forget_hosts(worker_lab)
