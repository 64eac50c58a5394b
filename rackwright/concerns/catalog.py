"""All concerns in the order in which a deploy settles them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from rackwright.concerns.docker import DOCKER
from rackwright.concerns.dockerd.concern import DOCKERD
from rackwright.concerns.drained import DRAINED
from rackwright.concerns.driver import DRIVER
from rackwright.concerns.encodings import ENCODINGS
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.quality.quality_check import refuse_bad_questions
from rackwright.concerns.endpoint.release.concern import RELEASE
from rackwright.concerns.firewall import FIREWALL
from rackwright.concerns.gateway.concern import GATEWAY
from rackwright.concerns.gpus import GPUS
from rackwright.concerns.image import IMAGE
from rackwright.concerns.lease import LEASED
from rackwright.concerns.models import MODELS
from rackwright.concerns.options import OPTIONS
from rackwright.concerns.preflight.concern import PREFLIGHT
from rackwright.concerns.registry import REGISTRY
from rackwright.concerns.retention import RETENTION
from rackwright.concerns.watch.concern import WATCH
from rackwright.messages import RackwrightError
from rackwright.plan.concern import Concern
from rackwright.plan.ownership import RECORD
from rackwright.settings.host_settings import HostSettings

ALL: tuple[Concern[Any, Any], ...] = (
    LEASED,
    RECORD,
    DRAINED,
    GPUS,
    PREFLIGHT,
    DOCKER,
    DRIVER,
    FIREWALL,
    REGISTRY,
    IMAGE,
    ENCODINGS,
    MODELS,
    RELEASE,
    OPTIONS,
    DOCKERD,
    ENDPOINT,
    WATCH,
    GATEWAY,
    RETENTION,
)


OWN_USE = (DRIVER, FIREWALL, ENCODINGS, OPTIONS, DOCKERD, WATCH, GATEWAY, RETENTION)
"""Concerns whose reading no other concern depends on."""


def read_for(steps: Collection[str]) -> tuple[Concern[Any, Any], ...]:
    """Return the concerns that are read on a host for the steps that deploy.py calls; without any step, all of them.

    Most of what is read decides other concerns too, managed or not.
    """
    return tuple(concern for concern in ALL if not steps or concern.name in steps or concern not in OWN_USE)


def managed(steps: Collection[str]) -> tuple[Concern[Any, Any], ...]:
    """Return the concerns that deploy.py calls for a host, in the order in which they are settled."""
    return tuple(concern for concern in ALL if concern.name in steps)


def by_name(name: str) -> Concern[Any, Any]:
    """Return the concern of that name. Raises RackwrightError listing the names that exist."""
    for concern in ALL:
        if concern.name == name:
            return concern
    raise RackwrightError(
        f"no concern is called {name}; there are: {', '.join(concern.name for concern in ALL)}", code="RW2001"
    )


def refuse_broken_templates(steps: Collection[str], settings: HostSettings) -> None:
    """Render every file of these steps once, offline, and read the site's questions.

    Raises SettingsError for a broken template, or a broken file of questions.
    """
    for concern in managed(steps):
        if concern.files:
            concern.files(settings)
        if concern is ENDPOINT:
            refuse_bad_questions(settings)
