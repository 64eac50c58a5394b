"""An image's part in what hosts hand on: who takes part, and the job that takes it, loads it and hands it on. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rackwright.concerns.docker import DOCKER
from rackwright.concerns.image import FILES, IMAGE, digest_of, folder_name, keeps_files, pull_job
from rackwright.concerns.models import MODELS
from rackwright.concerns.models.neighbours import (
    FETCH_TIMEOUT,
    handed_on_by,
    hubs_turn,
    of_run,
    opened,
    own_link,
    program,
    terms,
)
from rackwright.concerns.proxy_values import proxy_values
from rackwright.concerns.registry import auth_of
from rackwright.hostside import host_program, host_script, job_script
from rackwright.messages import few
from rackwright.paths import RUN
from rackwright.plan.change import Change, Job
from rackwright.plan.concern import HostReading
from rackwright.plan.hand_on import ChainPart, HandsOn, Sharer
from rackwright.settings.from_bundle import address_of
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.image_file import ImageFile, for_machine
from rackwright.settings.image_reference import HUB, HUB_HOST, registry_of, repository_of
from rackwright.settings.secret import Secret

LOOPBACK = "127.83.87.2"
"""Address at which a host's own Docker finds its files: Rackwright's other programs have others."""
FIRST_PORT = 600
"""Its port for a host's first image: none at which hosts hand on, which is closed to this host, and root's alone."""
REGISTRY_LOGIN = "registry_login"
"""File of the login in the job's folder."""


@dataclass(frozen=True)
class _HandedImage:
    """An image of one digest, and its files for one host."""

    reference: str
    digest: str
    files: tuple[ImageFile, ...]
    machine: str

    @property
    def name(self) -> str:
        """Return its name in a run."""
        return image_name(self.reference, self.digest, self.machine)

    @property
    def folder(self) -> str:
        """Return the folder of its files on a host that has taken them."""
        return f"{FILES}/{folder_name(self.digest)}"

    @property
    def path(self) -> str:
        """Return its repository as Docker names it below a registry."""
        return repository_of(self.reference).removeprefix(f"{registry_of(self.reference)}/")

    @property
    def is_of_hub(self) -> bool:
        """True if Docker Hub has it."""
        return registry_of(self.reference) == HUB


def image_name(reference: str, digest: str, machine: str) -> str:
    """Return the name of an image in a run: hosts whose names are the same want the same files."""
    return json.dumps(["image", repository_of(reference), digest, machine])


def image_sharers(host: str, settings: HostSettings, reading: HostReading, serves: bool) -> dict[str, Sharer]:
    """Return by the image's name how a host takes part where hosts take images from each other.

    A host that has an image hands it on only where the files that came are still there: Docker's graph drivers keep
    none of them.
    """
    hand_on, images = settings.downloads.hand_on, reading[IMAGE]
    link = own_link(hand_on, reading[MODELS].links) if hand_on else None
    if hand_on is None or link is None:
        return {}
    found: dict[str, Sharer] = {}
    for port, image in zip(settings.hand_on_image_ports, _images(settings, reading), strict=False):
        has = image is not None and images.has(image.reference, image.digest)
        may = not (serves and settings.hardware.unified_memory and settings.downloads.rate_mib is None)
        if image is not None and (not has or (image.digest in images.whole and may)):
            busy = has and port in reading[MODELS].handing_on
            found[image.name] = Sharer(host, link.address, port, has, hand_on.hub, serves, link.speed, busy=busy)
    return found


def _images(settings: HostSettings, reading: HostReading) -> list[_HandedImage | None]:
    """Return the images of a host in the order of their ports; None for one that the lock file does not list for it."""
    machine = str(reading[DOCKER].system.architecture)  # dpkg's names are those of images
    found: list[_HandedImage | None] = []
    for reference in settings.images:
        endpoints = (one for one in settings.all_endpoints.values() if one.image == reference)
        digest = next((digest_of(one, reading) for one in endpoints), None)
        files = for_machine(settings.image_files.get(digest or "", ()), machine)
        found.append(_HandedImage(reference, digest, files, machine) if digest and files else None)
    return found


# -- changes


def handed_on(changes: Sequence[Change], settings: HostSettings, reading: HostReading) -> list[Change]:
    """Return a host's changes in its images, with what its part in this run's chains makes of them."""
    hands_on, found = reading.hands_on, list(changes)
    if hands_on is None:
        return found
    for image in _images(settings, reading):
        part = hands_on.parts.get(image.name) if image else None
        if image is None or part is None:
            continue
        if not (part.sources or part.takers or folder_name(image.digest) in reading[IMAGE].folders):
            continue  # alone, and with nothing here to continue with
        if part.keeps:
            found.append(_keeping(settings, reading, image, part, hands_on))
        else:
            found = [_taking(change, settings, image, part, hands_on) for change in found]
    return found


def _taking(change: Change, settings: HostSettings, image: _HandedImage, part: ChainPart, hands_on: HandsOn) -> Change:
    """Return the pull of an image as one that takes its files from its part's sources first, and hands them on."""
    if [getattr(step, "name", "") for step in change.steps] != [pull_job(image.reference)]:
        return change
    jobs = [
        of_run(_taking_job(one, settings, image, part), image.name, part, hands_on)
        for one in change.steps
        if isinstance(one, Job)
    ]
    giver = handed_on_by(part.sources[0].host) if part.sources else ""
    return replace(change, why=f"{change.why}{giver}", steps=tuple(jobs))


def _keeping(
    settings: HostSettings, reading: HostReading, image: _HandedImage, part: ChainPart, hands_on: HandsOn
) -> Change:
    name, what = f"hand-on-{pull_job(image.reference)}", f"hand {image.reference} on"
    spec = {**_spec(name, settings, image, part, reading[IMAGE].whole[image.digest]), "rate_mib": None}
    script = opened(name, part) + _program(settings, spec) + host_script("image_keep")
    job = of_run(Job(name, what, script, FETCH_TIMEOUT, code="RW2720", helps=True), image.name, part, hands_on)
    return Change(f"{what} to {few([peer.host for peer in part.takers])}", "it is not there", (job,))


# -- jobs


def _taking_job(pull: Job, settings: HostSettings, image: _HandedImage, part: ChainPart) -> Job:
    number = settings.hand_on_image_ports.index(part.listener.port)
    local = f"{LOOPBACK}:{FIRST_PORT + number}"
    layers = host_script(
        "image_layers",
        here=f"{local}/{image.path}@{image.digest}",
        tagged=image.reference,
        always="yes" if image.is_of_hub else "",
    )
    take = host_script(
        "image_take",
        registry=base64.b64encode(host_program("image_registry").encode()).decode(),
        kinds=json.dumps({one.sha256: one.kind for one in image.files if one.kind}, sort_keys=True),
        folder=image.folder,
        local=local,
        clean="" if keeps_files(settings) else host_script("image_clean", folder=image.folder),
    )
    before = opened(pull.name, part) + _program(settings, _spec(pull.name, settings, image, part, image.folder))
    script = f"{before}{layers}{take}(\n{pull.script}\n)\nstatus=$?\n{host_script('image_loaded')}"
    needs = part.from_hub and registry_of(image.reference) == settings.registry.host
    login = auth_of(settings.registry) if needs else None
    secrets: dict[str, Secret] = {REGISTRY_LOGIN: login} if login else {}
    return replace(pull, script=script, secrets={**pull.secrets, **secrets})


def _program(settings: HostSettings, spec: dict[str, Any]) -> str:
    """Return functions that run the program that hands on."""
    return job_script(
        "image_program", program=program(), spec=json.dumps(spec, sort_keys=True), **proxy_values(settings)
    )


def _spec(name: str, settings: HostSettings, image: _HandedImage, part: ChainPart, folder: str) -> dict[str, Any]:
    files = [{"path": one.path, "size": one.size, "sha256": one.sha256, "at": one.at} for one in image.files]
    origin = {"url": _registry_url(settings, image), "registry": True, "after": hubs_turn(settings, part)}
    return {
        **terms(settings, part, f"{RUN}/secrets/{name}"),
        "files": files,
        "folder": folder,
        "origin": origin if part.from_hub else None,
        "rate_mib": settings.downloads.rate_mib,
    }


def _registry_url(settings: HostSettings, image: _HandedImage) -> str:
    """Return where a registry has the manifests and blobs of an image's repository; with a bundle, where that does."""
    path = f"library/{image.path}" if image.is_of_hub and "/" not in image.path else image.path
    server = address_of(settings) or f"https://{HUB_HOST if image.is_of_hub else registry_of(image.reference)}"
    return f"{server}/v2/{path}/"
