"""The stand-in nvidia-smi, run as a host runs it, against real output of the real one."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from rackwright_lab.gpu import models, pose

REAL = models.FIXTURES
REAL_QUERY = (
    "index,name,uuid,memory.total,driver_version,compute_cap,pci.bus_id,ecc.mode.current,persistence_mode,"
    "mig.mode.current,pstate,temperature.gpu,power.limit"
)


class Posing:
    """A folder that a host's nvidia-smi reads instead of the host's."""

    def __init__(self, root: Path, model: str) -> None:
        self.root = root
        pose.write_common(root)
        pose.write_host(root, "h", model)

    def smi(self, *words: str) -> subprocess.CompletedProcess[str]:
        places = {
            "RACKWRIGHT_LAB_LIB": self.root / "usr/lib/rackwright-lab/gpu",
            "RACKWRIGHT_LAB_CONF": self.root / "etc/rackwright-lab/gpu.conf",
            "RACKWRIGHT_LAB_RUN": self.root / "run",
        }
        environment = {**os.environ, **{name: str(path) for name, path in places.items()}}
        argv = ["sh", str(self.root / "usr/bin/nvidia-smi"), *words]
        return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)

    def compute(self, pid: int, *uuids: str) -> None:
        started = Path("/proc", str(pid), "stat").read_text().split()[21]
        path = self.root / "run/gpu-processes/one"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{pid} {started} 4096 {' '.join(uuids)}\n")


@pytest.fixture
def h200(tmp_path: Path) -> Posing:
    return Posing(tmp_path, "h200")


@pytest.fixture
def b200(tmp_path: Path) -> Posing:
    return Posing(tmp_path, "b200")


def without_what_differs(xml: str) -> list[str]:
    tags = "timestamp|attached_gpus|serial|uuid|pci_bus_id|free"
    return [row for row in xml.splitlines() if not re.search(rf"<({tags})>|<gpu id=", row)]


def test_an_h200_reads_as_the_real_one_does(h200: Posing) -> None:
    real = (REAL / "h200.xml").read_text()
    assert without_what_differs(h200.smi("-q", "-x", "-i", "0").stdout) == without_what_differs(real)


def test_a_query_has_the_real_ones_form(h200: Posing) -> None:
    ours = h200.smi(f"--query-gpu={REAL_QUERY}", "--format=csv,noheader", "-i", "0").stdout.strip().split(", ")
    real = (REAL / "query.csv").read_text().strip().split(", ")
    assert [a for a, b in zip(ours, real, strict=True) if a != b] == [pose.uuid("h", 0), "00000000:1B:00.0"]


def test_the_table_has_the_real_ones_lines(h200: Posing) -> None:
    ours = h200.smi("-i", "0").stdout.splitlines()[1:]
    real = (REAL / "smi.txt").read_text().splitlines()[1:]
    assert [row.replace("00000000:1B:00.0", "00000000:00:06.0") for row in ours] == real


def test_headers_carry_units_and_nounits_takes_them_off_the_values(b200: Posing) -> None:
    output = b200.smi("--query-gpu=index,memory.total", "--format=csv,nounits", "-i", "7").stdout
    assert output == "index, memory.total [MiB]\n7, 183359\n"


def test_a_mismatch_of_module_and_library_fails_as_nvml_does_text(b200: Posing) -> None:
    pose.write_switches(b200.root, pose.Switches(module="580.95.05"))
    failed = b200.smi("-L")
    assert failed.returncode == 18
    assert (
        failed.stdout == "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.159\n"
    )


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (["--query-gpu=color", "--format=csv"], 2, 'Field "color" is not a valid field to query.'),
        (["--query-gpu=index"], 2, "Invalid combination of input arguments"),
        (["--colour"], 2, "Option --colour is not recognized"),
        (["-L", "-i", "9"], 6, "No devices were found"),
    ],
)
def test_what_the_real_one_refuses_is_refused(b200: Posing, words: list[str], status: int, text: str) -> None:
    refused = b200.smi(*words)
    assert refused.returncode == status
    assert text in refused.stdout


def test_switches_show_on_the_faulty_gpu_only(b200: Posing) -> None:
    switches = pose.Switches(faulty_gpu=2, ecc_uncorrected=3, remap_pending="Yes", fabric_state="In Progress")
    pose.write_switches(b200.root, switches)
    fields = "ecc.errors.uncorrected.volatile.total,remapped_rows.pending,fabric.state"
    rows = b200.smi(f"--query-gpu={fields}", "--format=csv,noheader").stdout.splitlines()
    assert rows == [*["0, No, In Progress"] * 2, "3, Yes, In Progress", *["0, No, In Progress"] * 5]
    assert "<dram_uncorrectable>3</dram_uncorrectable>" in b200.smi("-q", "-x", "-i", "2").stdout


def test_a_process_shows_while_it_lives(b200: Posing) -> None:
    uuid = pose.uuid("h", 1)
    process = subprocess.Popen(["sleep", "60"])
    try:
        b200.compute(process.pid, uuid)
        output = b200.smi("--query-compute-apps=pid,gpu_uuid,used_memory,process_name", "--format=csv,noheader").stdout
        assert output == f"{process.pid}, {uuid}, 4096 MiB, sleep\n"
        assert b200.smi("--query-gpu=memory.used", "--format=csv,noheader", "-i", "1").stdout == "4096 MiB\n"
        assert f"<pid>{process.pid}</pid>" in b200.smi("-q", "-x").stdout
    finally:
        process.kill()
        process.wait()
    assert b200.smi("--query-compute-apps=pid", "--format=csv,noheader").stdout == ""


def test_a_container_lists_only_what_it_was_given(b200: Posing) -> None:
    given = [pose.uuid("h", 4), pose.uuid("h", 6)]
    (b200.root / "run").mkdir()
    (b200.root / "run/gpus-visible").write_text("\n".join(given) + "\n")
    assert b200.smi("-L").stdout.splitlines() == [
        f"GPU {index}: NVIDIA B200 (UUID: {uuid})" for index, uuid in enumerate(given)
    ]
