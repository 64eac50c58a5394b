"""The builds of vLLM for the CPU that a lab can offer: one value a version, and all that differs between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackwright_lab.machine.shell import LabError

HERE = Path(__file__).parent
MODEL, DRAFT = "rackwright-lab/tiny-chat", "rackwright-lab/tiny-eagle3"
GPT_OSS, GPT_OSS_DRAFT = "rackwright-lab/tiny-gpt-oss", "rackwright-lab/tiny-gpt-oss-eagle3"
"""Not in the lab's hub but where `rackwright lab up --models` brings them (gpt_oss.py beside this)."""
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "PYTHONUNBUFFERED": "1",
    "NVIDIA_VISIBLE_DEVICES": "all",
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "VLLM_NO_USAGE_STATS": "1",
    # Otherwise the first answer waits for a compiler, which would have to be in the image: a minute on a busy core.
    "TORCHDYNAMO_DISABLE": "1",
}
"""What the CPU build wants to know and no user of a GPU would say: 1 GiB of cache, and one thread a server."""
NEVER_LOADED = (
    "bin", "nvidia/*/include", "nvidia/cudnn/lib/libcudnn_*", "nvidia/*/lib/libcusolver*", "nvidia/*/lib/*.alt.*",
    "nvidia/*/lib/libnvperf*", "torch/include", "torch/lib/libtorch_cuda_linalg.so",
)  # fmt: skip
"""CUDA's parts that torch loads on a GPU alone: the others are linked to it and must be there. 1 to 1.7 GB less."""
ENDPOINT: dict[str, Any] = {
    "engine_kind": "vllm",
    "model": {"repository": MODEL, "revision": "v1", "mount": "/config/models/tiny-chat"},
    "harmony": False,
    "gpus": [0],
    "load_timeout": 900,
}
"""Settings of an endpoint that serves the small model, whichever vLLM does."""
ENGINE: dict[str, Any] = {
    "max-model-len": 1024,
    "enforce-eager": True,
    "enable-auto-tool-choice": True,
    "tool-call-parser": "hermes",
}
NGRAM = '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3, "prompt_lookup_min": 1}'
"""Drafts by the prompt's own words: they need no second model."""
EAGLE3_DRAFT = {"repository": DRAFT, "revision": "v1", "mount": "/config/models/tiny-eagle3"}
EAGLE3: dict[str, Any] = {
    "speculative-config": '{"method": "eagle3", "model": "/config/models/tiny-eagle3", "num_speculative_tokens": 3}',
    "override-generation-config": '{"temperature": 0}',
}
"""Options that draft by EAGLE3_DRAFT, greedily unless a request says otherwise: this build samples drafts wrongly."""


@dataclass(frozen=True)
class Build:
    """One version. Its packages are locked in `locked`, from `vllm-VERSION.in` and `vllm-VERSION-overrides.txt`."""

    version: str
    engine: Mapping[str, Any] = field(default_factory=lambda: ENGINE)
    """Options of the endpoint that serves the small model."""
    environment: Mapping[str, str] = field(default_factory=lambda: ENVIRONMENT)
    never_loaded: tuple[str, ...] = NEVER_LOADED
    drafts: bool = True
    """Whether it drafts on a CPU."""

    @property
    def title(self) -> str:
        """For people."""
        return f"vLLM {self.version}, built for the CPU"

    @property
    def image(self) -> str:
        """Beside the published tag, so that no other lab over the same cache pulls 2 GB by mistake."""
        return f"vllm/vllm-openai:v{self.version}-cpu"

    @property
    def locked(self) -> Path:
        """Every package with its hashes (`make lock`)."""
        return HERE / f"vllm-{self.version}.txt"

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of an endpoint that serves the small model with it."""
        return {**ENDPOINT, "image": self.image, "engine": dict(self.engine)}


OLDEST = Build("0.14.1", drafts=False)
"""The version that the lab's stand-in was made after. On a CPU it says `spec decode is not supported`."""
NEWEST = Build("0.32.0")
"""The newest that is built for the CPU."""
DEFAULT = OLDEST.version
BUILDS = {build.version: build for build in (OLDEST, NEWEST)}


def named(version: str) -> Build:
    """Return the build of a version. Raises LabError, with all builds that exist, when it is missing."""
    if version not in BUILDS:
        raise LabError(f"no vLLM {version} is built for the CPU here; there are {' and '.join(BUILDS)}")
    return BUILDS[version]
