"""A host's GPUs and their driver, as nvidia-smi names them. Reads only."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.adapter.run.session import Connected
from rackwright.plan.change import Shell
from rackwright.remote.commands import command_of, remote
from rackwright.remote.errors import StepFailedError

SECONDS = 60
SCRIPT = "nvidia-smi --query-gpu=name,driver_version --format=csv,noheader"


@dataclass(frozen=True)
class GpuFacts:
    """Product names, one a GPU, and the driver's version; empty where nvidia-smi does not answer."""

    products: tuple[str, ...] = ()
    driver: str = ""


def gpu_facts(one: Connected) -> GpuFacts:
    """Return the facts of a connected host."""
    try:
        ok, output = remote(one.host, command_of(Shell(SCRIPT, timeout=SECONDS)), timeout=SECONDS + 10, quiet=True)
    except (StepFailedError, TimeoutError):
        return GpuFacts()
    return parse_gpu_facts(output.stdout_lines if ok else ())


def parse_gpu_facts(lines: list[str] | tuple[str, ...]) -> GpuFacts:
    """Return what the rows say, one a GPU."""
    rows = [[field.strip() for field in row.rsplit(",", 1)] for row in lines if row.count(",")]
    return GpuFacts(tuple(row[0] for row in rows), rows[0][1] if rows else "")
