"""NVIDIA's container toolkit as an apt repository: names, files and pins of the real one, signed by the lab."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rackwright.lab.shell import run

FILES = Path(__file__).parent / "files"
VERSIONS = ("1.17.8", "1.18.1")
ARCHITECTURE = "amd64"
KEY_NAME = "Rackwright lab stand-in for NVIDIA CORPORATION <lab@localhost>"
LIST = "deb https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH) /\n"
CLI = '#!/bin/sh\nprintf "cli-version: {version}\\nlib-version: {version}\\n"\n'


def packages(version: str) -> dict[str, tuple[str, Mapping[str, tuple[str, int]]]]:
    """The packages of one version: name to dependencies and files (path to text and mode)."""
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
    """The repository's tree, as https://nvidia.github.io has it below its root; made once for its contents."""
    folder = cache / f"nvidia-apt-{_key()}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="nvidia-apt.") as work:
            tree = Path(work) / "tree"
            _build(tree, Path(work))
            if not folder.exists():
                tree.rename(folder)
    return folder


def _key() -> str:
    text = repr([packages(version) for version in VERSIONS]) + LIST + ARCHITECTURE
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _build(tree: Path, work: Path) -> None:
    pool = tree / "libnvidia-container/stable/deb" / ARCHITECTURE
    pool.mkdir(parents=True)
    for version in VERSIONS:
        for name, (depends, files) in packages(version).items():
            _package(work / f"{name}-{version}", pool, name, version, depends, files)
    (pool.parent / "nvidia-container-toolkit.list").write_text(LIST)
    index = run("sh", "-c", 'cd "$1" && apt-ftparchive packages .', "-", pool).stdout
    (pool / "Packages").write_text(index)
    release = run("sh", "-c", 'cd "$1" && apt-ftparchive release .', "-", pool).stdout
    (pool / "Release").write_text(f"Origin: {KEY_NAME.partition(' <')[0]}\nLabel: lab\n{release}")
    _sign(pool, tree / "libnvidia-container/gpgkey", work / "gnupg")


def _package(
    root: Path, pool: Path, name: str, version: str, depends: str, files: Mapping[str, tuple[str, int]]
) -> None:
    for place, (text, mode) in files.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text)
        (root / place).chmod(mode)
    control = root / "DEBIAN/control"
    control.parent.mkdir(parents=True)
    control.write_text(
        f"Package: {name}\nVersion: {version}-1\nArchitecture: {ARCHITECTURE}\nMaintainer: {KEY_NAME}\n"
        + (f"Depends: {depends}\n" if depends else "")
        + "Description: stand-in of the Rackwright lab\n"
    )
    configuration = [f"/{place}" for place in files if place.startswith("etc/")]
    if configuration:
        (root / "DEBIAN/conffiles").write_text("\n".join(configuration) + "\n")
    target = pool / f"{name}_{version}-1_{ARCHITECTURE}.deb"
    run("dpkg-deb", "--root-owner-group", "-Znone", "--build", root, target)


def _sign(pool: Path, public_key: Path, home: Path) -> None:
    home.mkdir(mode=0o700)
    gpg = ("gpg", "--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", "")
    try:
        run(*gpg, "--quick-gen-key", KEY_NAME, "rsa3072", "sign", "never")
        run(*gpg, "--armor", "--output", public_key, "--export")
        run(*gpg, "--clearsign", "--output", pool / "InRelease", pool / "Release")
        run(*gpg, "--armor", "--detach-sign", "--output", pool / "Release.gpg", pool / "Release")
    finally:
        run("gpgconf", "--homedir", home, "--kill", "all", check=False)
        shutil.rmtree(home, ignore_errors=True)
