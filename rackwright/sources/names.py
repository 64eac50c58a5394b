"""Tags and branches resolved where settings, lock and host do not do it: asked once a run, for all hosts.

Each host asking for itself would give two fresh hosts different bytes as soon as a tag moves between them. Where a
server cannot be asked from this machine (a closed network), its hosts ask on their own, and every run says so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rackwright.adapter.concurrency import new_lock, spawn
from rackwright.concerns.image import IMAGE, digest_of
from rackwright.concerns.models import MODELS, commit_of, name_of, sources_of
from rackwright.messages import waiting
from rackwright.plan.concern import HostReading, ResolvedNames
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.image_reference import registry_of
from rackwright.settings.sections import ModelSource
from rackwright.sources.errors import NotThereError, SourceError, UnreachableError
from rackwright.sources.http import Client
from rackwright.sources.hub import commit_at_revision
from rackwright.sources.opener import host_of
from rackwright.sources.registry import digest_of_tag

if TYPE_CHECKING:
    from rackwright.adapter.concurrency import Lock

Answer = str | SourceError


class Way(NamedTuple):
    """The way to a server: what hosts share costs one question."""

    server: str
    login: Hashable
    proxy: Hashable
    authority: Hashable


@dataclass(frozen=True)
class Name:
    """One tag or branch, and how to ask what it is."""

    way: Way
    text: str
    ask: Callable[[], str] = field(compare=False)

    @property
    def key(self) -> tuple[Way, str]:
        """Return the key under which its answer is kept."""
        return self.way, self.text


class Names:
    """The answers of registries and hubs in one run, by what was asked of whom and on which way."""

    def __init__(self) -> None:
        self._answers: dict[object, Answer] = {}
        self._lost: dict[object, UnreachableError] = {}
        self._servers: dict[object, Lock] = {}
        self._lock = new_lock()

    def complete(self, settings: HostSettings, reading: HostReading) -> HostReading:
        """Return the reading with the names that its host has no record of yet, where a step of its run fetches any."""
        if reading.managed is None:
            return reading
        images = self._images(settings, reading) if reading.manages(IMAGE) else []
        models = self._models(settings, reading) if reading.manages(MODELS) else []
        if not (images or models):
            return reading
        answers = self._answers_to([*images, *models])
        names = {IMAGE.name: _resolved(images, answers), MODELS.name: _resolved(models, answers)}
        return replace(reading, names=names)

    def _images(self, settings: HostSettings, reading: HostReading) -> list[Name]:
        endpoints = settings.all_endpoints.values()
        images = dict.fromkeys(endpoint.image for endpoint in endpoints if not digest_of(endpoint, reading))
        ways = {image: _way(settings, settings.registry, registry_of(image)) for image in images}
        return [Name(ways[image], image, partial(self._digest, settings, image)) for image in images]

    def _models(self, settings: HostSettings, reading: HostReading) -> list[Name]:
        sources = [source for source in sources_of(settings) if not commit_of(source, reading)]
        way = _way(settings, settings.models.hub_token, settings.mirrors.hub)
        named = {name_of(source): source for source in sources}
        return [Name(way, name, partial(self._commit, settings, source)) for name, source in named.items()]

    def _answers_to(self, names: Sequence[Name]) -> dict[Name, Answer]:
        """Ask for names, side by side as far as they are different servers' to say."""
        threads = [spawn(partial(self._once, name)) for name in names[1:]]
        found = {name: self._once(name) for name in names[:1]}
        for thread in threads:
            thread.join()
        return found | {name: self._once(name) for name in names[1:]}

    def _once(self, name: Name) -> Answer:
        with self._lock:
            server = self._servers.setdefault(name.way, new_lock())
        with server:
            if name.key not in self._answers:
                with waiting(lambda: f"{host_of(name.way.server) or name.way.server} to say what {name.text} is"):
                    self._answers[name.key] = self._lost.get(name.way) or self._attempt(name.way, name.ask)
            return self._answers[name.key]

    def _attempt(self, way: object, ask: Callable[[], str]) -> Answer:
        try:
            return ask()
        except UnreachableError as error:
            # A server behind a wall that swallows everything costs its time-out once a run, not once a name.
            self._lost[way] = error
            return error
        except SourceError as error:
            return error

    @staticmethod
    def _digest(settings: HostSettings, image: str) -> str:
        return digest_of_tag(Client(settings), image, settings.registry)

    @staticmethod
    def _commit(settings: HostSettings, source: ModelSource) -> str:
        return commit_at_revision(Client(settings), settings.mirrors.hub, source, settings.models.hub_token)


def _way(settings: HostSettings, login: Hashable, server: str) -> Way:
    return Way(server, login, settings.control_proxy or settings.proxy, settings.paths.private_ca)


def _resolved(names: Iterable[Name], answers: Mapping[Name, Answer]) -> ResolvedNames:
    by_name = {name.text: answers[name] for name in names}
    resolved = {name: answer for name, answer in by_name.items() if isinstance(answer, str)}
    unresolved = {name: str(answer) for name, answer in by_name.items() if isinstance(answer, SourceError)}
    absent = {name: unresolved[name] for name in unresolved if isinstance(by_name[name], NotThereError)}
    return ResolvedNames(resolved, unresolved, absent)
