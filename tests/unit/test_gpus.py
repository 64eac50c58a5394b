"""GPUs from nvidia-smi's own output: the real H200's, and the synthetic machines'."""

from __future__ import annotations

import base64

import pytest

from rackwright.concerns.gpus import GpuProcess, parse
from rackwright.concerns.gpus.concern import joined
from rackwright.messages import ReadingError
from rackwright.plan.answers import Answers, ListedContainer
from rackwright_engines.fit.gpu import GpuType, capability_by_name, gpu_type
from tests.unit.machines import DRIVER, FIXTURES, gpu_output, gpus, packed

CONTAINER = "a" * 64


def test_the_real_h200() -> None:
    xml = (FIXTURES / "h200" / "smi.xml").read_bytes()
    table = "gpu GPU-00000000-0000-0000-0000-000000000001, 0, 9.0"
    reading = parse(f"module\nstatus 0\nxml {packed(xml)}\n{table}")
    (gpu,) = reading.gpus
    assert (reading.driver, reading.module, reading.error) == (DRIVER, None, "")
    assert (gpu.name, gpu.memory_mib, gpu.compute_capability) == ("NVIDIA H200", 143771, "9.0")
    assert (gpu.mig, gpu.ecc, gpu.uncorrectable, gpu.remap_pending) == (False, True, 0, False)
    assert gpu.fabric_state is None, "N/A means no value"
    assert gpu.recovery is None
    assert gpu.processes == ()


@pytest.mark.parametrize(
    ("machine", "count", "name", "memory", "capability"),
    [
        ("b200", 8, "NVIDIA B200", 183359, "10.0"),
        ("gb200", 4, "NVIDIA GB200", 189471, "10.0"),
        ("gb10", 1, "NVIDIA GB10", None, "12.1"),
        ("rtx_pro_6000", 8, "NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, "12.0"),
    ],
)
def test_synthetic_machines(machine: str, count: int, name: str, memory: int | None, capability: str) -> None:
    reading = gpus(machine)
    assert reading.module == reading.driver == DRIVER
    assert [gpu.index for gpu in reading.gpus] == list(range(count))
    assert {(gpu.name, gpu.memory_mib, gpu.compute_capability) for gpu in reading.gpus} == {(name, memory, capability)}


def test_gb10_has_no_values_rather_than_wrong_ones() -> None:
    (gpu,) = gpus("gb10").gpus
    assert (gpu.memory_mib, gpu.mig, gpu.ecc) == (None, None, None)
    assert (gpu.uncorrectable, gpu.remap_pending, gpu.threshold_exceeded) == (0, False, False)


def test_processes_know_their_user_and_container() -> None:
    lines = f"process 41 root {CONTAINER}\nprocess 42 eve -\ncontainer {CONTAINER} rackwright-llm"
    ours = gpus(process="41,C,trtllm-serve,100 MiB")
    assert ours.gpus[0].processes[0].user == "", "nothing is known of a process that the host did not describe"
    reading = parse(gpu_output("b200", processes=lines, process="41,C,trtllm-serve,100 MiB"))
    assert reading.gpus[0].processes == (GpuProcess(41, "trtllm-serve", 100, "root", "rackwright-llm", "C", True),)
    assert reading.gpus[0].processes[0].ours
    foreign = parse(gpu_output("b200", processes=lines, process="42,C,python,N/A")).gpus[0].processes[0]
    assert (foreign.user, foreign.memory_mib, foreign.ours) == ("eve", None, False)


def test_a_container_that_docker_listed_before_it_ran_has_its_process() -> None:
    """Docker is asked first: an endpoint that was just starting was, in a lab, a foreign process on its own GPUs."""
    listed = Answers(containers=(ListedContainer(CONTAINER, "rackwright-llm", "i", running=False),))
    output = gpu_output("b200", processes=f"process 41 root {CONTAINER}", process="41,C,trtllm-serve,100 MiB")
    assert not parse(output).gpus[0].processes[0].ours
    assert parse(joined(output, listed)).gpus[0].processes[0].ours


def test_a_desktop_draws_and_does_not_compute() -> None:
    assert not gpus(process="7,G,Xorg,4 MiB").gpus[0].processes[0].computes
    assert gpus(process="7,C+G,python,4 MiB").gpus[0].processes[0].computes


def test_the_order_is_nvidia_smis_own() -> None:
    reversed_table = (
        gpu_output("b200").replace("001, 0,", "001, X,").replace("002, 1,", "002, 0,").replace("001, X,", "001, 1,")
    )
    assert [gpu.uuid[-1] for gpu in parse(reversed_table).gpus][:2] == ["2", "1"]


def test_a_mismatch_names_both_versions() -> None:
    message = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.159"
    module = base64.b64encode(b"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  575.57.08  Release").decode()
    reading = parse(f"module {module}\nstatus 18\nxml {packed(message.encode())}")
    assert (reading.module, reading.driver) == ("575.57.08", "580.159")
    assert "mismatch" in reading.error


def test_no_nvidia_smi_is_said() -> None:
    assert parse("module ").error == "nvidia-smi is not installed"


def test_a_hanging_driver_is_said() -> None:
    assert "30 s" in parse(f"module\nstatus 124\nxml {packed(b'')}").error


@pytest.mark.parametrize(
    "xml",
    [b"<nvidia_smi_log><gpu>", b"", b'<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>'],
    ids=["cut", "empty", "entities"],
)
def test_unreadable_xml_is_an_error_and_not_a_host_without_gpus(xml: bytes) -> None:
    with pytest.raises(ReadingError):
        parse(f"module\nstatus 0\nxml {packed(xml)}")


def test_a_cut_packet_is_an_error() -> None:
    with pytest.raises(ReadingError, match="whole"):
        parse(f"module\nstatus 0\nxml {packed(b'<a/>' * 50)[:24]}")


def test_a_gpu_that_need_not_be_asked_is_the_product_that_its_name_means() -> None:
    capabilities = capability_by_name()
    assert capabilities["NVIDIA GB200"] == "10.0"
    assert {name: (gpu_type(name) or GpuType("", 0, "")).compute_capability for name in capabilities} == capabilities
    assert all(name.startswith("NVIDIA ") for name in capabilities)
