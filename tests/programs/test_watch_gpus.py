"""The look at GPUs and ports: the real script, a reading of a real GPU, and programs that answer as the test wants."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

import rackwright_lab.gpu
from rackwright.concerns.watch.act import gpus_script

XML = Path(rackwright_lab.gpu.__file__).parent / "fixtures/h200.xml"
ONE, TWO = "GPU-11111111-aaaa", "GPU-22222222-bbbb"
PATHS = {
    "/var/lib/rackwright": "state",
    "/run/rackwright": "run",
    "/sys/class/infiniband": "infiniband",
    "/usr/local/sbin:/usr/local/bin": "bin",
}
PROGRAMS = {
    "nvidia-smi": """: >"$D/asked-now"
case $1 in
  nvlink) cat "$D/links" 2>/dev/null; exit "$(cat "$D/links-status")" ;;
  *) cat "$D/xml"; exit "$(cat "$D/status")" ;;
esac""",
    "journalctl": 'cat "$D/kernel" 2>/dev/null; echo "-- cursor: s=1"; : >"$D/kernel"',
}
XID = "NVRM: Xid (PCI:0000:1b:00): {}, pid=1, name=python3, x"
FALLEN = "NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus."


NONE: Mapping[str, str] = {}


class Host:
    """A host with two GPUs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        for name, text in PROGRAMS.items():
            (folder / "bin" / name).write_text(f"#!/bin/sh\nD={folder}\n{text}\n")
            (folder / "bin" / name).chmod(0o755)
        (folder / "links-status").write_text("0")
        (folder / "hanging").mkdir()
        (folder / "hanging/nvidia-smi").write_text("#!/bin/sh\nwhile :; do sleep 60; done\n")
        (folder / "hanging/nvidia-smi").chmod(0o755)
        self.gpus(ONE, TWO)

    def gpus(self, *uuids: str, status: int = 0, tags: Mapping[str, str] = NONE) -> None:
        """Let nvidia-smi show these; tags: values of the last one, of two tags as `volatile__dram_uncorrectable`."""
        text = XML.read_text()
        head, gpu, tail = re.fullmatch(r"(.*?)(<gpu id=.*</gpu>)(.*)", text, re.S).groups()  # type: ignore[union-attr]
        blocks = [re.sub(r"<uuid>.*</uuid>", f"<uuid>{uuid}</uuid>", gpu) for uuid in uuids]
        for path, value in tags.items():
            outer, _, tag = path.rpartition("__")
            pattern = rf"(<{outer}>.*?)<{tag}>[^<]*<" if outer else rf"()<{tag}>[^<]*<"
            blocks[-1], found = re.subn(pattern, rf"\g<1><{tag}>{value}<", blocks[-1], count=1, flags=re.S)
            assert found == 1
        (self.folder / "xml").write_text(head + "\n".join(blocks) + tail)
        (self.folder / "status").write_text(str(status))

    def kernel(self, *messages: str) -> None:
        (self.folder / "kernel").write_text("".join(f"{message}\n" for message in messages))

    def port(self, state: str) -> None:
        folder = self.folder / "infiniband/mlx5_0/ports/1"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "state").write_text(f"{state}\n")

    def boot(self) -> None:
        shutil.rmtree(self.folder / "run")

    def look(self, again: bool = True) -> dict[str, str]:
        text = gpus_script()
        for path, name in PATHS.items():
            text = text.replace(path, str(self.folder / name))
        if again:
            (self.folder / "run/watch-gpus/asked").unlink(missing_ok=True)
        run = subprocess.run(["sh"], input=text, env={}, capture_output=True, text=True, check=False)
        assert (run.returncode, run.stderr) == (0, "")
        return dict(row.split("=", 1) for row in (self.folder / "run/gpus").read_text().splitlines())

    @property
    def events(self) -> list[str]:
        found = sorted((self.folder / "state/events").glob("[0-9]*"), key=lambda path: path.stat().st_mtime_ns)
        texts = [dict(row.split("=", 1) for row in path.read_text().splitlines()) for path in found]
        return [f"{text['state']} {text['key']}" for text in texts]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    host = Host(tmp_path)
    reading = host.look()
    assert (reading["state"], reading["faults"], host.events) == ("ok", "0", [])
    return host


@pytest.mark.parametrize(
    ("message", "key"),
    [
        (XID.format(79), "gpu-kernel-79-0000-1b-00"),
        (XID.format(48), "gpu-kernel-48-0000-1b-00"),
        (FALLEN, "gpu-kernel-lost-0000-1b-00.0"),
    ],
)
def test_what_the_kernel_says_of_broken_hardware_is_reported_once_and_stays(host: Host, message: str, key: str) -> None:
    host.kernel(message, message)
    assert host.look()["state"] == "fault"
    assert host.look()["faults"] == "1"
    assert host.events == [f"firing {key}"]


def test_a_program_s_own_fault_is_none_of_the_gpu(host: Host) -> None:
    host.kernel(XID.format(13), XID.format(31), XID.format(45), XID.format(43))
    assert host.look()["state"] == "ok"


def test_a_gpu_that_is_gone_is_reported_even_after_a_boot(host: Host) -> None:
    host.boot()
    host.gpus(ONE)
    assert host.look()["faults"] == "1"
    host.gpus(ONE, TWO)
    assert host.look()["state"] == "ok"
    assert host.events == [f"firing gpu-lost-{TWO}", f"resolved gpu-lost-{TWO}"]


def test_an_exchanged_gpu_is_not_a_lost_one(host: Host) -> None:
    host.gpus(ONE, "GPU-33333333-cccc")
    assert host.look()["state"] == "ok"


@pytest.mark.parametrize(
    ("tag", "value", "faults"),
    [
        ("volatile__dram_uncorrectable", "3", "1"),
        ("volatile__sram_uncorrectable_parity", "1", "1"),
        ("volatile__dram_correctable", "999", "0"),
        ("aggregate__dram_uncorrectable", "7", "0"),
        ("remapped_row_unc", "1", "1"),
        ("remapped_row_pending", "Yes", "1"),
        ("remapped_row_corr", "1", "0"),
    ],
)
def test_errors_that_grow_in_this_boot_are_reported(host: Host, tag: str, value: str, faults: str) -> None:
    host.gpus(ONE, TWO, tags={tag: value})
    assert host.look()["faults"] == faults


def test_errors_that_were_there_are_not_growth(host: Host) -> None:
    host.boot()
    host.gpus(ONE, TWO, tags={"volatile__dram_uncorrectable": "3"})
    assert host.look()["state"] == "ok"


@pytest.mark.parametrize(
    ("reason", "faults"),
    [
        ("hw_thermal_slowdown", "1"),
        ("sw_thermal_slowdown", "1"),
        ("sw_power_cap", "0"),
        ("hw_power_brake_slowdown", "0"),
    ],
)
def test_heat_is_reported_at_the_second_look_and_a_power_cap_is_not(host: Host, reason: str, faults: str) -> None:
    host.gpus(ONE, TWO, tags={f"clocks_event_reason_{reason}": "Active"})
    assert host.look()["faults"] == "0"
    assert host.look()["faults"] == faults
    host.gpus(ONE, TWO)
    assert host.look()["state"] == "ok"


def test_a_fabric_that_is_not_completed_is_a_state(host: Host) -> None:
    host.gpus(ONE, TWO, tags={"fabric__state": "In Progress", "fabric__status": "N/A"})
    assert host.look()["faults"] == host.look()["faults"] == "1"
    host.gpus(ONE, TWO, tags={"fabric__state": "Completed", "fabric__status": "Success"})
    assert host.look()["state"] == "ok"


def test_a_port_that_was_up_once_and_is_down_is_a_state_however_old(host: Host) -> None:
    host.port("1: DOWN")
    assert host.look()["state"] == "ok"
    host.port("4: ACTIVE")
    assert host.look()["state"] == "ok"
    host.boot()
    host.port("1: DOWN")
    assert host.look()["faults"] == "1"
    host.port("4: ACTIVE")
    assert host.look()["state"] == "ok"
    assert host.events == ["firing gpu-port-mlx5_0-1", "resolved gpu-port-mlx5_0-1"]


def test_a_link_of_nvlink_that_was_up_is_a_state(host: Host) -> None:
    links = f"GPU 0: NVIDIA H200 (UUID: {ONE})\n\t Link 0: 26.562 GB/s\n\t Link 1: {{}}\n"
    for second, faults in (("26.562 GB/s", "0"), ("<inactive>", "1"), ("26.562 GB/s", "0")):
        (host.folder / "links").write_text(links.format(second))
        assert host.look()["faults"] == faults


def test_links_that_were_not_all_counted_in_time_are_none_that_are_down(host: Host) -> None:
    links = host.folder / "links"
    links.write_text(f"GPU 0: NVIDIA H200 (UUID: {ONE})\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n")
    assert host.look()["faults"] == "0"
    links.write_text(f"GPU 0: NVIDIA H200 (UUID: {ONE})\n\t Link 0: 26.562 GB/s\n")
    (host.folder / "links-status").write_text("124")
    assert host.look()["faults"] == "0"
    (host.folder / "links-status").write_text("0")
    assert host.look()["faults"] == "1"


def test_a_driver_that_does_not_answer_is_reported_and_nothing_else(host: Host) -> None:
    (host.folder / "xml").write_text("")
    (host.folder / "status").write_text("124")
    assert host.look()["faults"] == "1"
    assert host.events == ["firing gpu-driver"]


def test_between_two_readings_the_last_one_counts(host: Host) -> None:
    host.gpus(ONE)
    assert host.look(again=False)["state"] == "ok"
    assert host.look()["faults"] == "1"
    host.gpus(ONE, TWO)
    assert host.look(again=False)["faults"] == "1"


def test_a_driver_that_still_hangs_is_not_asked_again(host: Host) -> None:
    (host.folder / "status").write_text("1")
    asking = subprocess.Popen([host.folder / "hanging/nvidia-smi"])
    try:
        (host.folder / "run/watch-gpus/asking").write_text(f"{asking.pid}\n")
        (host.folder / "asked-now").unlink()
        host.look()
        assert host.look()["faults"] == "1"
        assert host.events == ["firing gpu-driver"]
        assert not (host.folder / "asked-now").exists()
    finally:
        asking.kill()
        asking.wait()
    (host.folder / "status").write_text("0")
    assert host.look()["faults"] == "0"


def test_a_fault_that_a_boot_has_ended_is_resolved(host: Host) -> None:
    host.kernel(XID.format(79))
    host.look()
    host.boot()
    assert host.look()["faults"] == "0"
    assert [event.split()[0] for event in host.events] == ["firing", "resolved"]


def test_of_the_kernels_messages_only_those_of_hardware_are_kept(host: Host) -> None:
    host.kernel(*["docker0: port 1(veth0) entered blocking state"] * 100, XID.format(79))
    assert host.look()["faults"] == "1"
    assert (host.folder / "run/watch-gpus/said").stat().st_size < 200
    assert (host.folder / "run/watch-gpus/cursor").read_text() == "s=1\n"
