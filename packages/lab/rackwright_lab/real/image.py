"""What the images of a real vLLM have in common: locked packages for the image's own Python, and how it is started."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rackwright_lab.machine.shell import run


def install(target: Path, locked: Path, python: str, platforms: Iterable[str]) -> None:
    """Install what is locked into a folder of packages. Raises LabError with pip's own words.

    python: the image's, as `3.12`. platforms: those whose wheels run there.
    """
    run(
        sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--no-cache-dir",
        "--require-hashes", "--only-binary=:all:", f"--python-version={python}", "--implementation=cp",
        f"--abi=cp{python.replace('.', '')}", "--abi=abi3", "--abi=none", *(f"--platform={name}" for name in platforms),
        "--target", target, "--requirement", locked, timeout=3600,
    )  # fmt: skip


def manylinux(newest_glibc: int) -> tuple[str, ...]:
    """Return the platforms that run on a system by the minor version of its glibc."""
    return ("manylinux2014_x86_64", *(f"manylinux_2_{minor}_x86_64" for minor in range(5, newest_glibc + 1)))


def config(environment: Mapping[str, str], title: str) -> dict[str, Any]:
    """Return the image's configuration: it serves."""
    return {
        "Env": [f"{name}={value}" for name, value in environment.items()],
        "Entrypoint": ["vllm", "serve"],
        "WorkingDir": "/vllm-workspace",
        "Labels": {"org.opencontainers.image.title": title},
    }
