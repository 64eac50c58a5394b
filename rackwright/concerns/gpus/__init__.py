"""GPUs: the data of NVIDIA's driver and nvidia-smi, and the processes that use them. Read only; preflight judges it."""

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
