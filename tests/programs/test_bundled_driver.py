"""NVIDIA's driver in a bundle, by the real apt: all its names in one version, with what the machine needs beside it."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest

from rackwright.bundle.apt_root import AptRoot, PackageFile, system_of
from rackwright.bundle.driver_packages import bundled_driver, driver_files
from rackwright.bundle.packages import groups_of
from rackwright.messages import RackwrightError
from tests.refused import refusal
from tests.unit.machines import settings

pytestmark = pytest.mark.skipif(shutil.which("apt-ftparchive") is None, reason="needs apt-utils")
NEW, OLD = "580.178.04", "580.159.04"
SYSTEM = system_of("debian-12-amd64")


def of_driver(version: str) -> dict[str, str]:
    exact = f"(= {version}-1)"
    kernel = "Provides: nvidia-kernel\nConflicts: nvidia-kernel"
    return {
        "libcuda1": "",
        "nvidia-kernel-open-dkms": f"Depends: dkms\n{kernel}",
        "nvidia-kernel-dkms": f"Depends: dkms\n{kernel}",
        "nvidia-driver-cuda": f"Depends: libcuda1 {exact}, nvidia-kernel",
        "nvidia-open": f"Depends: nvidia-driver-cuda {exact}, nvidia-kernel-open-dkms {exact}",
        "cuda-drivers": f"Depends: nvidia-driver-cuda {exact}, nvidia-kernel-dkms {exact}",
        "nvidia-fabricmanager": "",
        "nvidia-settings": "Depends: not-there",
        f"nvidia-driver-pinning-{version}": "",
    }


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> AptRoot:
    """Return apt's root with a repository of two drivers."""
    folder = tmp_path_factory.mktemp("repository")
    versions = [(name, f"{driver}-1", needs) for driver in (OLD, NEW) for name, needs in of_driver(driver).items()]
    of_own = [
        ("dkms", "3.0"),
        ("nvlsm", "2025.10"),
        ("dpkg-repack", "1.52"),
        ("infiniband-diags", "44.0"),
        ("firefox", "1"),
    ]
    (folder / "pool").mkdir()
    for name, version, needs in [*versions, *((name, version, "") for name, version in of_own)]:
        control = folder / f"{name}-{version}" / "DEBIAN/control"
        control.parent.mkdir(parents=True)
        rows = [f"Package: {name}", f"Version: {version}", "Architecture: all", "Maintainer: X <x@example.com>", needs]
        control.write_text("\n".join(row for row in rows if row) + "\nDescription: X\n")
        words = ["dpkg-deb", "--build", "--root-owner-group", str(control.parents[1]), str(folder / "pool")]
        subprocess.run(words, check=True, capture_output=True)
    done = subprocess.run(["apt-ftparchive", "packages", "pool"], cwd=folder, check=True, capture_output=True)
    (folder / "Packages").write_bytes(done.stdout)
    found = AptRoot(folder / "root", SYSTEM)
    driver, _ = found_for() or pytest.fail("none")
    found.lay([f"deb [trusted=yes] file:{folder} ./"], driver.pin)
    return found


def found_for(version: str = NEW, **more: Any) -> Any:
    hardware = {"fabric_manager": True, "compute_capability": ["10.0"]}
    return bundled_driver(settings(driver={"version": version, **more}, hardware=hardware), SYSTEM)


def named(files: list[PackageFile]) -> set[str]:
    return {one.file.rpartition("_")[0] for one in files}


def test_a_driver_comes_by_all_its_names_with_what_it_needs_and_the_way_back(root: AptRoot) -> None:
    driver, repository = found_for()
    assert repository is not None
    files = driver_files(root, driver)
    left_out = {"nvidia-settings"}
    expected = {f"{name}_{NEW}-1" for name in of_driver(NEW) if name not in left_out}
    assert named(files) == expected | {
        "dkms_3.0",
        "nvlsm_2025.10",
        "infiniband-diags_44.0",
        "dpkg-repack_1.52",
    }
    assert len(root.records({one.sha256: one for one in files})) == len(files)


def test_a_version_that_the_repository_does_not_have_is_refused(root: AptRoot) -> None:
    driver, _ = found_for("580.1.1")
    with pytest.raises(RackwrightError) as error:
        driver_files(root, driver)
    refusal(str(error.value), "RW3919", "nvidia-open", "580.1.1")


def test_a_host_without_a_wanted_driver_has_none_in_its_bundle() -> None:
    assert bundled_driver(settings(), SYSTEM) is None
    assert found_for(source="distribution") is None, "Debian's archive has no open kernel modules"
    assert [group.driver for group in groups_of([settings()], SYSTEM) if group.driver] == []
    wanted = settings(driver={"version": NEW})
    assert [group.driver.version for group in groups_of([wanted], SYSTEM) if group.driver] == [NEW]
