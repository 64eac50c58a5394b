"""The story of a real SGLang on a GPU, in a host's container: without a draft, then with a real EAGLE3 draft."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright_lab.real.builds import EAGLE3_DRAFT
from rackwright_lab.real.sglang import EAGLE3
from scripts.real_gpu.story import QUESTION, Step, data, lab_up, pyinfra, rackwright, rollout

INVENTORY = "inventory/lab_gpu_sglang.py"
JOURNAL = "sudo journalctl --no-pager --lines 600 --output cat --unit rackwright-llm"
METRICS = "curl -sS http://127.0.0.1:8000/metrics | grep -E '^sglang:(spec|generation_tokens|num_)'"


def steps(lab: str, offline: bool, number: int = 1) -> Iterator[Step]:
    """Every step on one host, in order, from a lab that boots to one that ends."""
    yield lab_up(lab, 1, offline, engine="sglang")
    yield from _on_host(f"{lab}-bare{number}", lab)
    yield Step("lab down", rackwright("lab", "down", "--id", lab))


def _on_host(name: str, lab: str) -> Iterator[Step]:
    ssh = ("lab", "ssh", "--id", lab, name)
    deploy = pyinfra(INVENTORY, "deploy.py", "-y", "--limit", name)
    yield Step("deploy of SGLang", deploy, seconds=900, says="proved: a chat answer")
    yield Step("chat with SGLang", rackwright("chat", INVENTORY, "--limit", name, "--", QUESTION), says="Paris")
    yield Step("journal of SGLang", rackwright(*ssh, JOURNAL))
    drafting = rollout(INVENTORY, "--limit", name, *data(draft=EAGLE3_DRAFT, engine=EAGLE3))
    yield Step("SGLang drafts by EAGLE3", drafting, seconds=900, says="tokens a step")
    yield Step("drafts as SGLang counts them", rackwright(*ssh, METRICS), says="sglang:")
    yield Step("journal of SGLang that drafts", rackwright(*ssh, JOURNAL))
    yield Step("hardware record of SGLang", rackwright("report", "--hardware"), says=".hardware.md")
    yield Step("teardown of SGLang", rackwright("teardown", INVENTORY, "--limit", name, "-y", "--purge"))
