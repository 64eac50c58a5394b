"""A host's first driver by a deploy, and what refuses a driver: each row seen on a booted host."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.servers.driver import BROKEN, NEW, OLD, install_line
from tests import texts
from tests.lab.conftest import ARTEFACTS, BIN, ROOT, Site, own_lab
from tests.lab.products import in_proof
from tests.programs.typed import Typed
from tests.refused import refusal

pytestmark = pytest.mark.lab

INVENTORY = "inventory/lab.py"
HEADERS = "mkdir -p /lib/modules/$(uname -r)/build"
ROWS = "each row has unit tests"
WRITABLE, READ_ONLY = "mount -o remount,rw /sys", "mount -o remount,ro /sys"
PACKAGE = """\
mkdir -p /tmp/{name}/DEBIAN
printf '%s\\n' 'Package: {name}' 'Version: 6.1.0-1' 'Architecture: amd64' 'Maintainer: lab' 'Description: lab' \
  >/tmp/{name}/DEBIAN/control
dpkg-deb -Znone --build /tmp/{name} /tmp/{name}.deb && dpkg -i /tmp/{name}.deb
"""
KERNEL, MODULES = "linux-image-lab", "linux-modules-nvidia-580-server-open-generic"
UNIT = "/etc/systemd/system/display-manager.service"
EFI = "/sys/firmware/efi/efivars"
BOOT = "/proc/sys/kernel/random/boot_id"
MODEL = "/usr/lib/rackwright-lab/gpu/gpu.xml"
BEHIND = """
from rackwright.inventory import build
from rackwright_lab.inventory import hosts

own = [(name, {{**data, "ssh_config_file": "{config}"}} if name == "{behind}" else data) for name, data in hosts()]
globals().update(build(__file__, {{"lab": own}}, children={{"b200": ["lab"]}}))
"""
REFUSED: dict[str, tuple[str, str, str, str]] = {
    "nouveau": (
        f"{WRITABLE}; mkdir /sys/module/nouveau; {READ_ONLY}",
        f"{WRITABLE}; rmdir /sys/module/nouveau; {READ_ONLY}",
        "RW4036",
        "blacklist nouveau",
    ),
    "secure boot": (
        f"{WRITABLE}; mkdir -p {EFI} && printf '\\006\\000\\000\\000\\001' >{EFI}/SecureBoot-8be4df61; {READ_ONLY}",
        f"{WRITABLE}; rm {EFI}/SecureBoot-8be4df61; {READ_ONLY}",
        "RW4046",
        "mokutil --import",
    ),
    "headers": ("rm -rf /lib/modules/$(uname -r)/build", HEADERS, "RW4056", "apt-get install linux-headers-"),
    "next kernel": (
        ": >/boot/vmlinuz-99.1.0-1-lab; mkdir -p /lib/modules/99.1.0-1-lab",
        "rm -r /boot/vmlinuz-99.1.0-1-lab /lib/modules/99.1.0-1-lab",
        "RW4054",
        "apt-get install linux-headers-99.1.0-1-lab",
    ),
    "held kernel": (
        f"{PACKAGE.format(name=KERNEL)}{PACKAGE.format(name=MODULES)}apt-mark hold {KERNEL}",
        f"apt-mark unhold {KERNEL}; dpkg --purge {KERNEL} {MODULES}",
        "RW4066",
        f"apt-mark unhold {KERNEL}",
    ),
    "desktop": (
        f"printf '[Service]\\nExecStart=/bin/sleep infinity\\n' >{UNIT}; systemctl daemon-reload; "
        "systemctl start display-manager",
        f"systemctl stop display-manager; rm {UNIT}; systemctl daemon-reload",
        "RW4076",
        "isolate multi-user.target",
    ),
    "boot": (
        "mount -t tmpfs -o size=20m tmpfs /boot; head -c 15000000 /dev/zero >/boot/initrd.img-lab",
        "umount /boot",
        "RW4086",
        "apt-get autoremove",
    ),
    "DGX OS": ("touch /etc/dgx-release", "rm /etc/dgx-release", "RW4006", "apt-get full-upgrade"),
    "Spark": (f"sed -i s/B200/GB10/ {MODEL}", f"sed -i s/GB10/B200/ {MODEL}", "RW4006", "apt-get full-upgrade"),
}
"""What an operator may meet: how it comes about, how it ends, and the refusal with its fix."""


@pytest.fixture(scope="module")
def worker_lab() -> Iterator[Lab]:
    with own_lab("f", hosts=2, bare=1) as lab:
        yield lab


@pytest.fixture
def bare(worker_lab: Lab) -> Host:
    return worker_lab.host("bare1")


@pytest.fixture
def lived(worker_lab: Lab) -> Host:
    """Return the lived-in host with a driver of packages."""
    host = worker_lab.host("lived2")
    if host.run("dpkg-query -W libcuda1", check=False).returncode != 0:
        host.run(install_line(OLD))
    return host


def words(version: str, **more: str) -> list[str]:
    values = {"version": version, "console": "serial", **more}
    return [text for key, value in values.items() for text in ("--data", f"driver.{key}={value}")]


def module(host: Host) -> str:
    return host.run("cat /sys/module/nvidia/version", check=False).stdout.strip()


def boot(host: Host) -> str:
    return host.run(f"cat {BOOT}").stdout.strip()


def take_driver(host: Host) -> None:
    """Leave a host without a driver, by packages or otherwise, and with what one is built with."""
    packages = "dpkg-query -W -f '${Package}\\n' 'nvidia-*' libcuda1 nvlsm 2>/dev/null | grep -v container"
    host.run(f"{HEADERS}; {packages} | xargs -r dpkg --purge --force-all; rm -rf /var/lib/rackwright/driver")
    host.gpu.remove_driver()


@in_proof(ROWS)
@pytest.mark.parametrize("row", REFUSED)
def test_a_driver_is_refused_with_its_fix(site: Site, lived: Host, row: str) -> None:
    begins, ends, code, fix = REFUSED[row]
    lived.run(begins)
    try:
        plan = site.rackwright("plan", INVENTORY, "--limit", lived.name, *words(NEW))
        switch = site.rackwright("rollout", INVENTORY, "--drivers", "-y", "--limit", lived.name, *words(NEW))
    finally:
        lived.run(ends)
    refusal(plan.output, code, fix)
    refusal(switch.output, code, lived.name, "nothing was done", fix)
    assert switch.status == 1
    lived.run("[ ! -e /var/lib/rackwright/driver ]")


@in_proof(ROWS)
def test_the_machine_of_the_command_is_refused(site: Site, lived: Host) -> None:
    lived.run(f"umount {BOOT}")  # below it is the kernel's own, which this machine has too
    try:
        switch = site.rackwright("rollout", INVENTORY, "--drivers", "-y", "--limit", lived.name, *words(NEW))
    finally:
        lived.reboot()
    refusal(switch.output, "RW4156", lived.name)


@in_proof(ROWS)
def test_the_jump_host_to_another_one_is_refused(site: Site, lived: Host, bare: Host) -> None:
    folder = ARTEFACTS / site.lab.paths.id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ssh_config").write_text(f"Host {bare.address}\n  ProxyJump {lived.user}@{lived.address}\n")
    (folder / "behind.py").write_text(BEHIND.format(config=folder / "ssh_config", behind=bare.name))
    options = ("--drivers", "-y", "--limit", lived.name, *words(NEW))
    refusal(site.rackwright("rollout", str(folder / "behind.py"), *options).output, "RW4166", lived.name, bare.name)


@in_proof(ROWS)
def test_a_driver_without_packages_has_no_way_back(site: Site, bare: Host) -> None:
    plan = site.rackwright("plan", INVENTORY, "--limit", bare.name, *words(NEW))
    refusal(plan.output, "RW4026", OLD, "nvidia-uninstall")


@in_proof(ROWS)
def test_a_host_without_a_console_is_asked_for_by_its_name(site: Site, lived: Host) -> None:
    options = ("rollout", INVENTORY, "--drivers", "--limit", lived.name, *words(NEW, console="none"))
    refusal(site.rackwright(*options, "-y").output, "RW4186", lived.name)
    with Typed([str(BIN / "rackwright"), *options], ROOT, site.environment()) as typed:
        typed.until("Type yes to continue: ")
        typed.type("yes\n")
        typed.until(f"{lived.name} has no console: type its name to switch it anyway: ")
        typed.type("yes\n")
        typed.until("nothing was done")
        assert typed.process.wait(60) == 1
    assert module(lived) == OLD


@in_proof(ROWS)
def test_a_first_driver_that_does_not_load_says_how_it_goes_on(site: Site, bare: Host) -> None:
    take_driver(bare)
    run = site.deploy("-y", *words(BROKEN, first_by_deploy="true"), limit=[bare.name])
    assert run.status == 1, run.output
    refusal(run.output, "RW4005", BROKEN)
    assert f"rackwright rollout {INVENTORY} --drivers" in run.output
    assert module(bare) == ""


def test_a_first_deploy_brings_the_driver_and_serves(site: Site, bare: Host) -> None:
    take_driver(bare)
    before = boot(bare)
    options = words(NEW, first_by_deploy="true")
    plan = site.rackwright("plan", INVENTORY, "--limit", bare.name, *options)
    assert f"install NVIDIA's driver {NEW} and load it" in plan.output, plan.output
    run = site.deploy("-y", *options, limit=[bare.name])
    assert run.status == 0, run.output
    assert module(bare) == NEW
    assert boot(bare) == before, "a deploy restarts no host"
    assert "is answered with '42'" in run.output
    assert "nvidia-kernel-open-dkms" in bare.run("apt-mark showhold").stdout
    again = site.deploy("-y", *options, limit=[bare.name])
    assert (again.status, again.changed) == (0, []), again.output
    bare.reboot()
    assert module(bare) == NEW
    later = site.deploy("-y", *options, limit=[bare.name])
    assert (later.status, later.changed) == (0, []), later.output


@in_proof("tests/unit/test_firmware.py marks what is odd")
def test_hosts_with_several_versions_of_vbios_are_named_below_the_table_of_firmware(site: Site, lived: Host) -> None:
    usual, odd = "97.00.88.00.0F", "97.00.77.00.01"
    lived.run(f"sed -i '0,/{usual}/s//{odd}/' {MODEL}")
    try:
        found = site.rackwright("firmware", INVENTORY)
    finally:
        lived.run(f"sed -i s/{odd}/{usual}/ {MODEL}")
    assert found.status == 0, found.output
    assert texts.NONE_USUAL in found.output, "one host has each"
    assert f"{odd} on {lived.name}" in found.output


@in_proof("when a diagnosis is due has unit tests, and test_host.py has one on a bare host")
def test_a_drained_host_is_diagnosed_by_a_plain_deploy_and_its_firmware_is_shown(site: Site, bare: Host) -> None:
    options = words(NEW, first_by_deploy="true")
    if module(bare) != NEW:
        take_driver(bare)
    assert site.deploy("-y", *options, limit=[bare.name]).status == 0
    firmware = site.rackwright("firmware", INVENTORY, "--limit", bare.name)
    assert (firmware.status, "8 NVIDIA B200" in firmware.output) == (0, True), firmware.output
    drain = site.rackwright("drain", INVENTORY, "--limit", bare.name, "--reason", "diagnosis", "-y", "--anyway")
    assert drain.status == 0, drain.output
    bare.gpu.install_dcgm()
    try:
        run = site.deploy("-y", *options, limit=[bare.name])
        assert run.status == 0, run.output
        assert texts.DIAGNOSES.format(level=1) in run.output
        again = site.deploy("-y", *options, limit=[bare.name])
        assert (again.status, again.changed) == (0, []), again.output
        test = site.rackwright("diagnose", INVENTORY, "--limit", bare.name, "--level", "2")
        assert test.status == 0, test.output
        undrain = site.rackwright("undrain", INVENTORY, "--limit", bare.name, "-y")
        assert undrain.status == 0, undrain.output
        refusal(site.rackwright("diagnose", INVENTORY, "--limit", bare.name).output, "RW2627", bare.name)
    finally:
        bare.gpu.remove_dcgm()
