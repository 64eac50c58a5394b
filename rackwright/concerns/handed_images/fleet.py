"""Images among the hosts of a fleet: what a host may hand on, the jobs by which it does, and names for people. Pure."""

from __future__ import annotations

import json

from rackwright.concerns.handed_images.images import handed_on, image_name
from rackwright.concerns.models.fleet import label_of as label_of_model
from rackwright.plan.change import Job
from rackwright.plan.concern import HostReading
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.image_file import MACHINES, for_machine


def images_asked_for(settings: HostSettings) -> frozenset[str]:
    """Return the images that a host may hand on to runs that it takes no part in, by its settings alone.

    Where these do not say its architecture, it may have the image for any.
    """
    hand_on, architecture = settings.downloads.hand_on, settings.hardware.architecture
    if hand_on is None or not (hand_on.neighbours and hand_on.images):
        return frozenset()
    return frozenset(
        image_name(one.image, one.image_digest, machine)
        for one in settings.all_endpoints.values()
        for machine in ([MACHINES[architecture]] if architecture else MACHINES.values())
        if one.image_digest and for_machine(settings.image_files.get(one.image_digest, ()), machine)
    )


def image_keepers(settings: HostSettings, reading: HostReading) -> list[Job]:
    """Return the jobs by which a host hands on the images that it has, and nothing else."""
    changes = handed_on((), settings, reading)
    return [step for change in changes for step in change.steps if isinstance(step, Job)]


def is_image(name: str) -> bool:
    """Return True for the name of an image among hosts, and not of a model."""
    return bool(json.loads(name)[0] == "image")


def label_of(name: str) -> str:
    """Return the name of a model or an image among hosts as text for people."""
    if not is_image(name):
        return label_of_model(name)
    _, repository, digest, machine = json.loads(name)
    return f"{repository} at {digest[:19]} for {machine}"
