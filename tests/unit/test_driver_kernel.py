"""The kernel that comes with a driver: its entry in GRUB's menu, and what apt's plan says of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rackwright.hostside import host_script
from tests import texts

RUNNING = os.uname().release
NEW = "99.8.0-87-generic"
MENU = f"""\
menuentry 'Ubuntu' --class ubuntu --class os $menuentry_id_option 'gnulinux-simple-1f' {{
	linux /boot/vmlinuz-{NEW} root=UUID=1f ro
}}
submenu 'Advanced options for Ubuntu' $menuentry_id_option 'gnulinux-advanced-1f' {{
	menuentry 'Ubuntu, with Linux {NEW}' --class os $menuentry_id_option 'gnulinux-{NEW}-advanced-1f' {{
		linux /boot/vmlinuz-{NEW}
	}}
	menuentry 'Ubuntu, with Linux {NEW} (recovery mode)' --class os $menuentry_id_option 'gnulinux-{NEW}-recovery-1f' {{
	}}
	menuentry 'Ubuntu, with Linux {RUNNING}' --class os $menuentry_id_option 'gnulinux-{RUNNING}-advanced-1f' {{
	}}
}}
menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {{
}}
"""
PLAN = f"""\
Inst linux-modules-{NEW} ({NEW}.1 Ubuntu:24.04 [amd64])
Inst linux-image-{NEW} (99.8.0-87.88 Ubuntu:24.04/noble-updates [amd64])
Inst linux-image-generic [6.8.0-60.63] (99.8.0-87.88 Ubuntu:24.04/noble-updates [amd64])
Inst libcuda1 [580.159.04-1] (580.178.04-1 NVIDIA [amd64])
"""


def printed(tmp_path: Path, words: str, plan: str = PLAN, menu: str = MENU) -> str:
    """Return what the functions print for these words."""
    (tmp_path / "menu").write_text(menu)
    (tmp_path / "plan").write_text(plan)
    paths = f"menu={tmp_path}/menu choice={tmp_path}/choice plan={tmp_path}/plan version=580.178.04\n"
    script = 'fail() { echo "$*"; exit 1; }\n' + host_script("driver_kernel") + paths + words
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, timeout=20).stdout.strip()


@pytest.mark.parametrize(
    ("kernel", "entry"),
    [
        (NEW, f"gnulinux-advanced-1f>gnulinux-{NEW}-advanced-1f"),
        (RUNNING, f"gnulinux-advanced-1f>gnulinux-{RUNNING}-advanced-1f"),
        ("99.8.0", ""),
    ],
)
def test_an_entry_is_found_by_its_kernel(tmp_path: Path, kernel: str, entry: str) -> None:
    assert printed(tmp_path, f"entry_of {kernel}") == entry


def test_a_menu_without_a_submenu_has_the_entry_itself(tmp_path: Path) -> None:
    flat = "\n".join(row for row in MENU.splitlines() if not row.startswith("submenu")).replace("\t", "")
    assert printed(tmp_path, f"entry_of {NEW}", menu=flat) == f"gnulinux-{NEW}-advanced-1f"


@pytest.mark.parametrize(
    ("plan", "kernel"),
    [(PLAN, NEW), ("Inst libcuda1 [1] (2 NVIDIA)", ""), (f"Inst linux-image-{RUNNING} (1 Debian)", "")],
)
def test_the_kernel_of_a_plan_is_the_one_that_it_brings(tmp_path: Path, plan: str, kernel: str) -> None:
    assert printed(tmp_path, 'kernel_of "$plan"', plan) == kernel


def test_a_plan_that_writes_over_the_kernel_that_runs_is_refused(tmp_path: Path) -> None:
    over = f"Inst linux-image-{RUNNING} [6.1.1-1] (6.1.2-1 Debian:12 [amd64])\n"
    refused = printed(tmp_path, 'refuse_kernel "" "$plan"', over)
    assert texts.DRIVER_OVER_KERNEL in refused
    assert f"(linux-image-{RUNNING})" in refused
    assert printed(tmp_path, 'refuse_kernel "" "$plan"', "Inst linux-image-generic [1] (2 Ubuntu)") == ""


def test_without_grub_a_kernel_is_refused(tmp_path: Path) -> None:
    without = 'command() { [ "$2" != grub-reboot ]; }\n'
    output = printed(tmp_path, f'{without}refuse_kernel {NEW} "$plan"')
    assert texts.DRIVER_WITHOUT_GRUB in output
    assert [NEW in output, "grub-reboot" in output] == [True, True]


@pytest.mark.parametrize(
    ("kernels", "grub", "found"),
    [
        ([RUNNING], "", ""),
        ([RUNNING, NEW], "", NEW),
        ([RUNNING, NEW], "GRUB_DEFAULT=0\n", NEW),
        ([RUNNING, NEW], "GRUB_DEFAULT=saved\n", ""),
        ([RUNNING, NEW], 'GRUB_DEFAULT="1>2"\n', ""),
        ([RUNNING, f"{NEW}+headers"], "", ""),
        (["1.2.3-4-amd64", RUNNING], "", ""),
    ],
)
def test_the_kernel_of_the_next_boot_is_named_where_it_has_no_headers(
    tmp_path: Path, kernels: list[str], grub: str, found: str
) -> None:
    """GRUB boots the newest one, unless an operator has chosen another, or rackwright keeps that of now."""
    for folder in ("boot", "etc/default", "lib/modules"):
        (tmp_path / folder).mkdir(parents=True)
    for kernel in kernels:
        name, _, headers = kernel.partition("+")
        (tmp_path / "boot" / f"vmlinuz-{name}").touch()
        (tmp_path / "lib/modules" / name / ("build" if headers else "")).mkdir(parents=True)
    (tmp_path / "etc/default/grub").write_text(grub)
    script = host_script("driver_read", version="580.178.04", names="nvidia-", home=str(tmp_path), repository="x")
    for path in ("/boot", "/etc/default", "/lib/modules"):
        script = script.replace(path, f"{tmp_path}{path}")
    words = ["sh", "-c", f"have() {{ false; }}\nshow() {{ :; }}\n{script}"]
    printed = subprocess.run(words, capture_output=True, text=True, check=True, timeout=20).stdout
    assert [row for row in printed.splitlines() if row.startswith("next=")] == ([f"next={found}"] if found else [])
