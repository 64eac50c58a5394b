"""Models, images and encodings that a host's endpoints and kept releases need. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rackwright.concerns.image import digest_of
from rackwright.concerns.models import commit_of, host_path
from rackwright.concerns.models.concern import SeenModel
from rackwright.concerns.retention import RETENTION, KeptRelease, listed
from rackwright.plan.concern import HostReading
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.image_reference import repository_of
from rackwright.settings.sections import ModelSource


@dataclass(frozen=True)
class Needs:
    """By what is needed: the endpoints and kept releases that need it, as people read them."""

    paths: Mapping[str, tuple[str, ...]]
    """By a folder on the host."""
    images: Mapping[str, tuple[str, ...]]
    """By `REPOSITORY@DIGEST`, as Docker lists it."""
    repositories: Mapping[str, tuple[str, ...]]
    """By a model's name at the hub, or an image's in its registry, whose commit or digest is not known yet."""

    def of_model(self, model: SeenModel) -> tuple[str, ...]:
        """Return what needs a model."""
        return _all(self.paths.get(model.path, ()), self.repositories.get(model.repository, ()))

    def of_image(self, repository: str, digest: str | None) -> tuple[str, ...]:
        """Return what needs an image."""
        return _all(self.images.get(f"{repository}@{digest}", ()), self.repositories.get(repository, ()))


def needs_of(settings: HostSettings, reading: HostReading) -> Needs:
    """Return what a host needs: what its settings ask for now, and what the releases that it keeps were made of."""
    paths, images, repositories = (dict[str, list[str]]() for _ in range(3))
    for name, endpoint in settings.all_endpoints.items():
        for source in (endpoint.model, endpoint.draft):
            if source is not None:
                _add_model(settings, source, reading, name, paths, repositories)
        if digest := digest_of(endpoint, reading):
            images.setdefault(listed(f"{repository_of(endpoint.image)}@{digest}"), []).append(name)
        else:
            repositories.setdefault(repository_of(endpoint.image), []).append(name)
        if endpoint.harmony:
            paths.setdefault(settings.encodings.folder, []).append(name)
    for release in reading[RETENTION].releases:
        _add_release(release, paths, images)
    return Needs(_frozen(paths), _frozen(images), _frozen(repositories))


def _add_model(
    settings: HostSettings,
    source: ModelSource,
    reading: HostReading,
    endpoint: str,
    paths: dict[str, list[str]],
    repositories: dict[str, list[str]],
) -> None:
    if commit := commit_of(source, reading):
        paths.setdefault(host_path(settings, source, commit), []).append(endpoint)
    else:
        repositories.setdefault(source.repository, []).append(endpoint)


def _add_release(release: KeptRelease, paths: dict[str, list[str]], images: dict[str, list[str]]) -> None:
    for path in release.paths:
        paths.setdefault(path, []).append(f"release {release.hash}")
    if release.image:
        images.setdefault(listed(release.image), []).append(f"release {release.hash}")


def _frozen(found: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    return {key: _all(names) for key, names in found.items()}


def _all(*names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for some in names for name in some))
