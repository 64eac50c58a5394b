"""The GPUs that this container sees, asked of nvidia-smi as a person would ask."""

from __future__ import annotations

import re
import shutil
import subprocess

_GPU_LINE = re.compile(r"^GPU \d+:", re.MULTILINE)

# Backends of the MoE layers that a compute capability cannot run, with the text the engine dies with.
MOE_UNFIT: dict[tuple[str, str], str] = {
    ("9.0", "TRTLLM"): "TRTLLMGenFusedMoE does not support SM90, requires 10.x",
    ("12.0", "TRTLLM"): "TRTLLMGenFusedMoE does not support SM120, requires 10.x",
    ("12.1", "TRTLLM"): "TRTLLMGenFusedMoE does not support SM121, requires 10.x",
    ("12.0", "TRITON"): "Triton MoE kernels: PTX codegen error for sm_120",
    ("12.1", "TRITON"): "Triton MoE kernels: PTX codegen error for sm_121",
}


def _ask(*arguments: str) -> str:
    if shutil.which("nvidia-smi") is None:
        return ""
    done = subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, timeout=30, check=False)
    return done.stdout if done.returncode == 0 else ""


def count() -> int:
    """Return how many GPUs are visible; 0 when nvidia-smi is missing or fails."""
    return len(_GPU_LINE.findall(_ask("-L")))


def compute_capability() -> str:
    """Return the first GPU's compute capability such as "10.0", or "" when it is not reported."""
    lines = _ask("--query-gpu=compute_cap", "--format=csv,noheader").split()
    return lines[0] if lines and re.fullmatch(r"\d+\.\d", lines[0]) else ""
