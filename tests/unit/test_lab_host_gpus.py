"""This machine's own GPUs for lab hosts: found or refused with the reason, laid into a layer, granted to containers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackwright_lab.gpu import host
from rackwright_lab.machine.shell import LabError

UUID = "GPU-11111111-2222-3333-4444-555555555555"
INFORMATION = f"Model: \t\t NVIDIA H200\nGPU UUID: \t {UUID}\nBus Location: \t 0000:00:06.0\nDevice Minor: \t 0\n"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with what a machine with one GPU has in /dev, /proc and its driver's folder."""
    for name in ("dev/nvidia-caps", "proc/gpus/0000:00:06.0", "driver/lib64", "driver/bin"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap1"):
        (tmp_path / "dev" / name).touch()
    (tmp_path / "proc/gpus/0000:00:06.0/information").write_text(INFORMATION)
    libraries = tmp_path / "driver/lib64"
    for name in ("libnvidia-ml", "libcuda"):
        (libraries / f"{name}.so.580.159.04").write_text(name)
        (libraries / f"{name}.so.1").symlink_to(f"{name}.so.580.159.04")
    (libraries / "libc.so.6").touch()
    program = tmp_path / "driver/bin/nvidia-smi"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return tmp_path


def found(machine: Path) -> host.HostGpus:
    return host.find(machine / "dev", machine / "proc", [str(machine / "driver/lib64")])


def test_a_machine_with_a_gpu_is_read(machine: Path) -> None:
    gpus = found(machine)
    assert gpus.version == "580.159.04"
    assert gpus.gpus == ((UUID, machine / "dev/nvidia0"),)
    assert [path.name for path in gpus.control] == ["nvidiactl", "nvidia-uvm", "nvidia-cap1"]
    assert [path.name for path in gpus.libraries] == [
        "libcuda.so.1", "libcuda.so.580.159.04", "libnvidia-ml.so.1", "libnvidia-ml.so.580.159.04",
    ]  # fmt: skip
    assert gpus.programs[0] == machine / "driver/bin/nvidia-smi"


def test_a_machine_without_gpus_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"no NVIDIA GPU that works: there is no .*/nvidia0.*leave out --gpus host"):
        host.find(tmp_path)


@pytest.mark.parametrize(
    ("gone", "reason"),
    [
        ("driver/lib64/libnvidia-ml.so.1", "no libnvidia-ml.so.1 in .*: install its driver"),
        ("proc/gpus/0000:00:06.0/information", "names no GPU that has a device here"),
    ],
)
def test_half_a_driver_is_refused_with_what_is_missing(machine: Path, gone: str, reason: str) -> None:
    (machine / gone).unlink()
    with pytest.raises(LabError, match=reason):
        found(machine)


def test_a_layer_has_the_driver_and_says_what_containers_get(machine: Path, tmp_path: Path) -> None:
    layer = tmp_path / "layer"
    host.write_common(layer, found(machine))
    assert (layer / "usr/local/nvidia/lib64/libcuda.so.1").read_text() == "libcuda"
    assert (layer / "usr/bin/nvidia-smi").readlink() == Path("/usr/local/nvidia/bin/nvidia-smi")
    assert (layer / "etc/ld.so.conf.d/nvidia.conf").read_text() == "/usr/local/nvidia/lib64\n"
    granted = json.loads((layer / host.GRANTS).read_text())
    assert granted["gpus"][UUID]["path"] == str(machine / "dev/nvidia0")
    assert len(granted["control"]) == 3
    assert {mount["destination"] for mount in granted["mounts"]} == {"/usr/local/nvidia", "/usr/bin/nvidia-smi"}
