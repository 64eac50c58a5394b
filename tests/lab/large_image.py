"""A bundle with an image whose one layer is larger than a file of a bundle may be, made of another bundle."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from rackwright.bundle.catalog import FILE, Image, read_catalog
from rackwright.bundle.signature import SIGNATURE, SUMS
from rackwright.bundle.store import PIECE, Store
from rackwright.bundle.writing import BundleWriter
from rackwright_lab.servers.registry import HOST
from rackwright_lab.standins.oci import Layout

LARGE = f"{HOST}/nvidia/tensorrt-llm/release:1.2.0rc6"
"""A version that is known; this image has nothing of it."""
SIZE = PIECE + (64 << 20)


def with_large_image(bundle: Path, folder: Path, work: Path, machine: str = "amd64") -> str:
    """Write a bundle into a folder: what another one holds, and the image. work: a folder for it to be made in.

    Returns the image's digest.
    """
    digest = _made(work, machine)
    shutil.copytree(bundle, folder, copy_function=os.link)
    catalog = read_catalog(folder)
    for name in (FILE, SUMS, SIGNATURE):
        (folder / name).unlink()  # it is a link, and the first bundle's stays
    writer = BundleWriter(Store(folder, 1 << 50), print, catalog)
    writer.store.stored = dict(catalog.stored)
    manifest = (work / "blobs/sha256" / digest).read_bytes()
    kinds = {digest: json.loads(manifest)["mediaType"]}
    layers = [path.name for path in (work / "blobs/sha256").iterdir() if path.name != digest]
    for sha256 in (digest, *layers):
        writer.store.add(work / "blobs/sha256" / sha256, sha256)
    catalog.images.append(Image(reference=LARGE, digest=f"sha256:{digest}", kinds=kinds, layers=layers))
    writer.close()
    return f"sha256:{digest}"


def _made(work: Path, machine: str) -> str:
    """Make the image's files; its layer has one file that is a hole."""
    with (work / "hole").open("wb") as file:
        file.truncate(SIZE)
    layout = Layout(work)
    described = layout.add_image([layout.add_tree(work, ["hole"], level=0)], machine, {"Cmd": ["none"]})
    (work / "hole").unlink()
    return str(described["digest"]).removeprefix("sha256:")
