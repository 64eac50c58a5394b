"""NVIDIA's container toolkit as an apt repository: names, files and pins of the real one, signed by the lab."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from rackwright_lab.gpu.pose import FILES
from rackwright_lab.servers import aptrepo
from rackwright_lab.servers.aptrepo import ARCHITECTURE, Control

VERSIONS = ("1.17.8", "1.18.1")
KEY_NAME = "Rackwright lab stand-in for NVIDIA CORPORATION <lab@localhost>"
LIST = "deb https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH) /\n"
CLI = '#!/bin/sh\nprintf "cli-version: {version}\\nlib-version: {version}\\n"\n'


def packages(version: str) -> dict[str, tuple[str, Mapping[str, tuple[str, int]]]]:
    """Return the packages of one version: name to dependencies and files (path to text and mode)."""
    exact = f"(= {version}-1)"
    runtime, control = (
        (FILES / name).read_text().replace("@VERSION@", version) for name in ("nvidia-container-runtime", "nvidia-ctk")
    )
    return {
        "libnvidia-container1": ("", {}),
        "libnvidia-container-tools": (
            f"libnvidia-container1 {exact}",
            {"usr/bin/nvidia-container-cli": (CLI.format(version=version), 0o755)},
        ),
        # The stand-ins are shell scripts, and edit JSON with jq.
        "nvidia-container-toolkit-base": (
            "jq",
            {
                "usr/bin/nvidia-container-runtime": (runtime, 0o755),
                "usr/bin/nvidia-ctk": (control, 0o755),
                "etc/nvidia-container-runtime/config.toml": ((FILES / "config.toml").read_text(), 0o644),
            },
        ),
        "nvidia-container-toolkit": (
            f"nvidia-container-toolkit-base {exact}, libnvidia-container-tools {exact}",
            {},
        ),
    }


def repository(cache: Path) -> Path:
    """Return the repository's tree, as https://nvidia.github.io has it below its root; made once for its contents."""
    return aptrepo.built_once(cache / f"nvidia-apt-{_key()}", _build)


def _key() -> str:
    text = repr([packages(version) for version in VERSIONS]) + LIST + ARCHITECTURE
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _build(tree: Path, work: Path) -> None:
    pool = tree / "libnvidia-container/stable/deb" / ARCHITECTURE
    pool.mkdir(parents=True)
    for version in VERSIONS:
        for name, (depends, files) in packages(version).items():
            root = work / f"{name}-{version}"
            _lay(root, files)
            aptrepo.package(root, pool, Control(name, f"{version}-1", {"Depends": depends}), KEY_NAME)
    (pool.parent / "nvidia-container-toolkit.list").write_text(LIST)
    aptrepo.index(pool, ".", ".")
    origin = (f"Origin: {KEY_NAME.partition(' <')[0]}", "Label: lab")
    aptrepo.sign(pool, KEY_NAME, origin, tree / "libnvidia-container/gpgkey", work / "gnupg")


def _lay(root: Path, files: Mapping[str, tuple[str, int]]) -> None:
    for path, (text, mode) in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        (root / path).chmod(mode)
