"""Two lab hosts that serve a real vLLM (`make real`): the packages behind it are 3 GB, so no other run collects it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from rackwright_lab.lab import Lab
from tests.lab.conftest import ROOT, end_labs_of_killed_runs, no_false_alarm, pytest_runtest_makereport, site
from tests.real.chosen import BUILD

__all__ = ["no_false_alarm", "pytest_runtest_makereport", "site"]

collect_ignore_glob = [] if os.environ.get("RACKWRIGHT_REAL") else ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the story that takes bare hosts to a server: a host that serves has its first deploy behind it."""
    items.sort(key=lambda item: item.path.name != "test_vllm.py")


@pytest.fixture(scope="session")
def worker_lab() -> Iterator[Lab]:
    """One bare and one lived-in host, in a lab that offers the real engine."""
    end_labs_of_killed_runs()
    lab = Lab.open(f"t{os.getpid()}")
    try:
        lab.up(hosts=2, bare=1, real=BUILD.version)
        yield lab
    finally:
        lab.down()
        for kind in ("lock", "presets"):
            (ROOT / f"rackwright.{kind}.{lab.paths.id}.yml").unlink(missing_ok=True)
