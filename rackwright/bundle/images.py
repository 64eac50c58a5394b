"""Images of a bundle, from their registries: what a digest leads to, for the machines of the inventory alone.

The registry is asked directly and not by skopeo: a blob of 10 GB continues where it was interrupted, and the other
architectures of an index are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from rackwright.bundle.catalog import Image
from rackwright.bundle.fetching import Wanted
from rackwright.messages import RackwrightError
from rackwright.settings.secret import Secret
from rackwright.settings.sections import DIGEST, Registry
from rackwright.sources.http import Client
from rackwright.sources.registry import address_of, manifest_of

INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")


@dataclass
class ImageSource:
    """One image at its registry, and what was found of it."""

    client: Client
    registry: Registry
    reference: str
    digest: str
    machines: Collection[str]
    """Architectures as images name them; an index's others are left out."""
    manifests: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """Kind and bytes, by SHA-256."""
    blobs: dict[str, int] = field(default_factory=dict)
    """Sizes, by SHA-256."""

    def ask(self) -> None:
        """Ask for the manifests. Raises RackwrightError where the image is for none of the machines."""
        found = self._manifest(self.digest)
        if found.get("mediaType") not in INDEXES and "manifests" not in found:
            self._add_blobs(found)
            return
        fitting = [row for row in found["manifests"] if self._fits(row)]
        if not fitting:
            text = f"{self.reference} has no image for {' or '.join(sorted(self.machines))}; next: another `image`"
            raise RackwrightError(text, code="RW3833")
        for row in fitting:
            self._add_blobs(self._manifest(row["digest"]))

    def _fits(self, row: dict[str, Any]) -> bool:
        platform = row.get("platform") or {}
        return platform.get("os", "linux") == "linux" and platform.get("architecture") in self.machines

    def _manifest(self, digest: str) -> dict[str, Any]:
        answer, _ = manifest_of(self.client, self.reference, self.registry, digest)
        sha256 = hashlib.sha256(answer.body).hexdigest()
        found: Any = answer.json()
        if digest != f"sha256:{sha256}" or not isinstance(found, dict):
            text = f"{self.reference}: its registry sent other bytes than {digest[:19]}; next: the same command again"
            raise RackwrightError(text, code="RW3823")
        kind = found.get("mediaType") or answer.headers.get("content-type", "")
        if kind not in (*INDEXES, *MANIFESTS):
            kind = INDEXES[0] if "manifests" in found else MANIFESTS[0]
        self.manifests[sha256] = (kind, answer.body)
        return found

    def _add_blobs(self, manifest: dict[str, Any]) -> None:
        try:
            for row in (manifest["config"], *manifest["layers"]):
                if not DIGEST.match(row["digest"]):
                    raise ValueError(row["digest"])
                self.blobs[row["digest"].removeprefix("sha256:")] = int(row["size"])
        except (KeyError, TypeError, ValueError) as error:
            text = f"{self.reference}: its manifest is of an unknown form ({error!r}); next: another tag of the image"
            raise RackwrightError(text, code="RW3833") from None

    def wanted(self) -> Iterator[Wanted]:
        """Yield the blobs to fetch."""
        for sha256, size in self.blobs.items():
            digest = f"sha256:{sha256}"
            name, url = f"{self.reference} {digest[:19]}", address_of(self.reference, "blobs", digest)
            yield Wanted(name, url, size, sha256, login=self._login)

    def _login(self) -> Secret | None:
        return manifest_of(self.client, self.reference, self.registry, self.digest)[1]

    def row(self) -> Image:
        """Return what the bundle's list says of it."""
        kinds = {sha256: kind for sha256, (kind, _) in self.manifests.items()}
        return Image(reference=self.reference, digest=self.digest, kinds=kinds, layers=list(self.blobs))
