"""Firmware and VBIOS of a fleet: what is read, what is odd, and how it is shown."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from rackwright.adapter.run.poll import Reply
from rackwright.cli import firmware as verb
from rackwright.cli.main import main
from rackwright.inspect.firmware import (
    BIOS,
    INFOROM,
    NIC,
    VBIOS,
    FirmwarePart,
    HostFirmware,
    firmware_values,
    lines,
    parse_firmware,
    script,
    table,
)
from tests.unit.machines import gpu_output

MODEL = "model: {repository: openai/gpt-oss-120b, mount: /config/models/gpt-oss-120b}\n"


def printed(machine: str = "b200", bios: str = "1.06.8", nic: str = "28.43.2026", **tags: str) -> list[str]:
    """Return what a host prints."""
    smi = [row for row in gpu_output(machine, **tags).split("\n") if row.startswith(("status ", "xml "))]
    dmi = ["sys_vendor NVIDIA", "product_name DGXB200", f"bios_version {bios}"]
    return [*dmi, f"nic mlx5_0 MT_0000000838 {nic}", *smi, "end"]


def host(name: str, **values: str) -> HostFirmware:
    return parse_firmware(name, printed(**values))


def test_a_host_has_its_bios_and_every_gpu_and_card() -> None:
    found = host("h1")
    assert (found.machine, found.gpus, found.error) == ("NVIDIA DGXB200", "8 NVIDIA B200", "")
    assert FirmwarePart(BIOS, "NVIDIA DGXB200", "", "1.06.8") in found.parts
    assert FirmwarePart(NIC, "MT_0000000838", "mlx5_0", "28.43.2026") in found.parts
    assert sum(part.kind == VBIOS for part in found.parts) == sum(part.kind == INFOROM for part in found.parts) == 8


def test_the_real_h200_has_what_nvidia_smi_says() -> None:
    found = host("h1", machine="h200")
    assert FirmwarePart(VBIOS, "NVIDIA H200", "GPU 0", "96.00.A5.00.1A") in found.parts
    assert FirmwarePart(INFOROM, "NVIDIA H200", "GPU 0", "G520.0282.02.02") in found.parts


def test_one_gpu_with_another_vbios_is_marked_and_named() -> None:
    fleet = [host("h1"), host("h2", vbios_version="97.00.82.00.01")]
    text = table(fleet, None)
    assert "97.00.82.00.01*" in text
    usual = next(part.version for part in fleet[0].parts if part.kind == VBIOS)
    assert f"{usual}*" not in text
    (odd,) = lines(fleet)
    assert [part in odd for part in ("h2", "VBIOS", "GPU 0", "97.00.82.00.01", "NVIDIA B200", usual)] == [True] * 6


def test_versions_of_other_models_are_not_compared() -> None:
    assert list(lines([host("h1"), host("h2", machine="h200"), host("h3")])) == []


def test_two_versions_that_are_as_frequent_are_listed_and_none_is_odd() -> None:
    fleet = [host("h1"), host("h2", bios="1.07.0")]
    assert "*" not in table(fleet, None)
    (text,) = lines(fleet)
    assert [part in text for part in ("BIOS", "NVIDIA DGXB200", "1.06.8 on h1", "1.07.0 on h2")] == [True] * 4


def test_a_host_that_is_not_known_says_why() -> None:
    assert parse_firmware("h1", ["sys_vendor NVIDIA"]).error == "the reading broke off"
    broken = parse_firmware("h1", ["status 0", "xml %%%", "end"])
    assert "nvidia-smi" in broken.error
    assert next(iter(lines([broken]))).startswith("h1: ")


def test_a_hosts_words_are_harmless() -> None:
    found = parse_firmware("h1", ["product_name a\x1b[2Jb", "bios_version c\x1b]0;x\x07d", "end"])
    assert "\x1b" not in table([found], None)


def test_for_programs_each_part_says_whether_it_is_odd() -> None:
    fleet = [host("h1"), host("h2"), host("h3", bios="1.05.0")]
    values = firmware_values(fleet)
    odd = [(one["host"], part["kind"]) for one in values["hosts"] for part in one["parts"] if part["odd"]]
    assert odd == [("h3", BIOS)]


def test_the_script_reads_this_machine_and_ends(tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho '<nvidia_smi_log/>'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    text = script().replace("export LC_ALL=C PATH=", f"export LC_ALL=C PATH={tmp_path}:")
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert done.stderr == ""
    found = parse_firmware("h1", done.stdout.removesuffix("\n").split("\n"))
    assert found.error == ""


@pytest.mark.parametrize(("columns", "status"), [(["--columns", "host,vbios"], 0), (["--json"], 0), ([], 1)])
def test_the_verb_prints_a_table_or_json(
    columns: list[str], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars/all.yml").write_text(MODEL)
    (tmp_path / "deploy.py").write_text("")
    inventory = tmp_path / "i.py"
    inventory.write_text(
        "from rackwright.inventory import build\nglobals().update(build(__file__, {'rack': ['gpu01', 'gpu02']}))\n"
    )
    second = Reply(tuple(printed())) if status == 0 else Reply(trouble="cannot be reached", reached=False)
    monkeypatch.setattr(verb, "poll", lambda *_: {"gpu01": Reply(tuple(printed())), "gpu02": second})
    assert main(["firmware", str(inventory), *columns]) == status
    output = capsys.readouterr().out
    if columns == ["--json"]:
        assert json.loads(output)["hosts"][0]["parts"]
    else:
        assert "gpu01" in output
        assert ("DGXB200" in output) is (not columns)
    assert ("cannot be reached" in output) is bool(status)
