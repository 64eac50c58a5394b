"""The files of images for the lock file, by their registries' manifests: hosts that hand images on go by this list."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rackwright.bundle.images import ImageSource
from rackwright.messages import RackwrightError, waiting
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.image_file import MACHINES
from rackwright.settings.image_reference import registry_of
from rackwright.sources.http import Client
from rackwright.sources.lockfile import Lock, LockedImageFile

Files = dict[str, LockedImageFile]


@dataclass
class ImageLists:
    """Lists of images, each asked for once for all hosts that share it."""

    found: dict[tuple[str, str, frozenset[str]], Files] = field(default_factory=dict)

    def of(self, settings: HostSettings, lock: Lock) -> Mapping[str, Files]:
        """Return the files of a host's images by digest; none where it hands no images on. lock: what its tags are.

        Raises SourceError or RackwrightError where a registry does not say it.
        """
        hand_on = settings.downloads.hand_on
        if hand_on is None or not hand_on.images:
            return {}
        endpoints = settings.all_endpoints.values()
        digests = {one.image: one.image_digest or lock.images.get(one.image) for one in endpoints}
        return {digest: self._files(settings, image, digest) for image, digest in digests.items() if digest}

    def _files(self, settings: HostSettings, image: str, digest: str) -> Files:
        machine = settings.hardware.architecture
        machines = frozenset({MACHINES[machine]} if machine else MACHINES.values())
        key = (image, digest, machines)
        if key not in self.found:
            with waiting(lambda: f"{registry_of(image)} to list the files of {image}"):
                self.found[key] = _asked(settings, image, digest, machines)
        return self.found[key]


def _asked(settings: HostSettings, image: str, digest: str, machines: Collection[str]) -> Files:
    """Ask for each architecture alone: what several need is for all."""
    by_machine: dict[str, ImageSource] = {}
    refused: RackwrightError | None = None
    for machine in sorted(machines):
        source = ImageSource(Client(settings), settings.registry, image, digest, {machine})
        try:
            source.ask()
            by_machine[machine] = source
        except RackwrightError as error:
            refused = error
    if refused and not by_machine:
        raise refused
    return files_of(by_machine)


def files_of(by_machine: Mapping[str, ImageSource]) -> Files:
    """Return the files of an image whose manifests were asked for, by architecture."""
    found: Files = {}
    for machine, source in by_machine.items():
        sizes = {sha256: (len(body), kind) for sha256, (kind, body) in source.manifests.items()}
        sizes |= {sha256: (size, "") for sha256, size in source.blobs.items()}
        for sha256, (size, kind) in sizes.items():
            shared = sha256 in found or f"sha256:{sha256}" == source.digest
            found[sha256] = LockedImageFile(size=size, kind=kind, machine="" if shared else machine)
    return found
