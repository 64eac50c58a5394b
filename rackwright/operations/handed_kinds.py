"""The two kinds of things that hosts hand on, models and images: what one run asks of hosts of another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rackwright.concerns.docker import DOCKER
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.handed_images import image_keepers, image_sharers, images_asked_for
from rackwright.concerns.image import IMAGE
from rackwright.concerns.lease import LEASED
from rackwright.concerns.models import MODELS, sharers
from rackwright.concerns.models.fleet import asked_for
from rackwright.plan.change import Job
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.hand_on import Sharer
from rackwright.settings.host_settings import HostSettings


@dataclass(frozen=True)
class HandedKind:
    """A kind: names that a host may hand on by its settings, its part in them, the jobs that hand on what it has."""

    asked_for: Callable[[HostSettings], frozenset[str]]
    sharers: Callable[[str, HostSettings, HostReading, bool], Mapping[str, Sharer]]
    keepers: Callable[[HostSettings, HostReading], Sequence[Job]]
    read: Sequence[Concern[Any, Any]]
    """Concerns that are read of a host for it."""


def model_keepers(settings: HostSettings, reading: HostReading) -> list[Job]:
    """Return the jobs by which a host hands on the models that it has."""
    return [model.keeps for model in MODELS.wanted(settings, reading) if model.keeps is not None]


HANDED_MODELS = HandedKind(asked_for, sharers, model_keepers, (IMAGE, MODELS, ENDPOINT, LEASED))
HANDED_IMAGES = HandedKind(images_asked_for, image_sharers, image_keepers, (DOCKER, IMAGE, MODELS, ENDPOINT, LEASED))
