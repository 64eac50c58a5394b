"""Facts of GPUs by their product names, and of a host's by its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rackwright_engines.data import table
from rackwright_engines.serving import GpuHost


@dataclass(frozen=True)
class GpuType:
    """A GPU product: memory in MiB, compute capability, other names that people have for it."""

    name: str
    memory_mib: int
    compute_capability: str
    aliases: tuple[str, ...] = ()
    unified: bool = False
    """True where the GPU's memory is the host's: containers, page cache and system live in it too."""
    nvidia_smi: tuple[str, ...] = ()
    """Whole names by which nvidia-smi calls it, where its capability need not be asked for."""


def gpu_type(product: str) -> GpuType | None:
    """Return the product that a name means (`NVIDIA GB200`, `rtx pro 6000`, `DGX Spark`); None for an unknown one."""
    matches = [gpu for gpu in _known() if any(_plain(name) in _plain(product) for name in (gpu.name, *gpu.aliases))]
    return max(matches, key=lambda gpu: len(gpu.name), default=None)


def _known() -> list[GpuType]:
    return [_from_row(row) for row in table("gpus")]


def _from_row(row: Mapping[str, Any]) -> GpuType:
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    return GpuType(**values)


def capability_by_name() -> dict[str, str]:
    """Return the compute capability by nvidia-smi's whole name of a GPU."""
    return {name: gpu.compute_capability for gpu in _known() for name in gpu.nvidia_smi}


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())


def gpu_types(hardware: GpuHost) -> list[GpuType]:
    """Return the products that a host may have, as far as they are in the data."""
    return [gpu for gpu in map(gpu_type, hardware.gpu_models) if gpu]


def capabilities(hardware: GpuHost) -> list[str]:
    """Return the compute capabilities that a host may have: the stated ones, or else those of its products."""
    return list(hardware.compute_capability or {gpu.compute_capability: None for gpu in gpu_types(hardware)})
