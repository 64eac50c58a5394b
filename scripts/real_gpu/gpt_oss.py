"""The story of a small gpt-oss on a GPU: taught, proven with an EAGLE3 draft of its own, a random draft refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rackwright_lab.machine.paths import cache_root
from rackwright_lab.real import gpt_oss
from rackwright_lab.real.gpu_settings import OWN_DRAFT
from scripts.real_gpu.drafts import PROVED, chat, deploy, teardown
from scripts.real_gpu.story import METRICS, Step, data, lab_up, rackwright, rollout

INVENTORY = "inventory/lab_gpu_oss.py"
TEACH = (sys.executable, "-P", "-m", "rackwright_lab.real.gpt_oss")


def steps(lab: str, offline: bool) -> Iterator[Step]:
    """Every step on one host, in order, from models that are taught to a lab that ends."""
    models = gpt_oss.models(cache_root())
    yield Step("small gpt-oss taught", TEACH, seconds=1800, says=models.name)
    yield lab_up(lab, 1, offline, models=str(models))
    yield from _on_host(f"{lab}-bare1", lab)
    yield Step("lab down", rackwright("lab", "down", "--id", lab))


def _on_host(name: str, lab: str) -> Iterator[Step]:
    yield deploy("deploy", INVENTORY, name, PROVED)
    yield deploy("deploy again", INVENTORY, name, "")
    yield chat(INVENTORY, name, "chat in harmony")
    counted = rackwright("lab", "ssh", "--id", lab, name, METRICS)
    yield Step("drafts as vLLM counts them", counted, says="spec_decode")
    yield Step("hardware record", rackwright("report", "--hardware"), says=".hardware.md")
    random = rollout(INVENTORY, "--limit", name, *data(draft={**OWN_DRAFT, "revision": "v3"}))
    yield Step("random draft is refused", random, right=(3,), seconds=300, says="refused: accepted drafts")
    yield chat(INVENTORY, name, "chat after the refusal")
    yield teardown(INVENTORY, name, "teardown")
