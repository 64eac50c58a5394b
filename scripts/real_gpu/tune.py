"""The story of a tune on a GPU: drafts tried under a bound, the winner kept and offered; and what the hardware says."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from scripts.real_gpu.drafts import INVENTORY, PROVED, chat, deploy, teardown
from scripts.real_gpu.story import Step, data, lab_up, rackwright

SUITE = "bench/tune_draft.yml"
VARIANTS = "baseline,ngram"
"""Tried beside the settings, which draft by EAGLE3."""
BOUNDS = ("ttft_p95 <= 500", "context >= 512")
LONGEST = 540
"""Seconds of the tune, in which three rounds of three variants fit where a load takes half a minute."""
LOAD = ("--context", "128", "--concurrency", "8")
"""Of the suite's cell."""
OTHER_DRIVER = data(driver={"version": "580.178.04", "console": "none"})
PENDING = 2
"""Exit status of a plan with changes: the host is bare."""
DRIVER = """\
nvidia-smi --query-gpu=name,driver_version,vbios_version,inforom.image,ecc.mode.current,persistence_mode --format=csv
nvidia-smi -L; cat /proc/driver/nvidia/version; uname -r
for name in modinfo dkms mokutil dcgmi nvidia-persistenced nv-fabricmanager; do
  command -v "$name" || echo "$name: not there"
done
modinfo -F license nvidia; dpkg-query -W 'nvidia*' 'libnvidia*'
ls -l /sys/firmware/efi/efivars /lib/modules /sys/module/nvidia /sys/bus/pci/devices /etc/dgx-release /boot
cd /sys/class/dmi/id && head product_name sys_vendor bios_version; head /sys/module/nvidia/version
exit 0"""
"""Commands that show the facts by which a driver is switched, as the machine says them."""
SAME = """\
said=$({smi}); echo "nvidia-smi: $said"
{firmware}
{firmware} | grep -F -- "$said" """
KEPT = """\
cat {file}
name=$(sed -n 's/^  \\([a-z0-9][^ ]*\\):$/\\1/p' {file} | head -n 1)
{advise} --preset "$name" """


def steps(lab: str, offline: bool, number: int = 1) -> Iterator[Step]:
    """Every step on one host, in order, from a lab that boots to one that ends."""
    name = f"{lab}-bare{number}"
    yield lab_up(lab, 1, offline)
    yield from _hardware(name, lab)
    yield deploy("deploy", INVENTORY, name, PROVED)
    yield Step("status", rackwright("status", INVENTORY, "--limit", name), says="serving")
    busy = rackwright("diagnose", INVENTORY, "--limit", name, "--plain")
    yield Step("diagnosis is refused while it serves", busy, right=(1,), says="serves here")
    yield from _tuned(name, lab)
    yield chat(INVENTORY, name, "chat after the tune")
    yield Step("drift after the tune", rackwright("drift", INVENTORY, "--limit", name))
    yield teardown(INVENTORY, name, "teardown")
    yield Step("lab down", rackwright("lab", "down", "--id", lab))


def _hardware(name: str, lab: str) -> Iterator[Step]:
    """Read what the real GPU and its driver say, before anything is installed."""
    ssh = ("lab", "ssh", "--id", lab, name)
    yield Step("driver in the machine's words", rackwright(*ssh, DRIVER), says="NVRM version")
    smi = rackwright(*ssh, "nvidia-smi --query-gpu=vbios_version --format=csv,noheader | sort -u")
    firmware = rackwright("firmware", INVENTORY, "--limit", name)
    yield _shell("firmware", SAME.format(smi=shlex.join(smi), firmware=shlex.join(firmware)))
    values = rackwright("firmware", INVENTORY, "--limit", name, "--json")
    yield Step("firmware for programs", values, says="VBIOS")
    bare = rackwright("diagnose", INVENTORY, "--limit", name, "--plain")
    yield Step("diagnosis without dcgmi", bare, right=(1,), says="dcgmi is not installed")
    yield Step("check", rackwright("check", INVENTORY, "--limit", name))
    yield Step("plan", rackwright("plan", INVENTORY, "--limit", name), right=(PENDING,))
    other = rackwright("plan", INVENTORY, "--limit", name, *OTHER_DRIVER)
    yield Step("plan of another driver", other, right=(PENDING,), says="RW4026")


def _tuned(name: str, lab: str) -> Iterator[Step]:
    advise = rackwright("advise", "-i", INVENTORY, "--limit", name, *LOAD)
    yield Step("advice before the tune", advise, right=(0, 1))
    bounds = (argument for bound in BOUNDS for argument in ("--bound", bound))
    limits = ("--rounds", "3", "--timeout", str(LONGEST))
    words = ("bench", INVENTORY, "--limit", name, "--suite", SUITE, "--tune", VARIANTS, *bounds, *limits)
    tune = rackwright(*words)
    yield Step("plan of the tune", (*tune, "--plan"), says="baseline")
    yield Step("tune", (*tune, "-y"), seconds=LONGEST + 120, says="kept as preset")
    yield Step("advice after the tune", advise, says="proven by this site")
    file = f"rackwright.presets.{lab}.yml"
    yield _shell("preset that was kept", KEPT.format(file=file, advise=shlex.join(advise)))


def _shell(name: str, script: str) -> Step:
    return Step(name, ("sh", "-e", "-c", script))
