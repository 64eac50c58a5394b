"""The lab of these files: three lived-in hosts, deployed once."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from rackwright_lab.lab import Lab
from tests.lab.conftest import Site


@pytest.fixture(scope="package")
def fleet() -> Iterator[Site]:
    """Three hosts that serve, in a lab of their own; the worker's, which has one such host, need not be there."""
    lab = Lab.open(f"t{os.getpid()}b")
    lab.down()
    try:
        lab.up(hosts=3, bare=0, short_lists=True, in_memory=True)
        site = Site(lab)
        run = site.deploy()
        assert run.status == 0, run.output
        yield site
    finally:
        lab.down()
