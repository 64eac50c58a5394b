"""What travels to a machine without a network: `pack` writes it in parts, `machine` (a shell script) uses them there.

Archives: the image without torch, what SGLang's image has beside it, the models where this machine has taught them, a
machine root with all that the lab and the product need, the project, and, where it is to measure too, aiperf's wheels.
A part holds pieces of them, so that each part is smaller than PART_MIB, or what `--part-mib` says. zstd itself
travels along, for machines that have none: it takes a sixth of xz's time here and half of it there, and its archives
are a tenth larger.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rackwright_bench.aiperf.environment import LOCK
from rackwright_lab.hosts import base
from rackwright_lab.machine.progress import Progress
from rackwright_lab.machine.shell import LabError, run
from rackwright_lab.real import builds, gpt_oss, gpu, sglang, vllm
from rackwright_lab.standins.encodings import ensure_encodings
from scripts.real_gpu.story import WHEELS

ROOT = Path(__file__).parents[2]
PART_MIB = 51
MIB = 1024 * 1024
PIECES = 2
"""Pieces of an archive that a part holds, at most."""
LEFT_OUT = (
    "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "var/lib/apt/lists", "var/cache/debconf",
    "var/cache/apt/pkgcache.bin", "var/cache/apt/srcpkgcache.bin", "var/log",
)  # fmt: skip
COMPRESS = 'tar -C "$1" --sort=name -cf - $EXCLUDE -- $NAMES | zstd -q -T0 -5 | split -b "$PIECE" -d -a 3 - "$2"'


@dataclass(frozen=True)
class What:
    """What is packed beside what every story needs."""

    bench: bool = True
    """aiperf's wheels, which `rackwright bench` alone needs."""
    sglang: bool = True
    """What the story of SGLang alone needs."""
    part_mib: int = PART_MIB
    """MiB of a part, at most."""

    @property
    def piece_mib(self) -> int:
        """MiB of an archive's piece; zstd and `machine` travel in the first part, too."""
        return (self.part_mib - 2) // PIECES


def pack(into: Path, cache: Path, say: Callable[[str], None], what: What = What()) -> list[Path]:
    """Write the parts below `into`, made again where the cache lacks something; returns their folders.

    Raises LabError when something cannot be fetched here, on a machine with a network.
    """
    begun, progress = time.monotonic(), Progress()
    work = into / "work"
    shutil.rmtree(into, ignore_errors=True)
    work.mkdir(parents=True)

    def report(message: str) -> None:
        say(f"{time.monotonic() - begun:5.0f} s  {message}")

    report("making what travels, where the cache lacks it")
    image = gpu.prepare(cache, progress)
    over = sglang.prepare(cache, progress) if what.sglang else None
    layers = base.ensure("machine", cache, progress).split(":")
    ensure_encodings(cache)
    install(work / "site")
    code(work / "code")
    if what.bench:
        report("fetching aiperf's packages")
        wheels(work / WHEELS)
        archive(work, [WHEELS], work / f"{WHEELS}.tar.zst.", [], what.piece_mib)
    report("compressing the images")
    lay_models(cache, image)
    travelling = (image / "root", image / "models", gpt_oss.models(cache))
    names = [str(path.relative_to(image.parent)) for path in travelling if path.exists()]
    archive(image.parent, names, work / "image.tar.zst.", [], what.piece_mib)
    if over is not None:
        archive(over.parent, [f"{over.name}/root"], work / "sglang.tar.zst.", [], what.piece_mib)
    report("compressing the machine's root")
    names = [f"base/{Path(layer).name}" for layer in layers]
    # The bare base's packages are for the hosts; those of the machine are installed.
    leave = [*(f"{name}/{path}" for name in names for path in LEFT_OUT), f"{names[0]}/var/cache/apt"]
    archive(cache, [*names, "encodings"], work / "machine.tar.zst.", leave, what.piece_mib)
    archive(work, ["site", "code"], work / "code.tar.zst.", [], what.piece_mib)
    parts = spread(sorted(work.glob("*.tar.zst.*")), into, what.part_mib)
    shutil.rmtree(work)
    report("done")
    return parts


def lay_models(cache: Path, image: Path) -> None:
    """Take the models from an image for the CPU, where the cache has one: they are then not taught there."""
    for build in builds.BUILDS.values():
        models = cache / "real" / build.version / vllm.key(build) / "models"
        if models.exists() and not (image / "models").exists():
            shutil.copytree(models, image / "models")


def install(site: Path) -> None:
    """Install the product's packages for Debian 12's Python, with Rackwright's metadata; its code travels apart."""
    uv = Path(sys.executable).parent / "uv"
    install_command = (uv, "pip", "install", "--quiet", "--python-version", "3.11", "--target", site)
    packages = (ROOT, ROOT / "packages/bench", ROOT / "packages/lab")
    run(*install_command, "--constraint", ROOT / "requirements/dev.txt", *packages, timeout=900)
    for name in ("rackwright", "rackwright_bench", "rackwright_engines", "rackwright_lab"):
        shutil.rmtree(site / name)


def wheels(folder: Path) -> None:
    """Download what `rackwright bench` installs for aiperf, for Debian 12's Python."""
    options = ("--no-deps", "--require-hashes", "--only-binary", ":all:", "--python-version", "3.11")
    run(
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        *options,
        "--dest",
        folder,
        "--requirement",
        LOCK,
        timeout=1800,
    )


def code(folder: Path) -> None:
    """Write the project as it is committed."""
    folder.mkdir()
    tree = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-xf", "-", "-C", folder], input=tree, check=True)


def archive(folder: Path, names: list[str], prefix: Path, leave: list[str], piece_mib: int) -> None:
    """Compress some names below a folder into pieces prefix000, prefix001, ..."""
    environment = {"EXCLUDE": " ".join(f"--exclude=./{name}" for name in leave), "PIECE": f"{piece_mib}M"}
    environment["NAMES"] = " ".join(f"./{name}" for name in names)
    run("sh", "-c", COMPRESS, "-", folder, prefix, env=environment, timeout=3600)


def spread(pieces: list[Path], into: Path, part_mib: int) -> list[Path]:
    """Lay the pieces into folders part1, part2, ... none of which is larger than part_mib.

    The first has the script that uses them, and those of stories of their own come last.
    """
    parts = [into / "part1"]
    parts[0].mkdir()
    shutil.copy(ROOT / "scripts/real_gpu/machine", parts[0] / "machine")
    carry_zstd(parts[0] / "zstd")
    room = part_mib * MIB - sum(path.stat().st_size for path in parts[0].rglob("*"))
    for piece in pieces:
        size = piece.stat().st_size
        if size > room:
            parts.append(into / f"part{len(parts) + 1}")
            parts[-1].mkdir()
            room = part_mib * MIB
        piece.rename(parts[-1] / piece.name)
        room -= size
    return parts


def carry_zstd(folder: Path) -> None:
    """Copy zstd and the libraries that it is linked to."""
    folder.mkdir()
    program = shutil.which("zstd")
    if program is None:
        raise LabError("this machine has no zstd: apt-get install zstd")
    shutil.copy(program, folder / "zstd")
    for path in re.findall(r"=> (/\S+)", run("ldd", program).stdout):
        if not Path(path).name.startswith("libc."):
            shutil.copy(path, folder)
