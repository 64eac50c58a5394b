"""Tags and branches of hosts' settings, resolved: each name is asked for once for all hosts that share it."""

from __future__ import annotations

from dataclasses import dataclass, field

from rackwright.concerns.models import name_of, sources_of
from rackwright.messages import waiting
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.image_reference import registry_of
from rackwright.settings.sections import ModelSource
from rackwright.sources.http import Client
from rackwright.sources.hub import model_at_revision
from rackwright.sources.lockfile import Lock, LockedModel
from rackwright.sources.opener import host_of
from rackwright.sources.registry import digest_of_tag


@dataclass
class Resolver:
    """Answers of registries and hubs, by what was asked of whom and on which way."""

    digests: dict[object, str] = field(default_factory=dict)
    models: dict[object, LockedModel] = field(default_factory=dict)

    def lock(self, settings: HostSettings) -> Lock:
        """Return the lock of one host. Raises SourceError when a server cannot be asked, or refuses."""
        client = Client(settings)
        unpinned = [endpoint.image for endpoint in settings.all_endpoints.values() if endpoint.image_digest is None]
        images = {image: self._digest(client, image, settings) for image in unpinned}
        models = {name_of(source): self._model(client, source, settings) for source in sources_of(settings)}
        return Lock(images, models)

    def _digest(self, client: Client, image: str, settings: HostSettings) -> str:
        key = (image, settings.registry, *_way(settings))
        if key not in self.digests:
            with waiting(lambda: f"{registry_of(image)} to say what {image} is"):
                self.digests[key] = digest_of_tag(client, image, settings.registry)
        return self.digests[key]

    def _model(self, client: Client, source: ModelSource, settings: HostSettings) -> LockedModel:
        hub = settings.mirrors.hub
        key = (source, hub, settings.models.hub_token, *_way(settings))
        if key not in self.models:
            with waiting(lambda: f"{host_of(hub)} to list the files of {name_of(source)}"):
                self.models[key] = model_at_revision(client, hub, source, settings.models.hub_token)
        return self.models[key]


def _way(settings: HostSettings) -> tuple[object, ...]:
    return settings.control_proxy or settings.proxy, settings.paths.private_ca
