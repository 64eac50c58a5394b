"""A small gpt-oss with EAGLE3 drafts of its own: `python3 -m rackwright_lab.real.gpt_oss` teaches it, once.

It prints the folder, which `rackwright lab up --models FOLDER` lets the lab's hub serve (`lab_gpu_oss.py`). The base is
bf16, of 4 layers of 4 experts, with gpt-oss's own vocabulary, harmony, attention sinks and sliding windows.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

from rackwright.messages import RackwrightError
from rackwright_lab.machine import locks
from rackwright_lab.machine.paths import cache_root
from rackwright_lab.machine.progress import Progress
from rackwright_lab.machine.shell import run
from rackwright_lab.real import builds, gpu, vllm
from rackwright_lab.real.builds import GPT_OSS, GPT_OSS_DRAFT, HERE
from rackwright_lab.standins import oci
from rackwright_lab.standins.encodings import ensure_encodings

REVISIONS = {GPT_OSS: {"v1": "base"}, GPT_OSS_DRAFT: {"v1": "trained", "v2": "weak", "v3": "random"}}
"""The repositories: what each revision is, by the names that teach_gpt_oss.py gives."""
LESSONS = (*vllm.LESSONS, "harmony.py", "teach_gpt_oss.py")


def main(arguments: list[str] | None = None) -> int:
    """Print the folder. Returns 1, and says why, where it cannot be made."""
    parser = argparse.ArgumentParser(prog="python3 -m rackwright_lab.real.gpt_oss", description=__doc__)
    parser.add_argument("--without-gpu", action="store_true", help="teach by the torch of the real vLLM for the CPU")
    args = parser.parse_args(arguments)
    try:
        print(ensure(cache_root(), args.without_gpu, Progress()))
    except RackwrightError as error:
        print(f"gpt_oss: {error}", file=sys.stderr)
        return 1
    return 0


def models(cache: Path) -> Path:
    """Return the folder that has them once they are taught; other lessons give another."""
    digest = hashlib.sha256(repr(REVISIONS).encode())
    for name in LESSONS:
        digest.update((HERE / name).read_bytes())
    return cache / "real-gpu" / f"gpt-oss-{digest.hexdigest()[:12]}"


def ensure(cache: Path, without_gpu: bool, progress: Progress) -> Path:
    """Return the folder of the models, taught now if the cache lacks it, by the torch of a real vLLM's image.

    Raises LabError when that image cannot be made, or a model did not learn its lessons.
    """
    folder = models(cache)
    with locks.only_one("real-gpt-oss"):
        if not folder.exists():
            build = builds.NEWEST
            made = vllm.ensure(build, cache, progress) if without_gpu else gpu.build(cache, progress)
            with progress.step("teaching a small gpt-oss and its drafts"):
                _make(oci.layers(made / "layout", build.image if without_gpu else gpu.IMAGE), cache, folder)
    return folder


def _make(layers: list[Path], cache: Path, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        root = Path(work, "root")
        root.mkdir()
        for layer in layers:
            run("tar", "-xzf", layer, "-C", root, timeout=1800)
        teach(root, cache, Path(work, "taught"))
        lay(Path(work, "taught"), Path(work, "models"))
        Path(work, "models").rename(folder)


def teach(root: Path, cache: Path, taught: Path) -> None:
    """Teach the models inside the image's root, and take them out of it. Raises LabError when one did not learn."""
    encoding = next(file for file in ensure_encodings(cache) if file.name.startswith("o200k"))
    shutil.copy(encoding, root / encoding.name)
    vllm.run_inside(root, LESSONS, "teach_gpt_oss", f"/{encoding.name}", f"{vllm.TAUGHT}/models")
    vllm.take_out(root, taught)


def lay(taught: Path, folder: Path) -> None:
    """Lay the revisions of each repository as `rackwright lab up --models` wants them."""
    for repository, revisions in REVISIONS.items():
        for revision, kind in revisions.items():
            shutil.copytree(taught / kind, folder / repository / revision)


if __name__ == "__main__":
    sys.exit(main())
