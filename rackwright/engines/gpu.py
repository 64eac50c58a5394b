"""What is known of GPUs by their product names, and of a host's by its settings."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.engines.data import table
from rackwright.settings.model import Hardware


@dataclass(frozen=True)
class GpuType:
    """A GPU product: memory in MiB and compute capability."""

    name: str
    memory_mib: int
    compute_capability: str


def gpu_type(product: str) -> GpuType | None:
    """The product that a name means (`NVIDIA GB200`, `rtx pro 6000`); None for one that is not known."""
    known = [GpuType(**row) for row in table("gpus") if _plain(row["name"]) in _plain(product)]
    return max(known, key=lambda gpu: len(gpu.name), default=None)


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())


def gpu_types(hardware: Hardware) -> list[GpuType]:
    """The products that a host may have, as far as they are known."""
    return [gpu for gpu in map(gpu_type, hardware.gpu_models) if gpu]


def capabilities(hardware: Hardware) -> list[str]:
    """Compute capabilities that a host may have: the stated ones, or else those of its products."""
    return list(hardware.compute_capability or {gpu.compute_capability: None for gpu in gpu_types(hardware)})
