"""NVIDIA's driver: a deploy brings packages and says what is pending, rows refuse, and a switch has a way back."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from rackwright.concerns.driver import DRIVER, DriverState, SeenDriver, WantedDriver, installs_first, notes, refusals
from rackwright.concerns.driver.judge import wrong_with
from rackwright.concerns.driver.packages import address, companions, others, repository
from rackwright.concerns.driver.seen import HOME, DriverPackage, Staged, parse
from rackwright.concerns.gpus import SeenGpus
from rackwright.plan.change import Job, Owned
from tests import texts
from tests.refused import refusal
from tests.unit.machines import BOOKWORM, gpus, settings

NOW, NEW = "580.159.04", "580.178.04"
NAMES = ("libcuda1", "nvidia-driver-cuda", "nvidia-fabricmanager", "nvidia-kernel-open-dkms")


def packages(version: str = NOW, **odd: str) -> tuple[DriverPackage, ...]:
    """Return the installed packages; odd: versions of those that differ, with `_` for `-`."""
    versions = dict.fromkeys(NAMES, version) | {name.replace("_", "-"): text for name, text in odd.items()}
    return tuple(DriverPackage(name, f"{text}-1", held=False) for name, text in sorted(versions.items()))


def driver_now(version: str = NOW, staged: Staged | None = None, draws: bool = False, **values: str) -> SeenDriver:
    return SeenDriver(packages(version), staged, values={"headers": "yes", **values}, draws=draws)


def wanted(
    version: str | None = NEW, found: SeenGpus | None = None, system: Any = BOOKWORM, **more: Any
) -> WantedDriver:
    values = {"driver": {"version": version} if version else {}, **more}
    return WantedDriver(settings(**values), system, found or gpus())


STAGED = Staged(NEW, NOW)


@pytest.mark.parametrize(
    ("version", "host", "state"),
    [
        (None, driver_now(), DriverState.UNMANAGED),
        (NOW, driver_now(), DriverState.SETTLED),
        (NEW, driver_now(), DriverState.UNSTAGED),
        (NEW, driver_now(staged=STAGED), DriverState.STAGED),
        (NEW, driver_now(staged=Staged(NEW, "570.1.2")), DriverState.UNSTAGED),
        (NEW, driver_now(staged=Staged("595.71.05", NOW)), DriverState.UNSTAGED),
        (NEW, driver_now(NEW), DriverState.INSTALLED),
        (NOW, SeenDriver(), DriverState.SETTLED),
        (NEW, SeenDriver(), DriverState.UNSTAGED),
    ],
)
def test_a_host_is_as_far_as_its_packages_and_its_module_are(
    version: str | None, host: SeenDriver, state: DriverState
) -> None:
    assert wanted(version).state(host) is state


def test_the_wanted_driver_without_packages_is_left_as_it_is() -> None:
    """NVIDIA's .run installer or an image's maker brought it: it is not to be uninstalled for the same version."""
    assert (refusals(wanted(NOW), SeenDriver()), notes(wanted(NOW), SeenDriver())) == ([], [])
    assert DRIVER.changes(wanted(NOW), SeenDriver()) == []


def test_a_fabric_manager_of_another_version_is_not_settled() -> None:
    odd = SeenDriver(packages(NOW, nvidia_fabricmanager="580.150.01"), values={"headers": "yes"})
    assert [one.name for one in odd.odd] == ["nvidia-fabricmanager"]
    assert wanted(NOW).state(odd) is DriverState.UNSTAGED


def test_a_deploy_stages_and_installs_nothing() -> None:
    [change] = DRIVER.changes(wanted(hardware={"fabric_manager": True}), driver_now())
    [job] = change.steps
    assert isinstance(job, Job)
    assert (change.what, change.why) == (f"stage NVIDIA's driver {NEW}", f"the host has {NOW}")
    assert "download $new" in job.script
    assert "\nsimulate install" in job.script
    assert "more='nvidia-fabricmanager|nvidia-fabricmanager-580'" in job.script
    assert f"packages='{' '.join(NAMES)}'" in job.script
    assert Owned("apt_source", "/etc/apt/sources.list.d/rackwright-driver.list") in change.owns
    assert not any(owned.kind == "package" for owned in change.owns), "a teardown leaves the driver"


LOCKED = DriverPackage(f"nvidia-driver-pinning-{NOW}", f"{NOW}-1", held=False)


def test_the_lock_of_the_driver_of_now_goes_and_that_of_the_new_one_comes() -> None:
    host = replace(driver_now(), packages=(*packages(), LOCKED))
    [change] = DRIVER.changes(wanted(), host)
    [job] = change.steps
    assert isinstance(job, Job)
    assert f"lock=nvidia-driver-pinning-{NEW}\n" in job.script
    assert f"locks={LOCKED.name}\n" in job.script
    assert f"packages='{' '.join(NAMES)}'" in job.script, "it has no name of another driver"
    assert SeenDriver((LOCKED,)).version == "", "a lock has no driver"


@pytest.mark.parametrize("host", [driver_now(staged=STAGED), driver_now(NEW)])
def test_what_is_staged_or_installed_is_not_staged_again(host: SeenDriver) -> None:
    assert DRIVER.changes(wanted(), host) == []


def test_a_host_without_a_driver_gets_its_first_one() -> None:
    bare = SeenDriver(values={"headers": "yes"})
    none = wanted(found=SeenGpus(error="nvidia-smi is not installed"))
    [change] = DRIVER.changes(none, bare)
    [job] = change.steps
    assert isinstance(job, Job)
    assert "more='nvidia-open|nvidia-open-580'" in job.script
    assert change.why == "the host has none"
    assert [row.code for row in refusals(none, SeenDriver())] == ["RW4056"]


def test_a_first_driver_that_comes_with_a_kernel_waits_for_a_restart() -> None:
    values = {"headers": "yes", "running": "6.8.0-60-generic"}
    host = SeenDriver(staged=Staged(NEW, "", kernel="6.8.0-90-generic"), values=values)
    want = wanted(found=SeenGpus(error="none"), driver={"version": NEW, "first_by_deploy": True})
    assert (DRIVER.changes(want, host), installs_first(want, host)) == ([], False)
    [text] = notes(want, host)
    assert ["6.8.0-90-generic" in text, text.endswith("rackwright rollout INVENTORY --drivers")] == [True, True]
    running = replace(host, values={**values, "running": "6.8.0-90-generic"})
    [change] = DRIVER.changes(want, running)
    assert change.what == f"install NVIDIA's driver {NEW} and load it", "an operator has booted it"


def test_a_repository_that_is_there_is_not_added_a_second_time() -> None:
    [change] = DRIVER.changes(wanted(), driver_now(repository="yes"))
    assert change.owns == ()


def test_pending_is_said_with_the_command_that_switches() -> None:
    [text] = notes(wanted(), driver_now(staged=STAGED))
    assert texts.DRIVER_PENDING in text
    assert [NOW in text, NEW in text, text.endswith("rackwright rollout INVENTORY --drivers")] == [True, True, True]
    assert notes(wanted(NOW), driver_now()) == notes(wanted(None), driver_now()) == []


def test_a_host_that_went_back_says_why() -> None:
    failed = replace(driver_now(staged=STAGED), failed={"version": NEW, "text": "the loaded module is absent"})
    refusal(notes(wanted(), failed)[0], "RW4106", NEW, "module is absent")
    assert len(notes(wanted("580.200.01"), replace(failed, staged=None))) == 1


UBUNTU = replace(BOOKWORM, id="ubuntu", version="24.04")
OTHER = replace(BOOKWORM, id="rocky")


@pytest.mark.parametrize(
    ("code", "want", "host"),
    [
        ("RW4006", wanted(), driver_now(product="NVIDIA DGX Spark")),
        ("RW4006", wanted(), driver_now(dgx="yes")),
        ("RW4016", wanted(system=OTHER), driver_now()),
        ("RW4016", wanted(driver={"version": NEW, "source": "distribution"}), driver_now()),
        ("RW4026", wanted(), SeenDriver(values={"headers": "yes"})),
        ("RW4036", wanted(), driver_now(nouveau="yes")),
        ("RW4046", wanted(), driver_now(secureboot="1")),
        ("RW4056", wanted(), driver_now(headers="no", running="6.1.0-1-amd64")),
        ("RW4054", wanted(), driver_now(next="6.1.0-52-amd64")),
        ("RW4076", wanted(), driver_now(draws=True)),
        ("RW4086", wanted(), driver_now(initrd=str(80 << 20), bootfree=str(40 << 10))),
    ],
)
def test_a_row_refuses_with_its_fix(code: str, want: WantedDriver, host: SeenDriver) -> None:
    [row] = refusals(want, host)
    assert (row.code, "; next: " in row.message) == (code, True)
    assert DRIVER.changes(want, host) == []
    assert [row.message in text for text in notes(want, host)] == [True]


@pytest.mark.parametrize(
    "host",
    [
        driver_now(),
        driver_now(secureboot="1", mok="enrolled"),
        driver_now(secureboot="0"),
        driver_now(initrd=str(80 << 20), bootfree=str(200 << 10)),
        driver_now(bootfree="1"),
    ],
)
def test_what_is_in_order_refuses_nothing(host: SeenDriver) -> None:
    assert refusals(wanted(), host) == []
    assert refusals(wanted(NOW), replace(host, draws=True)) == [], "a settled host is left as it is"


@pytest.mark.parametrize(
    ("system", "host", "newest"),
    [
        (BOOKWORM, (), "linux-image-amd64 linux-headers-amd64"),
        (UBUNTU, (), "linux-image-generic linux-headers-generic"),
        (UBUNTU, ("linux-image-nvidia-64k",), "linux-image-nvidia-64k linux-headers-nvidia-64k"),
    ],
)
def test_headers_that_the_archive_has_dropped_have_a_way_on(system: Any, host: tuple[str, ...], newest: str) -> None:
    without = replace(driver_now(headers="no", running="6.1.0-1-amd64"), kernel_packages=host)
    [row] = refusals(wanted(system=system), without)
    assert "apt-get install linux-headers-6.1.0-1-amd64;" in row.fix
    assert f"apt-get install {newest}, and reboot" in row.fix


def test_precompiled_modules_need_neither_headers_nor_a_key_but_a_kernel_that_moves() -> None:
    modules = DriverPackage("linux-modules-nvidia-580-server-open-generic", "6.8.0-60.63", held=False)
    libraries = DriverPackage("libnvidia-compute-580-server", f"{NOW}-0ubuntu1", held=False)
    host = SeenDriver((libraries, modules), values={"secureboot": "1"})
    want = wanted(system=UBUNTU)
    assert host.version == NOW
    assert refusals(want, host) == []
    [row] = refusals(want, replace(host, held_kernels=("linux-image-generic",)))
    assert row.code == "RW4066"
    [change] = DRIVER.changes(want, host)
    [job] = change.steps
    assert isinstance(job, Job)
    assert "others=linux-modules-nvidia-580-server-open-generic" in job.script


@pytest.mark.parametrize(
    ("system", "folder"),
    [
        (BOOKWORM, "debian12/x86_64"),
        (UBUNTU, "ubuntu2404/x86_64"),
        (replace(UBUNTU, architecture="arm64"), "ubuntu2404/sbsa"),
    ],
)
def test_the_repository_is_nvidias_for_the_system(system: Any, folder: str) -> None:
    found = repository(settings(), system)
    assert address(settings(), system) == f"https://developer.download.nvidia.com/compute/cuda/repos/{folder}"
    assert found.key.endswith(f"{folder}/3bf863cc.pub")
    assert found.source.endswith(f"{folder}/ /")


def test_what_a_machine_needs_beside_its_driver() -> None:
    plain = wanted()
    assert (companions(plain), others(plain)) == ((), ())
    hgx = wanted(hardware={"fabric_manager": True})
    assert (len(companions(hgx)), others(hgx)) == (1, ("nvlsm", "infiniband-diags"))


def test_the_reading_is_parsed() -> None:
    staged = base64.b64encode(
        f"version={NEW}\nold={NOW}\ninstall=a=1 b=2\nremove=\nhold=libcuda1 x;y\n".encode()
    ).decode()
    found = parse(
        f"running=6.1\npackage libcuda1 hold {NOW}-1\npackage nvidia-fabricmanager install 555.42.02-1\n"
        "package nvidia-modprobe install 555.42.02-1\n"
        f"heldkernel linux-image-amd64\nkernels linux-image-amd64\nsecureboot=1\nproduct=NVIDIA DGX B200\n"
        f"file {HOME}/staged {staged}\nnone {HOME}/failed\n"
    )
    assert (found.version, found.packages[0].held) == (NOW, True)
    assert [one.name for one in found.odd] == ["nvidia-fabricmanager"]
    assert found.staged == replace(STAGED, holds=("libcuda1",))
    assert found.held_kernels == found.kernel_packages == ("linux-image-amd64",)
    assert found.values["product"] == "NVIDIA DGX B200"
    assert parse("") == SeenDriver(values={})


WELL = [f"module={NEW}", "status=0", f"library={NEW} ", "gpus=8", f"fabric={NEW}"]


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        (WELL, ""),
        ([*WELL[:4]], ""),
        ([f"module={NOW}", *WELL[1:]], f"the loaded module is {NOW}, and not {NEW}"),
        (["module=", "status=9", "error=NVIDIA-SMI has failed"], "nvidia-smi: NVIDIA-SMI has failed"),
        ([*WELL[:3], "gpus=7"], "7 of 8 GPUs are there"),
        ([*WELL[:4], "fabric=580.150.01"], f"the fabric manager is 580.150.01, and not {NEW}"),
        ([*WELL, f"imex={NOW}"], f"IMEX is {NOW}, and not {NEW}"),
        ([*WELL[:2], f"library={NEW} {NOW} ", "gpus=8"], f"its libraries are {NEW} {NOW}, and not {NEW}"),
    ],
)
def test_a_host_is_judged_by_what_runs_on_it(lines: list[str], wrong: str) -> None:
    assert wrong in wrong_with(lines, NEW, 8)
    assert bool(wrong) == bool(wrong_with(lines, NEW, 8))


@pytest.mark.parametrize("branch", [580, "580"])
def test_a_branch_is_a_number_to_yaml_too(branch: int | str) -> None:
    assert settings(driver={"branch": branch, "version": NEW}).driver.branch == "580"
