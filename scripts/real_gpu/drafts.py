"""The story of a real EAGLE3 draft on a GPU: one that is proven, those that must be refused, and both GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright_lab.real.builds import EAGLE3_DRAFT
from scripts.real_gpu.story import METRICS, QUESTION, SUITE, Step, data, lab_up, pyinfra, rackwright, rollout

INVENTORY = "inventory/lab_gpu_eagle3.py"
BOTH, EACH = "inventory/lab_gpu_both.py", "inventory/lab_gpu_each.py"
PROVED = "of 16 (eagle3)"
"""The end of the row of a draft that wins: so many verifications, by what."""
REFUSED = {
    "random draft": ("v3", 3, "refused: accepted drafts"),
    "weak draft": ("v2", 3, "refused: accepted drafts"),
    "torn draft": ("v5", 3, "torch.Size"),
    "draft of another model": ("v4", 1, "RW3008"),
}
"""Drafts that must not serve: revision, exit status, and what is said of it."""
INSIDE = "for name in NAMES; do sudo docker exec rackwright-$name nvidia-smi -L; done"
CARRIED = "sudo journalctl --no-pager --output cat --unit rackwright-llm | grep -a 'NCCL INFO' | tail -n 120"


def steps(lab: str, offline: bool, number: int = 1) -> Iterator[Step]:
    """Every step on one host, in order, from a lab that boots to one that ends."""
    yield lab_up(lab, 1, offline)
    yield from on_host(f"{lab}-bare{number}", lab)
    yield Step("lab down", rackwright("lab", "down", "--id", lab))


def on_host(name: str, lab: str) -> Iterator[Step]:
    """Every step on a host of a lab that is up."""
    ssh = ("lab", "ssh", "--id", lab, name)
    yield deploy("deploy", INVENTORY, name, PROVED)
    yield deploy("deploy again", INVENTORY, name, "")
    yield chat(INVENTORY, name, "chat")
    yield Step("drafts as vLLM counts them", rackwright(*ssh, METRICS), says="spec_decode")
    yield Step("hardware record", rackwright("report", "--hardware"), says=".hardware.md")
    yield from _refused(name)
    yield from _compare(name)


def _compare(name: str) -> Iterator[Step]:
    words = ("--compare", "baseline,eagle3", "--suite", SUITE, "--rounds", "3", "--timeout", "480")
    bench = rackwright("bench", INVENTORY, "--limit", name, "-y", *words)
    yield Step("drafting on and off", bench, seconds=560, says="against baseline")
    yield chat(INVENTORY, name, "chat after the comparison")
    yield teardown(INVENTORY, name, "teardown")


def both(lab: str, offline: bool, number: int = 1) -> Iterator[Step]:
    """Every step on one host with two GPUs: one endpoint over both, then two with one each."""
    name = f"{lab}-bare{number}"
    ssh = ("lab", "ssh", "--id", lab, name)
    yield lab_up(lab, 1, offline)
    yield deploy("deploy over both GPUs", BOTH, name, PROVED)
    yield Step("GPUs inside", rackwright(*ssh, INSIDE.replace("NAMES", "llm")), says="GPU 1: ")
    yield Step("what NCCL said", rackwright(*ssh, CARRIED))
    yield Step("drift over both GPUs", rackwright("drift", BOTH, "--limit", name))
    yield deploy("deploy two endpoints", EACH, name, PROVED)
    yield Step("GPUs inside each", rackwright(*ssh, INSIDE.replace("NAMES", "eagle plain")), says="GPU 0: ")
    yield deploy("deploy two endpoints again", EACH, name, "")
    yield Step("status of two endpoints", rackwright("status", EACH, "--limit", name), says="plain")
    yield Step("hardware record of two endpoints", rackwright("report", "--hardware"), says=".hardware.md")
    yield teardown(EACH, name, "teardown of two endpoints")
    yield Step("lab down", rackwright("lab", "down", "--id", lab))


def _refused(name: str) -> Iterator[Step]:
    for title, (revision, status, says) in REFUSED.items():
        draft = data(draft={**EAGLE3_DRAFT, "revision": revision})
        words = rollout(INVENTORY, "--limit", name, *draft)
        yield Step(f"{title} is refused", words, right=(status,), seconds=300, says=says)
    yield chat(INVENTORY, name, "chat after the refusals")


def deploy(title: str, inventory: str, name: str, says: str, *more: str) -> Step:
    """Deploy one host."""
    words = pyinfra(inventory, "deploy.py", "-y", "--limit", name, *more)
    return Step(title, words, seconds=480, says=says)


def chat(inventory: str, name: str, title: str) -> Step:
    """Ask one host."""
    return Step(title, rackwright("chat", inventory, "--limit", name, "--", QUESTION), says="Paris")


def teardown(inventory: str, name: str, title: str) -> Step:
    """Remove everything from one host."""
    return Step(title, rackwright("teardown", inventory, "--limit", name, "-y", "--purge"))
