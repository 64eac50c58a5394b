"""This machine's own GPUs for lab hosts: found or refused with the reason, laid into a layer, granted to containers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rackwright_lab import lab
from rackwright_lab.gpu import host
from rackwright_lab.machine import devices
from rackwright_lab.machine.shell import LabError

UUID = "GPU-11111111-2222-3333-4444-555555555555"
INFORMATION = f"Model: \t\t NVIDIA H200\nGPU UUID: \t {UUID}\nBus Location: \t 0000:00:06.0\nDevice Minor: \t 0\n"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Make a folder with what a machine with one GPU has in /dev, /proc and its driver's folder."""
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
    with pytest.raises(LabError, match=r"/nvidia0.*--gpus host"):
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


NODES = [Path(f"/dev/nvidia{number}") for number in range(8)]


def test_hosts_share_the_gpus_evenly_in_their_order_and_one_host_gets_all() -> None:
    assert host.share(NODES[:2], 2) == [(NODES[0],), (NODES[1],)]
    assert host.share(NODES, 2) == [tuple(NODES[:4]), tuple(NODES[4:])]
    assert host.share(NODES, 1) == [tuple(NODES)]


@pytest.mark.parametrize(
    ("gpus", "hosts", "message"),
    [
        (1, 2, "1 GPU of this machine cannot be shared evenly among 2 hosts: --hosts takes 1"),
        (8, 3, "8 GPUs of this machine cannot be shared evenly among 3 hosts: --hosts takes 1 or 2 or 4 or 8"),
    ],
)
def test_gpus_that_do_not_go_evenly_onto_the_hosts_are_refused(gpus: int, hosts: int, message: str) -> None:
    with pytest.raises(LabError, match=f"^{message}$"):
        host.share(NODES[:gpus], hosts)


@pytest.fixture
def two_gpus(machine: Path) -> host.HostGpus:
    """Add a second GPU to the machine."""
    (machine / "dev/nvidia1").touch()
    (machine / "proc/gpus/0000:00:07.0").mkdir()
    other = INFORMATION.replace(UUID, "GPU-2").replace("Minor: \t 0", "Minor: \t 1").replace("06.0", "07.0")
    (machine / "proc/gpus/0000:00:07.0/information").write_text(other)
    return found(machine)


def test_each_host_of_a_lab_has_its_own_gpu_and_what_all_need_and_is_denied_the_others(
    two_gpus: host.HostGpus, machine: Path
) -> None:
    rows: list[dict[str, Any]] = [{"name": "a"}, {"name": "b"}]
    lab._hand_out(two_gpus, rows)
    dev, control = f"{machine}/dev", ["nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap1"]
    for row, granted, other in zip(rows, ("nvidia0", "nvidia1"), ("nvidia1", "nvidia0"), strict=True):
        assert row["devices"] == [f"{dev}/{name}" for name in (granted, *control)]
        assert row["denied"] == [f"{dev}/{other}"]
    lab._hand_out(two_gpus, rows)


def test_a_host_that_is_there_keeps_its_gpus(two_gpus: host.HostGpus) -> None:
    rows: list[dict[str, Any]] = [{"name": "a"}]
    lab._hand_out(two_gpus, rows)
    assert rows[0]["denied"] == []
    with pytest.raises(LabError, match=r"^a .* among 2 hosts: "):
        lab._hand_out(two_gpus, [*rows, {"name": "b"}])


@pytest.mark.usefixtures("two_gpus")
def test_a_host_sees_only_its_own_gpus_in_proc_and_makes_no_nodes(machine: Path, tmp_path: Path) -> None:
    proc, root = machine / "proc", tmp_path / "root"
    (proc / "version").write_text("NVRM version: 580.159.04\n")
    (proc / "params").write_text("ModifyDeviceFiles: 1\nDeviceFileMode: 438\n")
    host.write_own(root, [machine / "dev/nvidia1", machine / "dev/nvidiactl"], proc)
    folder = root / host.OWN_PROC
    assert (folder / "params").read_text() == "ModifyDeviceFiles: 0\nDeviceFileMode: 438\n"
    assert (folder / "version").read_text() == "NVRM version: 580.159.04\n"
    assert [path.parent.name for path in folder.glob("gpus/*/information")] == ["0000:00:07.0"]
    unit = root / f"etc/systemd/system/{host.UNIT}.d/own.conf"
    assert unit.read_text() == f"[Service]\nExecStart=/bin/mount --bind /{host.OWN_PROC} /proc/driver/nvidia\n"


def answer(text: bytes, major: int, minor: int) -> int:
    """Return the kernel's answer for a device, by the four instructions that the program is made of."""
    lines = [text[at : at + 8] for at in range(0, len(text), 8)]
    registers, context, at = [0] * 4, {4: major, 8: minor}, 0
    while True:
        code, target, skip, value = (
            lines[at][0],
            lines[at][1] & 15,
            *(int.from_bytes(lines[at][since:until], "little", signed=True) for since, until in ((2, 4), (4, 8))),
        )
        at += 1
        if code == devices.EXIT:
            return registers[0]
        if code == devices.LOAD:
            registers[target] = context[skip]
        elif code == devices.SET:
            registers[target] = value
        elif registers[target] != value:
            at += skip


def test_the_kernels_program_denies_the_given_devices_and_no_other() -> None:
    text = devices.program([(195, 1), (195, 300), (7, 0)])
    nodes = [(195, 0), (195, 1), (195, 300), (7, 0), (7, 1), (1, 5)]
    assert [answer(text, *device) for device in nodes] == [1, 0, 0, 0, 1, 1]
    assert answer(devices.program([]), 195, 0) == 1
