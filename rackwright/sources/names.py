"""What a tag or a branch is now, where neither settings, lock nor host say it: asked once a run, for all hosts.

Each host asking for itself would give two fresh hosts different bytes as soon as a tag moves between them. Where a
server cannot be asked from this machine (a closed network), its hosts ask by themselves, and every run says so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from rackwright.adapter.concurrency import Lock, new_lock, spawn
from rackwright.concerns.image import IMAGE, digest_of
from rackwright.concerns.models import MODELS, commit_of, name_of, sources_of
from rackwright.messages import waiting
from rackwright.plan.concern import HostReading
from rackwright.settings.image_reference import registry_of
from rackwright.settings.model import HostSettings
from rackwright.settings.sections import ModelSource
from rackwright.sources.errors import NotThereError, SourceError, UnreachableError
from rackwright.sources.http import Client
from rackwright.sources.hub import commit_at_revision
from rackwright.sources.opener import host_of
from rackwright.sources.registry import digest_of_tag

Answer = str | SourceError


class ResolvedNames(NamedTuple):
    """What was resolved by name, why the rest was not, and which of it does not exist."""

    known: dict[str, str]
    unasked: dict[str, str]
    absent: dict[str, str]


def missing_of(seen: Any) -> list[str]:
    """Return what registry and hub say that they do not have, or do not show, of what a concern has read."""
    return list(getattr(seen, "absent", {}).values())


class Way(NamedTuple):
    """How a server is asked: what hosts share costs one question."""

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
        """What its answer is kept under."""
        return self.way, self.text


class Names:
    """The answers of registries and hubs in one run, by what was asked of whom and on which way."""

    def __init__(self) -> None:
        self._answers: dict[object, Answer] = {}
        self._lost: dict[object, UnreachableError] = {}
        self._servers: dict[object, Lock] = {}
        self._lock = new_lock()

    def complete(self, settings: HostSettings, reading: HostReading) -> HostReading:
        """The reading with what its host has no record of yet; unchanged where no step of its run fetches anything."""
        seen, managed = dict(reading.seen), reading.managed is not None
        images = self._images(settings, reading) if managed and reading.manages(IMAGE) else None
        models = self._models(settings, reading) if managed and reading.manages(MODELS) else None
        answers = self._answers_to([*(images or ()), *(models or ())])
        if images is not None:
            found = _resolved(images, answers)
            seen[IMAGE.name] = replace(reading[IMAGE], asked=found.known, unasked=found.unasked, absent=found.absent)
        if models is not None:
            found = _resolved(models, answers)
            seen[MODELS.name] = replace(reading[MODELS], asked=found.known, unasked=found.unasked, absent=found.absent)
        return replace(reading, seen=seen)

    def _images(self, settings: HostSettings, reading: HostReading) -> list[Name]:
        endpoints = settings.all_endpoints.values()
        images = dict.fromkeys(own.image for own in endpoints if not digest_of(own, reading[IMAGE]))
        ways = {image: _way(settings, settings.registry, registry_of(image)) for image in images}
        return [Name(ways[image], image, partial(self._digest, settings, image)) for image in images]

    def _models(self, settings: HostSettings, reading: HostReading) -> list[Name]:
        sources = [source for source in sources_of(settings) if not commit_of(source, reading[MODELS])]
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
                    self._answers[name.key] = self._lost.get(name.way) or self._asked(name.way, name.ask)
            return self._answers[name.key]

    def _asked(self, way: object, ask: Callable[[], str]) -> Answer:
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
    found = {name.text: answers[name] for name in names}
    known = {name: answer for name, answer in found.items() if isinstance(answer, str)}
    unasked = {name: str(answer) for name, answer in found.items() if isinstance(answer, SourceError)}
    absent = {name: unasked[name] for name in unasked if isinstance(found[name], NotThereError)}
    return ResolvedNames(known, unasked, absent)
