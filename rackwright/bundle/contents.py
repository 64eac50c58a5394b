"""Everything that hosts' settings and lock need, each thing once, however many hosts share it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from rackwright.bundle.fetching import Wanted
from rackwright.bundle.images import ImageSource
from rackwright.concerns.encodings import ENCODING_FILES, Encoding
from rackwright.concerns.models import name_of, sources_of
from rackwright.messages import RackwrightError
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.image_file import MACHINES
from rackwright.settings.secret import Secret
from rackwright.settings.sections import COMMIT, FilePin, ModelSource
from rackwright.sources.http import Client


@dataclass(frozen=True)
class ModelSourceAt:
    """A model at its hub."""

    client: Client
    hub: str
    token: Secret | None
    source: ModelSource

    @property
    def key(self) -> str:
        """Return `REPOSITORY@COMMIT`."""
        return name_of(self.source)

    def wanted(self) -> Iterator[tuple[FilePin, Wanted]]:
        """Yield its files, with what is known of each."""
        login = Secret(f"Bearer {self.token.unmask()}") if self.token else None
        base = f"{self.hub.rstrip('/')}/{self.source.repository}/resolve/{self.source.revision}"
        for pin in self.source.pins.values():
            url, name = f"{base}/{quote(pin.path)}", f"{self.source.repository} {pin.path}"
            yield pin, Wanted(name, url, pin.size, pin.sha256 or "", pin.blob or "", lambda: login)


@dataclass
class Contents:
    """Contents of a bundle of these hosts."""

    images: dict[tuple[str, str], ImageSource] = field(default_factory=dict)
    models: dict[str, ModelSourceAt] = field(default_factory=dict)
    encodings: dict[str, tuple[Encoding, Wanted, Client]] = field(default_factory=dict)
    unpinned: dict[str, None] = field(default_factory=dict)

    def add(self, settings: HostSettings, machines: Collection[str]) -> None:
        """Add one host's. settings: with the lock's digests and commits, and not from a bundle."""
        client = Client(settings)
        of_host = {MACHINES[found]} if (found := settings.hardware.architecture) else set(machines)
        for endpoint in settings.all_endpoints.values():
            if endpoint.image_digest is None:
                self.unpinned[endpoint.image] = None
                continue
            key = (endpoint.image, endpoint.image_digest)
            image = self.images.setdefault(key, ImageSource(client, settings.registry, *key, set()))
            image.machines = {*image.machines, *of_host}
        for source in sources_of(settings):
            if not (COMMIT.match(source.revision) and source.pins):
                self.unpinned[name_of(source)] = None
                continue
            at = ModelSourceAt(client, settings.mirrors.hub, settings.models.hub_token, source)
            self.models.setdefault(at.key, at)
        if any(endpoint.harmony for endpoint in settings.all_endpoints.values()):
            base = settings.mirrors.encodings.rstrip("/")
            for one in ENCODING_FILES:
                wanted = Wanted(one.file, f"{base}/{one.file}", one.size, one.sha256)
                self.encodings.setdefault(one.file, (one, wanted, client))

    def refuse_unpinned(self, inventory: str) -> None:
        """Raise RackwrightError for what the lock does not name: another command would bundle other bytes."""
        if self.unpinned:
            text = f"the lock file does not say which bytes these are: {', '.join(self.unpinned)}"
            raise RackwrightError(f"{text}; next: rackwright pin {inventory}", code="RW3843")


def contents_of(hosts: Mapping[str, HostSettings], machines: Sequence[str]) -> Contents:
    """Return what a bundle of hosts has. hosts: settings by name."""
    found = Contents()
    for settings in hosts.values():
        found.add(settings, machines)
    return found
