"""GPUs: what NVIDIA's driver and nvidia-smi say of them, and who uses them. Read only; preflight judges it."""

from rackwright.concerns.gpus.concern import (
    GPUS,
    Gpu,
    GpuProcess,
    SeenGpus,
    parse,
)

__all__ = [
    "GPUS",
    "Gpu",
    "GpuProcess",
    "SeenGpus",
    "parse",
]
