"""An apt repository of the lab: its packages' scripts and control files, its index, and its signature."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path

from rackwright_lab.machine import locks
from rackwright_lab.machine.shell import run

ARCHITECTURE = "amd64"


@dataclass(frozen=True)
class Control:
    """What a package says of itself. `fields` are further lines of its control file, `scripts` maintainer scripts."""

    name: str
    version: str
    fields: Mapping[str, str] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)


def built_once(folder: Path, build: Callable[[Path, Path], None]) -> Path:
    """Return a folder of the cache, made by the first of all processes that ask for it.

    build: makes the tree of its first argument, and works in the second.
    """
    with locks.only_one(folder.name):
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as work:
                build(Path(work) / "tree", Path(work))
                (Path(work) / "tree").rename(folder)
    return folder


def package(root: Path, pool: Path, control: Control, maintainer: str) -> None:
    """Build the package of the tree `root` into `pool`; files below etc/ are its configuration files."""
    lines = {"Package": control.name, "Version": control.version, "Architecture": ARCHITECTURE}
    lines |= {"Maintainer": maintainer, **control.fields, "Description": "stand-in of the Rackwright lab"}
    folder = root / "DEBIAN"
    folder.mkdir(parents=True)
    (folder / "control").write_text("".join(f"{name}: {text}\n" for name, text in lines.items() if text))
    configuration = sorted(f"/{path.relative_to(root)}" for path in (root / "etc").rglob("*") if path.is_file())
    if configuration:
        (folder / "conffiles").write_text("\n".join(configuration) + "\n")
    for name, text in control.scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    target = pool / f"{control.name}_{control.version.rpartition(':')[2]}_{ARCHITECTURE}.deb"
    run("dpkg-deb", "--root-owner-group", "-Znone", "--build", root, target)


def index(base: Path, pool: str, lists: str) -> None:
    """Write the index of the folder `pool` into the folder `lists`; both are below `base`."""
    (base / lists).mkdir(parents=True, exist_ok=True)
    found = run("sh", "-c", 'cd "$1" && apt-ftparchive packages "$2"', "-", base, pool).stdout
    (base / lists / "Packages").write_text(found)


@cache
def fingerprints(public_key: Path) -> tuple[str, ...]:
    """Return the fingerprints of the primary keys in a key file."""
    with tempfile.TemporaryDirectory(prefix="rackwright-gnupg.") as home:
        listing = run("gpg", "--homedir", home, "--batch", "--quiet", "--show-keys", "--with-colons", public_key).stdout
    rows = [row.split(":") for row in listing.splitlines()]
    return tuple(
        following[9]
        for row, following in pairwise([row for row in rows if row[0] in ("pub", "sub", "fpr")])
        if row[0] == "pub" and following[0] == "fpr"
    )


def sign(folder: Path, name: str, origin: Sequence[str], public_key: Path, home: Path) -> None:
    """Write Release of `folder` with the lines `origin` above it, signed by a new key of that name.

    public_key: where the key is published. home: a folder for the private one, which does not outlive the call.
    """
    release = run("sh", "-c", 'cd "$1" && apt-ftparchive release .', "-", folder).stdout
    (folder / "Release").write_text("".join(f"{row}\n" for row in origin) + release)
    home.mkdir(mode=0o700)
    gpg = ("gpg", "--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", "")
    try:
        run(*gpg, "--quick-gen-key", name, "rsa3072", "sign", "never")
        run(*gpg, "--armor", "--output", public_key, "--export")
        run(*gpg, "--clearsign", "--output", folder / "InRelease", folder / "Release")
        run(*gpg, "--armor", "--detach-sign", "--output", folder / "Release.gpg", folder / "Release")
    finally:
        run("gpgconf", "--homedir", home, "--kill", "all", check=False)
        shutil.rmtree(home, ignore_errors=True)
