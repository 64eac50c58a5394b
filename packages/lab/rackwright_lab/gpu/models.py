"""What the lab's hosts pose as: the real H200 reading, and others derived from it, tag by tag."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DRIVER = "580.159.04"
CUDA = "13.0"
FIXTURES = Path(__file__).parent / "fixtures"

# In every model these differ from GPU to GPU or by a switch of the host; nvidia-smi fills them in.
FILLED_IN = {
    "gsp_firmware_version": "@GSP@",
    "serial": "@SERIAL@",
    "uuid": "@UUID@",
    "minor_number": "@INDEX@",
    "pci_bus_id": "@BUS@",
    "current_mig": "@MIG@",
    "pending_mig": "@MIG@",
    "dram_correctable": "@COR@",
    "dram_uncorrectable": "@UNC@",
    "remapped_row_pending": "@PENDING@",
    "remapped_row_failure": "@FAILURE@",
}
FILLED_IN_ONCE = {"fb_memory_usage": {"used": "@USED@ MiB", "free": "@FREE@ MiB"}}
FABRIC = {"state": "@FABRIC_STATE@", "status": "@FABRIC_STATUS@"}


@dataclass(frozen=True)
class Model:
    """One GPU model: `tags` and `sections` are what its XML changes of the H200's (empty for the real one)."""

    product: str
    compute_cap: str
    memory_mib: int
    reserved_mib: int
    power_w: str
    clock_mhz: int
    memory_clock_mhz: int
    fabric: bool
    tags: Mapping[str, str] = field(default_factory=dict)
    sections: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


# Real: fixtures/h200.xml, query.csv.
H200 = Model("NVIDIA H200", "9.0", 143771, 616, "700.00", 1980, 3201, fabric=False)
# Synthetic. Figures as in NVIDIA's data sheets; a DGX B200's fabric is registered, as nvidia-smi's manual words it.
B200 = Model(
    "NVIDIA B200",
    "10.0",
    183359,
    848,
    "1000.00",
    1965,
    3996,
    fabric=True,
    tags={
        "product_name": "NVIDIA B200",
        "product_architecture": "Blackwell",
        "pci_device_id": "290110DE",
        "vbios_version": "97.00.88.00.0F",
        "addressing_mode": "None",
        "current_power_limit": "1000.00 W",
        "requested_power_limit": "1000.00 W",
        "default_power_limit": "1000.00 W",
        "max_power_limit": "1000.00 W",
    },
    sections={
        "fb_memory_usage": {"total": "183359 MiB", "reserved": "848 MiB"},
        "fabric": {
            **FABRIC,
            "cliqueId": "0",
            "clusterUuid": "00000000-0000-0000-0000-000000000000",
            "summary": "Healthy",
            "bandwidth": "Full",
            "route_recovery_in_progress": "False",
            "route_unhealthy": "False",
            "access_timeout_recovery": "False",
            "incorrect_configuration": "None",
        },
    },
)
MODELS = {"h200": H200, "b200": B200}


def gpu_xml(model: Model) -> str:
    """Return the `<gpu>` element of a model with @NAMES@ where nvidia-smi fills in, and @PROCESSES@ alone on a line."""
    whole = (FIXTURES / "h200.xml").read_text()
    gpu = whole[whole.index("\t<gpu id=") : whole.index("\t</gpu>") + len("\t</gpu>\n")]
    gpu = re.sub(r'<gpu id="[^"]*">', '<gpu id="@BUS@">', gpu)
    for tag, value in {**model.tags, **FILLED_IN}.items():
        gpu = _set(gpu, tag, value)
    sections: dict[str, Mapping[str, str]] = {**model.sections}
    for name, tags in FILLED_IN_ONCE.items():
        sections[name] = {**sections.get(name, {}), **tags}
    for name, changes in sections.items():
        gpu = _set_section(gpu, name, changes)
    return gpu.replace("\t\t<processes>\n", "\t\t<processes>\n@PROCESSES@\n")


def _set_section(gpu: str, name: str, tags: Mapping[str, str]) -> str:
    start, end = gpu.index(f"<{name}>"), gpu.index(f"</{name}>")
    section = gpu[start:end]
    for tag, value in tags.items():
        section = _set(section, tag, value)
    return gpu[:start] + section + gpu[end:]


def _set(text: str, tag: str, value: str) -> str:
    changed, count = re.subn(
        rf"<{tag}>(?!N/A</(?:default|max|current|requested)_power)[^<]*</", f"<{tag}>{value}</", text
    )
    if not count:
        raise KeyError(f"the H200 reading has no <{tag}>")
    return changed


def model_settings(model: Model) -> str:
    """Return the model as shell assignments, for nvidia-smi."""
    values = {
        "NAME": model.product,
        "COMPUTE_CAP": model.compute_cap,
        "MEMORY_TOTAL": model.memory_mib,
        "MEMORY_RESERVED": model.reserved_mib,
        "POWER_LIMIT": model.power_w,
        "CLOCK": model.clock_mhz,
        "CLOCK_MEMORY": model.memory_clock_mhz,
        "VBIOS": model.tags.get("vbios_version", "96.00.A5.00.1A"),
        "FABRIC_CLIQUE": "0" if model.fabric else "[N/A]",
        "FABRIC_CLUSTER": "00000000-0000-0000-0000-000000000000" if model.fabric else "[N/A]",
        "CUDA": CUDA,
    }
    return "".join(f'{name}="{value}"\n' for name, value in values.items())


def table_frame() -> str:
    """Return the lines of nvidia-smi's table around its rows, as the real one prints them."""
    lines = (FIXTURES / "smi.txt").read_text().splitlines(keepends=True)
    return "".join(lines[3:8] + lines[14:18])
