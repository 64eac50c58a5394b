"""The story of draft lengths on a GPU: a trained EAGLE3 draft of 1, 2, 3, 4 and 8 tokens a step beside none."""

from __future__ import annotations

from collections.abc import Iterator

from scripts.real_gpu.drafts import INVENTORY, PROVED, chat, deploy, teardown
from scripts.real_gpu.story import Step, lab_up, rackwright

SUITE = "bench/draft_lengths.yml"
LOAD = ("--context", "64", "--concurrency", "1")
"""Of the suite's cell."""


def steps(lab: str, offline: bool, number: int = 1) -> Iterator[Step]:
    """Every step on one host, in order, from a lab that boots to one that ends."""
    name = f"{lab}-bare{number}"
    yield lab_up(lab, 1, offline)
    yield deploy("deploy", INVENTORY, name, PROVED)
    bench = rackwright("bench", INVENTORY, "--limit", name, "-y", "--suite", SUITE)
    lengths = (*bench, "--compare", "lengths", "--rounds", "1")
    yield Step("draft lengths", lengths, seconds=780, says="6 of 6 cells have figures")
    yield Step("draft lengths as a table", rackwright("bench", "--table", "last"), says="draft_8")
    yield chat(INVENTORY, name, "chat after the comparison")
    yield Step("drift after the comparison", rackwright("drift", INVENTORY, "--limit", name))
    advise = rackwright("advise", "-i", INVENTORY, "--limit", name, *LOAD)
    yield Step("advice after one round", advise, right=(0, 1))
    yield teardown(INVENTORY, name, "teardown")
    yield Step("lab down", rackwright("lab", "down", "--id", lab))
