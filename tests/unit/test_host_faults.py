"""What a host measures of itself when its switch has failed: the real script, with stand-ins for what it asks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import rackwright
from rackwright.concerns.endpoint.switch.proving import faults_script

SHELLS = [shell for shell in ("dash", "busybox", "bash") if shutil.which(shell)]
XID = "NVRM: Xid (PCI:0000:1b:00): {}, pid=1234, it went wrong"
FALLEN = "NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus."
KERNEL = "journalctl --boot _TRANSPORT=kernel --no-pager --output short-monotonic"
ROOT = Path(rackwright.__file__).parent
BEGAN = 5000.25
"""Seconds since the boot, when the job began."""
Measure = Callable[..., str]


@pytest.fixture(params=SHELLS)
def measure(request: pytest.FixtureRequest, tmp_path: Path) -> Measure:
    """Run the script before and after; programs by name, as lines of sh."""
    programs, job, home = tmp_path / "bin", tmp_path / "job", tmp_path / "home"
    for folder in (programs, job, home):
        folder.mkdir()
    shell = [request.param, "sh"] if request.param == "busybox" else [request.param]
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "JOB": str(job), "cause": str(job / "cause")}

    def measured(before: dict[str, str], after: dict[str, str], asks: bool = True) -> str:
        for moment, stand_ins in (("before", before), ("after", after)):
            for name, text in stand_ins.items():
                (programs / name).write_text(f"#!/bin/sh\n{text}\n")
                (programs / name).chmod(0o755)
            (job / "began").write_text(f"{BEGAN}\n")
            env = {**os.environ, **environment, "moment": moment}
            subprocess.run([*shell, "-c", faults_script(str(home), asks)], env=env, check=True, timeout=60)
        cause = job / "cause"
        return cause.read_text().strip() if cause.exists() else ""

    return measured


QUIET = {"journalctl": "true", "docker": "true", "nvidia-smi": "printf '0, 0, No\\n0, [N/A], No\\n'"}


def test_a_host_that_is_well_blames_itself_for_nothing(measure: Measure) -> None:
    assert measure(QUIET, {}) == ""


@pytest.mark.parametrize(
    ("smi", "cause"),
    [
        ("printf '0, 0, No\\n3, 0, No\\n'", "gpu"),
        ("printf '0, 0, No\\n0, 0, Yes\\n'", "gpu"),
        ("echo 'Unable to determine the device handle'; exit 15", "gpu"),
        ("exit 124", ""),
    ],
)
def test_gpus_that_count_more_errors_or_are_gone(measure: Measure, smi: str, cause: str) -> None:
    assert measure(QUIET, {"nvidia-smi": smi}) == cause


def test_gpus_that_did_not_answer_before_either_are_no_news(measure: Measure) -> None:
    broken = {**QUIET, "nvidia-smi": "exit 9"}
    assert measure(broken, {}) == ""
    assert measure(broken, QUIET) == ""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (XID.format(79), "gpu"),
        (XID.format(48), "gpu"),
        (XID.format(45), ""),
        (XID.format(790), ""),
        (FALLEN, "gpu"),
        ("usb 1-1: a mouse has fallen off the bus", ""),
    ],
)
@pytest.mark.parametrize("after", [0.5, -0.5])
def test_the_kernels_lines_since_the_switch_began_by_no_clock_that_is_stepped(
    measure: Measure, text: str, cause: str, after: float
) -> None:
    kernel_line = f"[{BEGAN + after:12.6f}] gpu01 kernel: {text}"
    stub = f'[ "$0 $*" = "${{0%/*}}/{KERNEL}" ] && echo "{kernel_line}"'
    assert measure(QUIET, {"journalctl": stub}) == (cause if after > 0 else "")


def test_a_dockerd_that_does_not_answer_is_the_hosts_own(measure: Measure) -> None:
    assert measure(QUIET, {"docker": "exit 1"}) == "docker"


def test_a_dockerd_that_was_to_change_is_no_fault_of_the_host(measure: Measure) -> None:
    assert measure(QUIET, {"docker": "exit 1"}, asks=False) == ""


@pytest.mark.parametrize("free", [16383, 0])
def test_a_full_file_system(measure: Measure, free: int) -> None:
    assert measure(QUIET, {"df": f"echo head; echo dev 9 9 {free} 99% /"}) == "disk"


def test_a_file_system_that_takes_no_writes(measure: Measure, tmp_path: Path) -> None:
    (tmp_path / "home" / ".rackwright-probe").mkdir()
    assert measure(QUIET, {}) == "disk"


def test_dockers_folder_counts(measure: Measure, tmp_path: Path) -> None:
    (tmp_path / "docker" / ".rackwright-probe").mkdir(parents=True)
    assert measure(QUIET, {"docker": f"echo {tmp_path}/docker"}) == "disk"


def test_broken_gpus_say_more_than_a_full_disk(measure: Measure) -> None:
    full = {"df": "echo head; echo dev 9 9 1 99% /", "nvidia-smi": "echo 1, 0, No"}
    assert measure(QUIET, full) == "gpu"


def test_no_script_takes_a_line_for_the_kernels_by_a_name_that_any_user_may_write() -> None:
    scripts = [file for file in ROOT.rglob("*") if file.suffix in (".sh", ".j2", ".py", ".bash")]
    assert len(scripts) > 100
    named = re.compile(r"(identifier|-t)[ =]kernel")
    assert [file.name for file in scripts if named.search(file.read_text())] == []
