"""`rackwright init DIR --lab --profile NAME`: the lab's hosts serve any shipped profile without an edit by hand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rackwright.adapter.run.inventories import load_inventory
from rackwright.cli.main import main
from rackwright.init import making
from rackwright.profiles import catalog
from rackwright_lab import inventory
from rackwright_lab.machine.shell import LabError
from rackwright_lab.other_machine import FABRIC, POSED, differences
from rackwright_lab.servers.image import MPI_APART
from tests.refused import refusal

PAIR, RING = "dgx_spark_pair_vllm_qwen38_27b", "dgx_spark_ring_vllm_qwen35_397b"
LAB, VARIABLES = Path("inventory/lab.py"), Path("group_vars/lab.yml")
HERE = {"architecture": "x86_64", "gpu_models": "B200", "compute_capability": "10.0"}
"""A host of the lab, by key of `hardware`."""


def stand_in_hosts(lab_id: str | None = None, together: int = 1) -> list[tuple[str, dict[str, Any]]]:
    """Return as many hosts as serve one endpoint together, as a lab's."""
    return [(f"lab{number}", {"ssh_hostname": f"10.79.0.1{number}"}) for number in range(1, together + 1)]


def site_for(profile: str, folder: Path) -> Path:
    """Make the lab's site of a profile."""
    assert main(["init", str(folder), "--lab", "--profile", profile]) == 0
    return folder


def lab_of(number: int) -> SimpleNamespace:
    """Return a lab that is up, with as many hosts."""
    return SimpleNamespace(paths=SimpleNamespace(id="mine"), hosts=[None] * number)


@pytest.mark.parametrize("profile", catalog.names())
def test_the_labs_hosts_serve_each_shipped_profile_by_a_valid_site(
    profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventory, "hosts", stand_in_hosts)
    chosen = catalog.profile(profile)
    hosts = load_inventory(site_for(profile, tmp_path / "site") / LAB)
    assert len(hosts) == chosen.hosts
    for host in hosts:
        (endpoint,) = host.settings.all_endpoints.values()
        hardware = host.settings.hardware
        assert endpoint.model is not None
        assert (host.settings.profile, endpoint.model.repository) == (profile, chosen.model)
        assert hardware.architecture in (None, HERE["architecture"])
        assert not hardware.gpu_models or HERE["gpu_models"] in hardware.gpu_models
        assert not hardware.compute_capability or HERE["compute_capability"] in hardware.compute_capability
        assert not hardware.unified_memory
        assert hardware.memory_minimum_gib is None
        assert endpoint.group_transport == "any"
        assert [name for name in endpoint.environment if FABRIC.match(name)] == []
        assert endpoint.gpus == "all" or len(endpoint.gpus) <= min(chosen.gpu_count, 8)


def test_the_profile_of_the_labs_own_machine_needs_nothing(tmp_path: Path) -> None:
    assert list(differences(catalog.profile(POSED))) == []
    site = site_for(POSED, tmp_path / "site")
    assert "Profile" not in (site / VARIABLES).read_text()


def test_each_difference_has_its_reason(tmp_path: Path) -> None:
    text = (site_for(RING, tmp_path / "site") / VARIABLES).read_text().partition(RING)[2]
    above = ""
    for row in text.splitlines()[1:]:
        assert row.startswith("#") or "#" in row or above.startswith("#"), row
        above = row
    assert {row.partition(":")[0] for row in text.splitlines() if row and row[0] not in " #"} == {
        "environment",
        "gpus",
        "group_transport",
        "hardware",
    }


def test_the_pair_by_open_mpi_takes_the_image_that_has_it() -> None:
    rows = list(differences(catalog.profile("gb200_pair")))
    assert any(row.startswith("image: ") and f":{MPI_APART['1.1.0rc0']} " in row for row in rows)


def test_a_group_says_how_many_hosts_of_the_lab_it_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site_for(RING, tmp_path / "site")
    assert "rackwright lab up --hosts 3 " in capsys.readouterr().out.partition("Next:")[2]


@pytest.mark.parametrize(("number", "together", "needed"), [(1, 2, 2), (3, 2, 4), (4, 3, 6), (2, 4, 4)])
def test_hosts_that_would_be_left_over_are_refused_with_the_command_text(
    number: int, together: int, needed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rackwright_lab.inventory.Lab.open", lambda _: lab_of(number))
    with pytest.raises(LabError, match=f"next: rackwright lab up --id mine --hosts {needed}$"):
        inventory.hosts(together=together)


def test_a_site_of_a_lab_serves_one_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = site_for(PAIR, tmp_path / "site")
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert main(["init", str(site), "--lab", "--profile", "h200_sglang"]) == 1
    refusal(capsys.readouterr().err, "RW1081", LAB, "h200_sglang", f"{site}-h200_sglang --lab --profile h200_sglang")
    assert {path: path.read_bytes() for path in site.rglob("*") if path.is_file()} == before
    assert main(["init", str(site), "--lab", "--profile", PAIR]) == 0


def test_an_update_keeps_what_the_profile_changed(tmp_path: Path) -> None:
    site = site_for(PAIR, tmp_path / "site")
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    assert main(["init", "--update", str(site)]) == 0
    assert {path: path.read_bytes() for path in site.rglob("*") if path.is_file()} == before


def test_an_older_lab_package_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "PROFILED", "rackwright.no_such_group")
    assert main(["init", str(tmp_path / "site"), "--lab", "--profile", PAIR]) == 1
    refusal(capsys.readouterr().err, "RW1029", "./packages/lab")
    assert not (tmp_path / "site").exists()
