"""The story of a host that serves on a GPU and hands a model on: what its clients wait, with and without it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from scripts.real_gpu.drafts import deploy
from scripts.real_gpu.story import INVENTORY, Step, lab_up, rackwright


def steps(lab: str, offline: bool) -> Iterator[Step]:
    """Every step in order, from a lab that boots to one that ends."""
    name = f"{lab}-bare1"
    yield lab_up(lab, 1, offline)
    yield deploy("deploy", INVENTORY, name, "proved: a chat answer")
    look = "nvidia-smi -L; uname -r; nproc; ip -br address"
    yield Step("machine", rackwright("lab", "ssh", "--id", lab, name, look), says="GPU 0: ")
    bench = (sys.executable, "-P", "-m", "bench.hand_on_beside", name)
    yield Step("hand on beside clients", bench, seconds=460, says="time to first token while it hands on")
    yield Step("lab down", rackwright("lab", "down", "--id", lab))
