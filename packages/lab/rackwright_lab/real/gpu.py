"""An image with a real vLLM for NVIDIA GPUs, and the settings of an endpoint that serves the small model on one.

An Ubuntu with Python and a C compiler, which Triton needs on a GPU; vLLM's packages, locked (vllm-0.20.2-gpu.txt,
resolved as of 2026-05-20); torch and CUDA's libraries, from PyPI too, or from this machine where it has that torch
(RACKWRIGHT_REAL_TORCH names its folder of packages): they are 5 GB. `prepare` makes all but the last, and may do so on
another machine.
"""

from __future__ import annotations

import hashlib
import importlib.metadata as metadata
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rackwright_lab.machine import inherited, locks, ubuntu
from rackwright_lab.machine.progress import Progress
from rackwright_lab.machine.shell import LabError, run
from rackwright_lab.machine.trees import remove_tree
from rackwright_lab.real import image, vllm
from rackwright_lab.real.builds import ENDPOINT, ENGINE, HERE, NGRAM
from rackwright_lab.standins import oci, rootfs

VERSION = "0.20.2"
TITLE = f"vLLM {VERSION} for NVIDIA GPUs, put together by the lab"
TORCH = "2.11.0"
GLIBC = 39
"""Ubuntu 24.04's is 2.39."""
IMAGE = f"vllm/vllm-openai:v{VERSION}-lab"
"""No published tag: the image is the lab's own, and says so."""
SITE = "usr/local/lib/python3.12/dist-packages"
LOCKED = HERE / f"vllm-{VERSION}-gpu.txt"
LOCKED_TORCH = HERE / f"torch-{TORCH}.txt"
TORCH_FOLDER = "RACKWRIGHT_REAL_TORCH"
PACKAGES = ("python3", "python3-dev", "gcc", "libc6-dev", "ca-certificates", "libnuma1", "libgomp1")
LEFT_OUT = (
    "vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so", "vllm/third_party/deep_gemm/include", "bin",
)  # fmt: skip
"""Kernels of attention that this endpoint does not use (the models import FlashAttention 3), headers, scripts."""
NEVER_READ = (
    "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/perl", "usr/share/icons",
    "usr/lib/x86_64-linux-gnu/perl", "var/lib/apt", "var/cache", "var/log", "usr/lib/gcc/x86_64-linux-gnu/13/lto1",
    "usr/libexec/gcc/x86_64-linux-gnu/13/lto1", "usr/libexec/gcc/x86_64-linux-gnu/13/cc1plus", "etc/apt", "tmp",
    "dev", "etc/resolv.conf", "etc/hostname", "etc/machine-id",
)  # fmt: skip
STATIC = ("usr/lib/**/*.a", "usr/lib/python3.12/test")
NEEDED_STATIC = ("libgcc.a", "libc_nonshared.a", "libgcc_eh.a", "libpthread.a", "libdl.a", "libm.a", "librt.a")
ENVIRONMENT = {
    "PATH": "/usr/local/nvidia/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LD_LIBRARY_PATH": "/usr/local/nvidia/lib64",
    "PYTHONUNBUFFERED": "1",
    "NVIDIA_VISIBLE_DEVICES": "all",
    "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    "VLLM_NO_USAGE_STATS": "1",
    # FlashInfer is not in the image: it would bring a gigabyte of kernels.
    "VLLM_USE_FLASHINFER_SAMPLER": "0",
    # Nothing is compiled at start but Triton's own kernels: a start takes half a minute less.
    "TORCHDYNAMO_DISABLE": "1",
    "HOME": "/tmp",
}
SCRIPTS = vllm.SCRIPTS
SETTINGS: dict[str, Any] = {
    **ENDPOINT,
    "image": IMAGE,
    "engine": {
        **ENGINE,
        "attention-backend": "TRITON_ATTN",
        "gpu-memory-utilization": 0.05,
        "speculative-config": NGRAM,
    },
    # DeepGEMM compiles its kernels with CUDA's compiler, which is not in the image: without this the engine dies as it
    # warms up on Hopper (vllm/model_executor/warmup/deep_gemm_warmup.py of 0.20.2).
    "environment": {"VLLM_USE_DEEP_GEMM": "0", "VLLM_DEEP_GEMM_WARMUP": "skip"},
    "load_timeout": 300,
}
"""Settings of an endpoint that serves it on the first GPU, with drafts by the prompt's own words."""
# Multicast is a matter of all GPUs of an NVSwitch domain, which other machines may share with this one.
WITHOUT_MULTICAST = {
    "NCCL_NVLS_ENABLE": "0",
    "NVSHMEM_DISABLE_NVLS": "1",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "VLLM_ALLREDUCE_USE_SYMM_MEM": "0",
}
"""Environment that keeps NVLink's multicast off, in NCCL, NVSHMEM, torch and vLLM."""
COMPILE = (
    "find /usr/lib/python3.12 /usr/local/lib/python3.12 -name '*.py' -print0 | "
    'xargs -0 -P "$(nproc)" -n 200 /usr/bin/python3 -m compileall -q --invalidation-mode unchecked-hash'
)
"""Byte code is next to the sources, as pip leaves it in a published image; layers here carry no times to compare."""
INSIDE = 'mount --bind /dev "$1/dev" && exec chroot "$1" sh -c "$2"'
# Raise it when the image is made in another way that neither its packages nor its settings show.
FORMAT = 2


def key() -> str:
    """Name the contents: another lock, lesson or recipe gives another key."""
    digest = hashlib.sha256(repr((FORMAT, PACKAGES, LEFT_OUT, ENVIRONMENT, SCRIPTS, vllm.REVISIONS)).encode())
    for source in (LOCKED, LOCKED_TORCH, *(HERE / name for name in vllm.LESSONS)):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def build(cache: Path, progress: Progress) -> Path:
    """Return the folder with `layout` (the image) and `models`, made now if the cache lacks it.

    Raises LabError when packages cannot be had, or the model did not learn its answers.
    """
    folder = cache / "real-gpu" / f"vllm-{key()}"
    with locks.only_one("real-vllm-gpu"):
        if not (folder / "layout").exists():
            prepare(cache, progress)
            with progress.step("making the image of the real vLLM for GPUs (torch and CUDA's libraries are 5 GB)"):
                _finish(folder, progress)
    return folder


def prepare(cache: Path, progress: Progress) -> Path:
    """Make what can be made without torch, `root`, and return its folder."""
    folder = cache / "real-gpu" / f"vllm-{key()}"
    root = folder / "root"
    # Another run would remove what this one has half made.
    with locks.only_one("real-vllm-gpu-root"):
        if not root.exists():
            partial = folder / "partial"
            remove_tree(partial)
            partial.mkdir(parents=True)
            with progress.step("making an Ubuntu with vLLM's packages (0.6 GB from PyPI)"):
                _make_system(partial, cache)
                _install(partial, LOCKED)
                _lighten(partial)
            partial.rename(root)
    return folder


def _make_system(root: Path, cache: Path) -> None:
    options = [f"--aptopt={setting}" for setting in inherited.apt_options()]
    run(
        "mmdebstrap", "--mode=root", "--variant=minbase", f"--include={','.join(PACKAGES)}", *options,
        f"--keyring={ubuntu.keyring(cache)}", "--dpkgopt=force-unsafe-io", "--skip=check/empty", ubuntu.SUITE, root,
        "-", stdin=ubuntu.sources_list(),
    )  # fmt: skip
    for name in NEVER_READ:
        path = root / name
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    for pattern in STATIC:
        for path in sorted(root.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name not in NEEDED_STATIC:
                path.unlink()
    for name in ("tmp", "dev", "var/cache", "var/log"):
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)


def _install(root: Path, locked: Path) -> None:
    """Install what is locked, for the image's Python. Raises LabError with pip's own words."""
    image.install(root / SITE, locked, "3.12", ("manylinux1_x86_64", *image.manylinux(GLIBC)))


def _lighten(root: Path) -> None:
    for name in LEFT_OUT:
        path = root / SITE / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    rootfs.add_scripts(root, SCRIPTS)
    (root / "vllm-workspace").mkdir()


def _finish(folder: Path, progress: Progress) -> None:
    root = folder / "root"
    base = rootfs.files_below(root)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        # What is added to the root is taken away again: the next try starts from the same.
        added = Path(work) / "added"
        (added / SITE).mkdir(parents=True)
        _add_torch(added, progress)
        with _together(root, added, Path(work)) as (whole, compiled):
            progress.say("compiling Python's sources")
            # Some packages hold templates that are no Python.
            run("unshare", "--mount", "sh", "-c", INSIDE, "compile", whole, COMPILE, timeout=1800, check=False)
            progress.say("writing the image's layers")
            layout = oci.Layout(Path(work) / "layout")
            trees = {root: base, added: rootfs.files_below(added), compiled: rootfs.files_below(compiled)}
            layers = [layout.add_tree(tree, names, level=0) for tree, names in trees.items()]
            layout.tag(layout.add_image(layers, "amd64", image.config(ENVIRONMENT, TITLE)), IMAGE)
            layout.close()
            if not (folder / "models").exists():
                progress.say("teaching the models")
                vllm.teach(whole, Path(work) / "models")
                (Path(work) / "models").rename(folder / "models")
        (Path(work) / "layout").rename(folder / "layout")


@contextmanager
def _together(root: Path, added: Path, work: Path) -> Iterator[tuple[Path, Path]]:
    """Mount the whole system as one folder, and yield it with the folder that gets whatever is written there."""
    whole, written, busy = (work / name for name in ("together", "written", "busy"))
    for path in (whole, written, busy):
        path.mkdir()
    layers = f"lowerdir={added}:{root},upperdir={written},workdir={busy}"
    run("mount", "-t", "overlay", "-o", layers, "together", whole)
    try:
        yield whole, written
    finally:
        run("umount", whole)


def _add_torch(root: Path, progress: Progress) -> None:
    given = os.environ.get(TORCH_FOLDER)
    if not given:
        progress.say("fetching torch and CUDA's libraries from PyPI")
        _install(root, LOCKED_TORCH)
        return
    progress.say(f"taking torch from {given}")
    for one in torch_of(Path(given)):
        for file in one.files or ():
            source = Path(str(one.locate_file(file)))
            if ".." in file.parts or "__pycache__" in file.parts or not source.is_file():
                continue
            target = root / SITE / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def torch_of(site: Path) -> list[metadata.Distribution]:
    """Torch, its relatives and CUDA's libraries, as a folder of packages has them.

    Raises LabError when it has no torch, or another version than the one this vLLM was built for.
    """
    packages = {_plain(one.metadata["Name"]): one for one in metadata.distributions(path=[str(site)])}
    torch = packages.get("torch")
    if torch is None or torch.version.partition("+")[0] != TORCH:
        has = f"torch {torch.version}" if torch is not None else "no torch"
        raise LabError(f"{TORCH_FOLDER}={site} has {has}, and vLLM {VERSION} needs {TORCH}: unset it to use PyPI's")
    named = re.findall(r"^([\w.-]+)==", LOCKED_TORCH.read_text(), re.MULTILINE)
    return [packages[_plain(name)] for name in named if _plain(name) in packages]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
