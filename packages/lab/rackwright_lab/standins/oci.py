"""An OCI image layout on disk: blobs by digest, and an index that names tags."""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_EPOCH = "1970-01-01T00:00:00Z"


@dataclass(frozen=True)
class Layer:
    """A layer in the layout: what a manifest says of it, and the digest of the bare tar file."""

    descriptor: dict[str, Any]
    diff_id: str


class Layout:
    """A layout that is being written. Call `close` when all tags are in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tags: list[dict[str, Any]] = []
        (folder / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)

    def _blob(self, data: bytes, media_type: str) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        (self._folder / "blobs" / "sha256" / digest).write_bytes(data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def _document(self, content: dict[str, Any], media_type: str) -> dict[str, Any]:
        return self._blob(json.dumps(content, sort_keys=True).encode(), media_type)

    def add_layer(self, tar: bytes) -> Layer:
        """Store a tar file as a layer."""
        descriptor = self._blob(gzip.compress(tar, compresslevel=3, mtime=0), _LAYER)
        return Layer(descriptor, f"sha256:{hashlib.sha256(tar).hexdigest()}")

    def add_tree(self, root: Path, names: Iterable[str], level: int = 1) -> Layer:
        """Store files below a root as a layer, without holding them in memory. level: of gzip; 0 saves time only."""
        blob = self._folder / "blobs" / "sha256" / "partial"
        with blob.open("wb") as file:
            packed = _Counted(file)
            with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=level, mtime=0) as zipped:
                bare = _Counted(zipped)
                with tarfile.open(fileobj=bare, mode="w|", format=tarfile.GNU_FORMAT) as tar:  # type: ignore[call-overload]
                    for name in sorted(names):
                        tar.add(root / name, arcname=name, recursive=False, filter=plain)
        blob.rename(blob.with_name(packed.digest))
        descriptor = {"mediaType": _LAYER, "digest": f"sha256:{packed.digest}", "size": packed.size}
        return Layer(descriptor, f"sha256:{bare.digest}")

    def add_image(self, layers: list[Layer], architecture: str, config: dict[str, Any]) -> dict[str, Any]:
        """Store configuration and manifest of one image; returns its descriptor."""
        described = self._document(
            {
                "architecture": architecture, "os": "linux", "created": _EPOCH, "config": config,
                "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
                "history": [{"created": _EPOCH, "created_by": "rackwright lab"} for _ in layers],
            },
            _CONFIG,
        )  # fmt: skip
        manifest = {
            "schemaVersion": 2, "mediaType": MANIFEST, "config": described,
            "layers": [layer.descriptor for layer in layers],
        }  # fmt: skip
        platform = {"architecture": architecture, "os": "linux"}
        return {**self._document(manifest, MANIFEST), "platform": platform}

    def take(self, other: Path, name: str) -> list[Layer]:
        """Share the layers of another layout's image on the same disk; returns them, lowest first."""
        manifest, blobs = _read(other, tags(other)[name]), self._folder / "blobs" / "sha256"
        for descriptor in manifest["layers"]:
            digest = descriptor["digest"].removeprefix("sha256:")
            (blobs / digest).hardlink_to(other / "blobs" / "sha256" / digest)
        diff_ids = _read(other, manifest["config"]["digest"])["rootfs"]["diff_ids"]
        return [Layer(*pair) for pair in zip(manifest["layers"], diff_ids, strict=True)]

    def add_index(self, images: list[dict[str, Any]]) -> dict[str, Any]:
        """Store an index over images of several architectures; returns its descriptor."""
        return self._document({"schemaVersion": 2, "mediaType": INDEX, "manifests": images}, INDEX)

    def tag(self, descriptor: dict[str, Any], name: str) -> None:
        """Give an image or an index a tag."""
        self._tags.append({**descriptor, "annotations": {"org.opencontainers.image.ref.name": name}})

    def close(self) -> None:
        """Write the layout's own index; before this the folder is not a layout."""
        (self._folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": self._tags}
        (self._folder / "index.json").write_text(json.dumps(index, indent=1))


class _Counted:
    """Passes bytes on to a file, and counts and hashes them."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self._file, self._hash, self.size = file, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        """Pass on."""
        self._hash.update(data)
        self.size += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Do nothing: gzip flushes its file."""

    @property
    def digest(self) -> str:
        """The hexadecimal SHA-256 of what was written."""
        return self._hash.hexdigest()


def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return the entry without times and names of users, so that the same contents give the same bytes."""
    entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def _read(folder: Path, digest: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "blobs" / "sha256" / digest.removeprefix("sha256:")).read_text())
    return found


def tags(folder: Path) -> dict[str, str]:
    """Return tag to digest of a finished layout."""
    index = json.loads((folder / "index.json").read_text())
    return {entry["annotations"]["org.opencontainers.image.ref.name"]: entry["digest"] for entry in index["manifests"]}


def layers(folder: Path, tag: str) -> list[Path]:
    """Return the files of a tagged image's layers in a finished layout, the lowest first."""
    manifest = _read(folder, tags(folder)[tag])
    return [folder / "blobs" / "sha256" / one["digest"].removeprefix("sha256:") for one in manifest["layers"]]
