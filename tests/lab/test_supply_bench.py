"""bench/supply on lab hosts: each engine brings every host its file, with no fault and with each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.supply import cells
from bench.supply.__main__ import FLEETS, main
from rackwright_lab.lab import Lab
from tests.lab.products import in_proof

pytestmark = [
    pytest.mark.lab,
    in_proof("the pure parts are in tests/unit/test_supply_bench.py"),
    pytest.mark.timeout(1800),
]


def test_every_engine_brings_all_hosts_their_file(tmp_path: Path) -> None:
    out, lab = tmp_path / "supply.json", f"t{os.getpid()}s"
    words = ["--id", lab, "--hosts", "3", "--size", "16MiB", "--links", "4", "--faults", *cells.FAULTS]
    assert main([*words, "--out", str(out), "--picture", str(tmp_path / "supply.svg")]) == 0
    assert not Lab.open(lab).is_up
    found = cells.read(out)
    assert {result.cell.engine for result in found} == {cells.ONE_HOST, *FLEETS}
    assert all(result.last is not None and result.last > 0.9 * result.cell.alone for result in found)
    shared = [result for result in found if result.cell.engine not in (cells.ONE_HOST, cells.FROM_ORIGIN)]
    assert all(result.copies < 1.5 for result in shared if result.cell.fault == cells.NO_FAULT)
