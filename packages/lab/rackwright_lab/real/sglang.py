"""An image with a real SGLang for NVIDIA GPUs, laid over the lab's image of vLLM, whose torch and CUDA it shares.

SGLang's packages (sglang-0.5.11.txt, resolved as of the same day as vLLM's) are in a folder of their own, as far as
they are others than vLLM's. SGLang compiles some of its kernels as it starts and at the first request, so the image has
CUDA's compiler and a C++ one, as the published image has.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rackwright_lab.machine import inherited, locks, ubuntu
from rackwright_lab.machine.progress import Progress
from rackwright_lab.machine.shell import run
from rackwright_lab.machine.trees import remove_tree
from rackwright_lab.real import gpu, image
from rackwright_lab.real.builds import EAGLE3_DRAFT, ENDPOINT, HERE
from rackwright_lab.standins import oci, rootfs

VERSION = "0.5.11"
TITLE = f"SGLang {VERSION} for NVIDIA GPUs, put together by the lab"
IMAGE = f"lmsysorg/sglang:v{VERSION}-lab"
"""No published tag: the image is the lab's own, and says so."""
LOCKED = HERE / f"sglang-{VERSION}.txt"
OWN = "opt/sglang"
CUDA = f"{gpu.SITE}/nvidia/cu13"
COMPILERS = ("g++", "make")
ENTRY = "opt/nvidia/nvidia_entrypoint.sh"
LEFT_OUT = (
    f"{OWN}/sgl_kernel/flash_ops*", f"{OWN}/nvidia", f"{CUDA}/bin/nvlink", f"{CUDA}/lib/libnvvm.so*",
    f"{OWN}/torch*.dist-info/RECORD",
)  # fmt: skip
"""Attention kernels of 274 MB that `triton` does not need, and parts of the compiler that no kernel here meets."""
HIDDEN = (f"{gpu.SITE}/.wh.vllm", f"{gpu.SITE}/.wh.vllm-{gpu.VERSION}.dist-info")
"""Whiteouts: SGLang would import a vLLM that it finds."""
ENVIRONMENT = {
    **gpu.ENVIRONMENT,
    "PATH": f"/{OWN}/bin:/{CUDA}/bin:{gpu.ENVIRONMENT['PATH']}",
    "PYTHONPATH": f"/{OWN}",
    "CUDA_HOME": f"/{CUDA}",
}
ENGINE: dict[str, Any] = {
    "context-length": 1024,
    "attention-backend": "triton",
    "sampling-backend": "pytorch",
    "mem-fraction-static": 0.2,
    "disable-cuda-graph": True,
    "tool-call-parser": "hermes",
    "enable-metrics": True,
}
SETTINGS: dict[str, Any] = {
    **ENDPOINT, "engine_kind": "sglang", "image": IMAGE, "engine": ENGINE, "load_timeout": 600,
    "gate": {"level": "full"},
}  # fmt: skip
"""Settings of an endpoint that serves the small model on the first GPU."""
EAGLE3: dict[str, Any] = {
    "speculative-algorithm": "EAGLE3",
    "speculative-draft-model-path": EAGLE3_DRAFT["mount"],
    "speculative-num-steps": 3,
    "speculative-eagle-topk": 1,
    "speculative-num-draft-tokens": 4,
}
"""Options that draft by EAGLE3_DRAFT."""
LINKS = {
    f"{CUDA}/lib64": "lib",
    f"{CUDA}/lib/libcudart.so": "libcudart.so.13",
    f"{CUDA}/lib/stubs/libcuda.so": "/usr/local/nvidia/lib64/libcuda.so.1",
    "usr/bin/c++": "g++",
}
"""Names by which compilers look for CUDA's libraries, and by which they are started themselves."""
PROGRAMS = ("ninja",)
"""Packages whose program is needed: vLLM's image has only their modules."""
# Raise it when the image is made in another way that neither its packages nor its settings show.
FORMAT = 1


def key() -> str:
    """Name the contents: another lock, recipe or vLLM below it gives another key."""
    recipe = (FORMAT, COMPILERS, LEFT_OUT, HIDDEN, ENVIRONMENT, LINKS, gpu.key())
    return hashlib.sha256(repr(recipe).encode() + LOCKED.read_bytes()).hexdigest()[:12]


def folder_of(cache: Path) -> Path:
    """Return the folder that holds, or will hold, `root` and `layout`."""
    return cache / "real-gpu" / f"sglang-{key()}"


def build(cache: Path, progress: Progress) -> Path:
    """Return the folder with `layout` (the image), made now if the cache lacks it.

    Raises LabError when packages cannot be had.
    """
    folder = folder_of(cache)
    below = gpu.build(cache, progress)
    with locks.only_one("real-sglang-gpu"):
        if not (folder / "layout").exists():
            prepare(cache, progress)
            with progress.step("making the image of the real SGLang for GPUs"):
                _finish(folder, below / "layout")
    return folder


def prepare(cache: Path, progress: Progress) -> Path:
    """Make the layer that lies over vLLM's, `root`, and return its folder. Makes vLLM's own, too."""
    folder = folder_of(cache)
    root = folder / "root"
    below = gpu.prepare(cache, progress) / "root"
    if not root.exists():
        partial = folder / "partial"
        remove_tree(partial)
        partial.mkdir(parents=True)
        with progress.step("making a layer with SGLang's packages and compilers (0.6 GB from PyPI)"):
            _add_compilers(partial, below, cache)
            _install(partial, folder)
            _lighten(partial)
        partial.rename(root)
    return folder


def _add_compilers(root: Path, below: Path, cache: Path) -> None:
    options = [f"--aptopt={setting}" for setting in inherited.apt_options()]
    run(
        "mmdebstrap", "--mode=root", "--variant=extract", f"--include={','.join(COMPILERS)}", *options,
        f"--keyring={ubuntu.keyring(cache)}", "--skip=check/empty", ubuntu.SUITE, root, "-",
        stdin=ubuntu.sources_list(), timeout=900,
    )  # fmt: skip
    for name in gpu.NEVER_READ:
        path = root / name
        if "cc1plus" not in name:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif os.path.lexists(below / path.relative_to(root)):
            path.unlink()


def _install(root: Path, work: Path) -> None:
    """Install what is locked and vLLM's image has not in the same version."""
    wanted = work / "wanted.txt"
    wanted.write_text("".join(_others(LOCKED, gpu.LOCKED, gpu.LOCKED_TORCH)))
    platforms = ("manylinux1_x86_64", "manylinux2010_x86_64", *image.manylinux(gpu.GLIBC))
    image.install(root / OWN, wanted, "3.12", platforms)
    wanted.unlink()
    shutil.copytree(root / OWN / "nvidia/cu13", root / CUDA, dirs_exist_ok=True, symlinks=True)


def _others(locked: Path, *others: Path) -> Iterator[str]:
    """Yield the requirements of a lock file that no other has in the same version, or has without their program."""
    present = {pin for other in others for pin in _pins(other.read_text())}
    for block in re.split(r"(?m)^(?=[\w.-]+==)", locked.read_text()):
        if not present.intersection(_pins(block)) or block.partition("==")[0] in PROGRAMS:
            yield block


def _pins(text: str) -> list[str]:
    return re.findall(r"^([\w.-]+==[^\s;\\]+)", text, re.MULTILINE)


def _lighten(root: Path) -> None:
    for pattern in LEFT_OUT:
        for path in sorted(root.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in HIDDEN:
        (root / name).touch()
    for name, target in LINKS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target)
    for path in (root / CUDA / "bin", root / CUDA / "nvvm/bin", root / OWN / "bin"):
        for program in path.glob("*"):
            program.chmod(0o755)
    rootfs.add_scripts(root, {ENTRY: rootfs.COMMON_SCRIPTS[ENTRY]})
    (root / "sgl-workspace/sglang").mkdir(parents=True)


def _finish(folder: Path, below: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as work:
        layout = oci.Layout(Path(work) / "layout")
        packages = layout.add_tree(folder / "root", rootfs.files_below(folder / "root"), level=0)
        both = [*layout.take(below, gpu.IMAGE), packages]
        layout.tag(layout.add_image(both, "amd64", config()), IMAGE)
        layout.close()
        (Path(work) / "layout").rename(folder / "layout")


def config() -> dict[str, Any]:
    """Return the image's configuration, as the published one's: it runs what it is asked to run."""
    made = image.config(ENVIRONMENT, TITLE)
    return {**made, "Entrypoint": [f"/{ENTRY}"], "WorkingDir": "/sgl-workspace/sglang"}
