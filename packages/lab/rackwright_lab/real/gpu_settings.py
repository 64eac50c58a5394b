"""Settings of endpoints on this machine's GPUs that draft by a real EAGLE3 head: one GPU, two, two hosts, gpt-oss."""

from __future__ import annotations

from typing import Any

from rackwright_lab.real import harmony
from rackwright_lab.real.builds import EAGLE3_DRAFT, GPT_OSS, GPT_OSS_DRAFT
from rackwright_lab.real.gpu import SETTINGS, WITHOUT_MULTICAST


def _drafting(draft: dict[str, str]) -> str:
    return f'{{"method": "eagle3", "model": "{draft["mount"]}", "num_speculative_tokens": 3}}'


EAGLE3: dict[str, Any] = {
    **SETTINGS,
    "draft": EAGLE3_DRAFT,
    "engine": {**SETTINGS["engine"], "speculative-config": _drafting(EAGLE3_DRAFT), "gpu-memory-utilization": 0.08},
    "gate": {"level": "full"},
    "watch": {"act": "restart"},
}
"""An endpoint on the first GPU that drafts by EAGLE3, and is restarted where it hangs."""
OWN_DRAFT = {"repository": GPT_OSS_DRAFT, "revision": "v1", "mount": "/config/models/tiny-gpt-oss-eagle3"}
"""The draft of the small gpt-oss."""
GPT_OSS_EAGLE3: dict[str, Any] = {
    **EAGLE3,
    "harmony": True,
    "model": {"repository": GPT_OSS, "revision": "v1", "mount": "/config/models/tiny-gpt-oss"},
    "draft": OWN_DRAFT,
    "engine": {
        **EAGLE3["engine"],
        "speculative-config": _drafting(OWN_DRAFT),
        "tool-call-parser": "openai",
        "gpu-memory-utilization": 0.1,
    },
    "environment": {**EAGLE3["environment"], "VLLM_SYSTEM_START_DATE": harmony.DATE},
}
"""The same with a small gpt-oss as its model (gpt_oss.py beside this, `lab up --models`)."""


def both_gpus() -> dict[str, Any]:
    """Return settings of that endpoint over the first two GPUs of its host."""
    engine = {**EAGLE3["engine"], "tensor-parallel-size": 2, "gpu-memory-utilization": 0.1}
    return {**EAGLE3, "gpus": [0, 1], "engine": engine, "environment": _without_multicast()}


def a_gpu_each() -> dict[str, Any]:
    """Return settings of two endpoints of a host with a GPU each: one drafts by EAGLE3, one by the prompt's words."""
    eagle = {key: EAGLE3[key] for key in ("draft", "engine")}
    common = {key: value for key, value in EAGLE3.items() if key not in ("draft", "engine", "gpus")}
    plain = {"gpus": [1], "port": 8001, "engine": SETTINGS["engine"]}
    return {**common, "endpoints": {"eagle": {"gpus": [0], "port": 8000, **eagle}, "plain": plain}}


def shared(hosts: int) -> dict[str, Any]:
    """Return settings of an endpoint that so many hosts serve together, tensor parallel over the first GPU of each."""
    engine = {**EAGLE3["engine"], "tensor-parallel-size": hosts, "gpu-memory-utilization": 0.1}
    return {**EAGLE3, "hosts": hosts, "network": "host", "engine": engine, "environment": _without_multicast()}


def _without_multicast() -> dict[str, str]:
    return {**SETTINGS["environment"], **WITHOUT_MULTICAST}
