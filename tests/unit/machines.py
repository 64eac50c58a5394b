"""Hosts for the pure parts: readings of machines, real and synthetic, and cases that preflight judges."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from rackwright.concerns.catalog import ALL
from rackwright.concerns.deploy_steps import Declared
from rackwright.concerns.docker import Package, SeenDocker
from rackwright.concerns.docker.apt import OperatingSystem
from rackwright.concerns.gpus import SeenGpus, parse
from rackwright.concerns.preflight.row import Case, Disk, SeenMachine
from rackwright.settings.host_settings import HostSettings
from rackwright_engines.quick_yaml import load_yaml

EVERYTHING = Declared(tuple(concern.name for concern in ALL))
"""A deploy.py that calls every step."""
FIXTURES = Path(__file__).parents[1] / "fixtures" / "nvidia-smi"
DRIVER = "580.159.04"
NVRM = "NVRM version: NVIDIA UNIX Open Kernel Module for {architecture}  {version}  Release Build  (dvs-builder@host)\n"
BOOKWORM = OperatingSystem("debian", (), "bookworm", "12", "amd64")
TERABYTE = 10**12


@cache
def synthetic() -> Mapping[str, Any]:
    """Return the machines of synthetic.yaml."""
    found: Mapping[str, Any] = load_yaml((FIXTURES / "synthetic.yaml").read_text())
    return found


def gpu_output(machine: str = "b200", processes: str = "", **tags: str) -> str:
    """Print the section `gpus` of a machine of synthetic.yaml, or of the real `h200`.

    tags: further changes by path, with `__` for `/`, of GPU 0 alone. processes: lines after the GPUs' own.
    """
    row = {"gpus": 1, "architecture": "x86_64", "compute_cap": "9.0", "tags": {}} | synthetic().get(machine, {})
    root = ElementTree.fromstring((FIXTURES / "h200" / "smi.xml").read_text())
    gpu = root.find("gpu")
    assert gpu is not None
    root.remove(gpu)
    table = []
    for index in range(row["gpus"]):
        copy = ElementTree.fromstring(ElementTree.tostring(gpu))
        uuid = f"GPU-00000000-0000-0000-0000-{index + 1:012d}"
        overrides = {path.replace("__", "/"): value for path, value in tags.items()} if index == 0 else {}
        for path, value in {**row["tags"], "uuid": uuid, "minor_number": str(index), **overrides}.items():
            _set(copy, path, value)
        root.append(copy)
        table.append(f"gpu {uuid}, {index}, {row['compute_cap']}")
    module = NVRM.format(architecture=row["architecture"], version=DRIVER)
    return "\n".join(
        [f"module {_b64(module)}", "status 0", f"xml {packed(ElementTree.tostring(root))}", *table, processes]
    )


def _set(gpu: ElementTree.Element, path: str, value: str) -> None:
    if path == "process":
        _add_process(gpu, *value.split(","))
        return
    node = gpu.find(path)
    assert node is not None, f"the real reading has no {path}"
    node.text = value


def _add_process(gpu: ElementTree.Element, pid: str, kind: str, name: str, memory: str) -> None:
    processes = gpu.find("processes")
    assert processes is not None
    entry = ElementTree.SubElement(processes, "process_info")
    for tag, text in (("pid", pid), ("type", kind), ("process_name", name), ("used_memory", memory)):
        ElementTree.SubElement(entry, tag).text = text


def packed(xml: bytes) -> str:
    """XML as it travels."""
    return base64.b64encode(gzip.compress(xml, mtime=0)).decode()


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@cache
def gpus(machine: str = "b200", **tags: str) -> SeenGpus:
    """Return the parsed GPUs of a machine."""
    return parse(gpu_output(machine, **tags))


def settings(**values: Any) -> HostSettings:
    """Return a host's settings with one endpoint of gpt-oss."""
    model = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
    return HostSettings.model_validate({"model": model, "allow_from": ["10.0.0.0/8"], **values})


DGX_B200 = {
    "machine": "DGX B200",
    "architecture": "x86_64",
    "gpu_models": ["B200"],
    "gpu_count": 8,
    "compute_capability": ["10.0"],
    "driver_minimum": "575",
    "fabric_manager": True,
}


def machine(architecture: str = "x86_64", **values: str) -> SeenMachine:
    """Return a healthy machine with Docker: values as the section `preflight` prints them."""
    healthy = {
        "architecture": architecture,
        "init": "systemd",
        "uid": "0",
        "MemTotal": str(2 * 10**9),
        "MemAvailable": str(19 * 10**8),
        "synchronized": "yes",
        "fabric.LoadState": "loaded",
        "fabric.ActiveState": "active",
        "fabric.version": DRIVER,
        "toolkit": "1.18.1",
        "memlock": "unlimited",
        "nofile": "1048576",
    }
    paths = ("/srv/models", "/srv/encodings", "/var/lib/rackwright", "/var/lib/docker", "/var/lib/containerd")
    disks = tuple(Disk(path, TERABYTE, 10**6, "ext4", "/dev/sda1", "/") for path in paths)
    return SeenMachine({**healthy, **values}, disks, toolkit_config='[nvidia-container-runtime]\nmode = "auto"\n')


def docker(**values: Any) -> SeenDocker:
    """Return a host with Docker and the toolkit, all as it should be."""
    reading = SeenDocker(
        system=BOOKWORM,
        daemon="up",
        version=(28, 0, 1),
        has=frozenset({"apt", "curl", "iptables", "nft", "toolkit"}),
        packages={"ca-certificates": Package(False, True, "2023")},
        enabled=True,
        load_state="loaded",
        info={"ServerVersion": "28.0.1", "DockerRootDir": "/var/lib/docker", "Runtimes": {"runc": {}, "nvidia": {}}},
        files={"/etc/docker/daemon.json": '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'},
    )
    return replace(reading, **values)


def case(**values: Any) -> Case:
    """Return a healthy DGX B200."""
    healthy = Case(settings(hardware=DGX_B200), machine(), gpus(), docker())
    return replace(healthy, **values)
