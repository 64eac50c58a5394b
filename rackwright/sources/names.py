"""What a tag or a branch is now, where neither settings, lock nor host say it: asked once a run, for all hosts.

Each host asking for itself would give two fresh hosts different bytes as soon as a tag moves between them. Where a
server cannot be asked from this machine (a closed network), its hosts ask by themselves, and every run says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from rackwright.concerns.image import IMAGE, digest_of
from rackwright.concerns.models import MODELS, commit_of, name_of, sources_of
from rackwright.messages import waiting
from rackwright.plan.concern import HostReading
from rackwright.settings.model import HostSettings
from rackwright.settings.sections import ModelSource
from rackwright.sources.errors import NotThereError, SourceError, UnreachableError
from rackwright.sources.http import Client
from rackwright.sources.hub import commit_at_revision
from rackwright.sources.registry import digest_of_tag

Answer = str | SourceError
Thing = TypeVar("Thing")


class ResolvedNames(NamedTuple):
    """What was resolved by name, why the rest was not, and which of it does not exist."""

    known: dict[str, str]
    unasked: dict[str, str]
    absent: dict[str, str]


def missing_of(seen: Any) -> list[str]:
    """Return what registry and hub say that they do not have, or do not show, of what a concern has read."""
    return list(getattr(seen, "absent", {}).values())


class Names:
    """The answers of registries and hubs in one run, by what was asked of whom and on which way."""

    def __init__(self) -> None:
        self._answers: dict[object, Answer] = {}
        self._lost: dict[object, UnreachableError] = {}
        self._lock = threading.Lock()

    def complete(self, settings: HostSettings, reading: HostReading) -> HostReading:
        """The reading with what its host has no record of yet; unchanged where no step of its run fetches anything."""
        seen = dict(reading.seen)
        if reading.managed is not None and reading.manages(IMAGE):
            images = self._images(settings, reading)
            seen[IMAGE.name] = replace(reading[IMAGE], asked=images.known, unasked=images.unasked, absent=images.absent)
        if reading.managed is not None and reading.manages(MODELS):
            models = self._models(settings, reading)
            seen[MODELS.name] = replace(
                reading[MODELS], asked=models.known, unasked=models.unasked, absent=models.absent
            )
        return replace(reading, seen=seen)

    def _images(self, settings: HostSettings, reading: HostReading) -> ResolvedNames:
        endpoints = settings.all_endpoints.values()
        names = {own.image: own.image for own in endpoints if not digest_of(own, reading[IMAGE])}
        return self._resolve(names, settings, settings.registry, self._digest)

    def _models(self, settings: HostSettings, reading: HostReading) -> ResolvedNames:
        sources = [source for source in sources_of(settings) if not commit_of(source, reading[MODELS])]
        server = (settings.mirrors.hub, settings.models.hub_token)
        return self._resolve({name_of(source): source for source in sources}, settings, server, self._commit)

    def _resolve(
        self,
        things: Mapping[str, Thing],
        settings: HostSettings,
        server: object,
        ask: Callable[[HostSettings, Thing], str],
    ) -> ResolvedNames:
        way = (server, settings.control_proxy or settings.proxy, settings.paths.private_ca)
        answers = {name: self._once(way, name, partial(ask, settings, thing)) for name, thing in things.items()}
        known = {name: answer for name, answer in answers.items() if isinstance(answer, str)}
        unasked = {name: str(answer) for name, answer in answers.items() if isinstance(answer, SourceError)}
        return ResolvedNames(
            known, unasked, {name: unasked[name] for name in unasked if isinstance(answers[name], NotThereError)}
        )

    def _once(self, way: object, name: str, ask: Callable[[], str]) -> Answer:
        with self._lock:
            if (way, name) not in self._answers:
                with waiting(lambda: f"its registry or hub to say what {name} is"):
                    self._answers[way, name] = self._lost.get(way) or self._asked(way, ask)
            return self._answers[way, name]

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
