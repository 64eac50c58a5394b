"""The lab of these files: three lived-in hosts, deployed once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.conftest import Site, own_lab


@pytest.fixture(scope="package")
def fleet() -> Iterator[Site]:
    """Three hosts that serve, in a lab of their own; the worker's, which has one such host, need not be there."""
    with own_lab("b", hosts=3) as lab:
        site = Site(lab)
        run = site.deploy()
        assert run.status == 0, run.output
        yield site
