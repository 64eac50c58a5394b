"""The serving images: pulled by digest where it is resolved, else by tag, whose digest is then recorded.

The record is stored on the host (`IMAGES/*`, a row `REFERENCE DIGEST` each): a tag that moves later, here or at
the registry, changes nothing until an operator requests it (DECISIONS 12, 18).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rackwright.concerns.proxy_values import proxy_values
from rackwright.concerns.registry import CONFIG, REGISTRY, at_rest, config_of
from rackwright.hostside import host_script, job_script
from rackwright.paths import RUN, STATE
from rackwright.plan.answers import Answers
from rackwright.plan.change import Change, Job, Owned, Refuse, Shell, WriteFile
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.reading import lines_of
from rackwright.settings.from_bundle import address_of
from rackwright.settings.host_settings import ENDPOINTS, EndpointSettings, HostSettings
from rackwright.settings.image_file import MACHINES, for_machine
from rackwright.settings.image_reference import HUB, registry_of, repository_of, slug, tag_of
from rackwright.settings.secret import Secret

PINS = f"{STATE}/images"
NAMES_TAG = "# rackwright-bundle"
"""Marks a row of /etc/hosts that a pull from a bundle has written."""
ADDRESS = "127.83.87.1"
"""Loopback address of such a pull, by which an image is known until it gets its own name."""
NAMES_LOCK = f"{RUN}/bundle.lock"
"""Held while such a pull lasts."""
FILES = f"{STATE}/image-files"
"""Folder of the files of images that hosts hand on."""
FOLDER = re.compile(r"[0-9a-f]{16}")
PULL_TIMEOUT = 4 * 3600


@dataclass(frozen=True)
class LocalImage:
    """One row of `docker image ls --digests`; `<none>` is None."""

    repository: str
    tag: str | None
    digest: str | None


@dataclass(frozen=True)
class SeenImages:
    """The host's images. `answered` is False when dockerd did not answer: the images are then unknown."""

    answered: bool
    images: tuple[LocalImage, ...]
    pins: Mapping[str, str]
    """Digest by reference, as recorded at the first pull."""
    names_left: bool = False
    """True when /etc/hosts has names of a pull from a bundle that was killed."""
    addresses_left: bool = False
    """True when Docker has an image by the address of such a pull, and none is under way."""
    whole: Mapping[str, str] = field(default_factory=dict)
    """Folder with all files of an image as they came from its registry, by digest, where hosts hand images on."""
    folders: frozenset[str] = frozenset()
    """Names of the folders in `FILES`."""

    def has(self, reference: str, digest: str) -> bool:
        """Return True if the image of that digest is on the host."""
        repository = repository_of(reference)
        return any(image.repository == repository and image.digest == digest for image in self.images)

    def tagged(self, reference: str) -> str | None:
        """Return the digest that the reference's tag names on this host."""
        repository, tag = repository_of(reference), tag_of(reference)
        named = (image.digest for image in self.images if (image.repository, image.tag) == (repository, tag))
        return next((digest for digest in named if digest), None)


@dataclass(frozen=True)
class WantedImage:
    """One image, and its source."""

    reference: str
    digest: str | None
    """From the lock file or the profile, or else from the host's record or its registry."""
    pinned: bool
    """True when the lock file or the profile gives the digest."""
    pull: Job
    unresolved: str = ""
    """The reason for which the control machine could not resolve the digest, so that the host does."""
    refusal: Refuse | None = None
    """The reason for which hosts cannot hand it on, where they are to do so."""
    keeps: bool = False
    """True if its files stay on the host, to be handed on again."""
    size: int = 0
    """Bytes of its files by the lock file, as the registry sends them; 0 where it does not list them."""


WantedImages = tuple[WantedImage, ...]


def digest_of(endpoint: EndpointSettings, reading: HostReading) -> str | None:
    """Return the image's digest: the lock file's or the profile's, or that of the first other source.

    The other sources are the host's record, the tag on the host, and the tag at its registry in this run.
    """
    image, images = endpoint.image, reading[IMAGE]
    at_registry = reading.names_of(IMAGE).resolved
    return endpoint.image_digest or images.pins.get(image) or images.tagged(image) or at_registry.get(image)


def read(settings: HostSettings) -> str:
    """Print the records, what killed pulls have left, and files to hand on; the images come from Docker's answer."""
    return f"""\
[ -s {NAMES_LOCK} ] && ! flock --nonblock {NAMES_LOCK} true || {{
  echo no-pull
  ! grep -qsF '{NAMES_TAG}' /etc/hosts || echo names-left
}}
for pin in {PINS}/*; do
  [ ! -f "$pin" ] || first_lines 1 'pin ' "$pin"
done
for folder in {FILES}/*/; do
  [ ! -d "$folder" ] || printf 'folder %s\\n' "$(basename "$folder")"
done
{_read_files(settings)}exit 0"""


def _read_files(settings: HostSettings) -> str:
    """Print where all files of an image are, of those that this host would hand on."""
    if not _hands_on(settings):
        return ""
    digests = [one.image_digest for one in settings.all_endpoints.values() if one.image_digest]
    sets = [
        " ".join([digest, machine, *(one.sha256 for one in files)])
        for digest in dict.fromkeys(digests)
        for machine in MACHINES.values()
        if (files := for_machine(settings.image_files.get(digest, ()), machine))
    ]
    return host_script("image_files_read", sets="\n".join(sets), folder=FILES) if sets else ""


def _hands_on(settings: HostSettings) -> bool:
    return settings.downloads.hand_on is not None and settings.downloads.hand_on.images


def keeps_files(settings: HostSettings) -> bool:
    """Return True where a host keeps the files of images, to hand them on again."""
    hand_on = settings.downloads.hand_on
    return hand_on is not None and hand_on.images and hand_on.keep_images


def joined(output: str, answers: Answers) -> str:
    """Return the records with the images that Docker lists; without its answer they are unknown."""
    if answers.images is None:
        return output
    return "\n".join([output, "known", *(f"image {' '.join(row)}" for row in answers.images)])


def parse(output: str) -> SeenImages:
    """Parse the listing."""
    words = [text.split(" ") for text in lines_of(output)]
    images = tuple(LocalImage(row[1], _given(row[2]), _given(row[3])) for row in words if row[0] == "image")
    whole = {row[1]: row[2] for row in words if row[0] == "whole" and len(row) == 3}
    folders = frozenset(row[1] for row in words if row[0] == "folder" and FOLDER.fullmatch(row[-1]))
    pins = {row[1]: row[2] for row in words if row[0] == "pin"}
    by_address = ["no-pull"] in words and any(image.repository.startswith(f"{ADDRESS}:") for image in images)
    return SeenImages(["known"] in words, images, pins, ["names-left"] in words, by_address, whole, folders)


def _given(text: str) -> str | None:
    return None if text == "<none>" else text


def wanted(settings: HostSettings, reading: HostReading) -> WantedImages:
    """Return each image once, in the order of the endpoints."""
    found: dict[tuple[str, str | None], WantedImage] = {}
    for endpoint in settings.all_endpoints.values():
        digest = digest_of(endpoint, reading)
        pull = _pull(settings, endpoint, digest, at_rest(settings.registry, reading[REGISTRY]))
        refusal = None if digest and settings.image_files.get(digest) else _unlisted(settings, endpoint.image)
        why = "" if digest else reading.names_of(IMAGE).unresolved.get(endpoint.image, "")
        keeps = keeps_files(settings)
        pinned, size = endpoint.image_digest is not None, _size(settings, digest, reading)
        image = WantedImage(endpoint.image, digest, pinned, pull, why, refusal, keeps, size)
        found.setdefault((endpoint.image, digest), image)
    return tuple(found.values())


def _unlisted(settings: HostSettings, image: str) -> Refuse | None:
    """Return the refusal of an image whose files are not listed, where hosts hand images on."""
    if not _hands_on(settings):
        return None
    text = (
        f"{image}: hosts hand an image on by the list of its files in the lock file, which does not have it; next: "
        "rackwright pin INVENTORY; or take downloads.hand_on.images out"
    )
    return Refuse(text, code="RW2710")


def _pull(settings: HostSettings, endpoint: EndpointSettings, digest: str | None, login_kept: bool) -> Job:
    reference = endpoint.image
    ours = registry_of(reference) == settings.registry.host
    login = config_of(settings.registry) if ours and not login_kept else None
    secrets: dict[str, Secret] = {"config.json": login} if login else {}
    script = job_script(
        "pull_image",
        tagged=reference,
        reference=f"{repository_of(reference)}@{digest}" if digest else reference,
        repository=repository_of(reference),
        pin="" if endpoint.image_digest else pin_path(reference),
        kept=CONFIG.rpartition("/")[0],
        key="given" if ours and settings.registry.key else "none",
        registry=registry_of(reference),
        stall=settings.downloads.stall_timeout,
        run=RUN,
        sizes=_sizes(settings, digest),
        bundle=address_of(settings).partition("//")[2] if registry_of(reference) != HUB else "",
        **proxy_values(settings),
    )
    return Job(
        pull_job(reference),
        f"pull {reference}",
        script,
        timeout=PULL_TIMEOUT,
        secrets=secrets,
        at_once=settings.downloads.parallel,
        code="RW2701",
    )


def _sizes(settings: HostSettings, digest: str | None) -> str:
    """Return the sizes of an image's files as far as the lock file lists them: architecture or -, short name, bytes."""
    files = settings.image_files.get(digest or "", ())
    return "\n".join(f"{one.machine or '-'} {one.sha256[:12]} {one.size}" for one in files if one.kind == "")


def _size(settings: HostSettings, digest: str | None, reading: HostReading) -> int:
    """Return the bytes of an image's files by the lock file; 0 where it does not list them for such a host."""
    from rackwright.concerns.docker import DOCKER  # noqa: PLC0415 - the lock file needs this module, and status no deploy

    files = settings.image_files.get(digest or "", ())
    if not files or DOCKER.name not in reading.by_concern:
        return 0
    # dpkg's names of architectures are those of images.
    return sum(one.size for one in for_machine(files, str(reading[DOCKER].system.architecture)))


def pull_job(reference: str) -> str:
    """Return the name of the job that pulls an image."""
    return f"pull-{slug(reference)}"


def pin_path(reference: str) -> str:
    """Return the path on the host where the digest of a reference is recorded."""
    return f"{PINS}/{hashlib.sha256(reference.encode()).hexdigest()[:16]}"


def changes(wanted: WantedImages, reading: SeenImages) -> list[Change]:
    """Pull what is missing; record the digest of a tag that exists without a record; remove files of no use."""
    found = [*_names_changes(reading), *(change for image in wanted for change in _changes(image, reading))]
    used = {folder_name(one.digest) for one in wanted if one.digest and (one.keeps or not _is_here(one, reading))}
    return [*found, *(_remove(folder) for folder in sorted(reading.folders - used) if reading.answered)]


def folder_name(digest: str) -> str:
    """Return the name of the folder in `FILES` with an image's files."""
    return digest.partition(":")[2][:16]


def _remove(folder: str) -> Change:
    step = Shell(host_script("image_files_remove", folder=f"{FILES}/{folder}"), timeout=600)
    return Change(f"remove {FILES}/{folder}", "the image is loaded, or no longer wanted", (step,))


def _is_here(image: WantedImage, reading: SeenImages) -> bool:
    return image.digest is not None and reading.has(image.reference, image.digest)


def _names_changes(reading: SeenImages) -> Iterator[Change]:
    why = "a pull from a bundle was killed, and has left it"
    if reading.names_left:
        yield Change("take a registry's name out of /etc/hosts", why, (Shell(remove_names_script()),))
    elif reading.addresses_left:
        yield Change("take an address out of the names of images", why, (Shell(remove_names_script()),))


def remove_names_script() -> str:
    """Return shell lines that take away the names that a killed pull from a bundle has left, also for teardown."""
    return host_script("remove_names", run=RUN)


def _changes(image: WantedImage, reading: SeenImages) -> list[Change]:
    if image.digest is None or not _is_here(image, reading):
        return [_pull_change(image, reading)]
    if image.pinned or image.reference in reading.pins:
        return []
    record = WriteFile(pin_path(image.reference), f"{image.reference} {image.digest}\n")
    what = f"record that {image.reference} is {image.digest[:19]}"
    return [Change(what, "a tag can move; the lock file has no digest for it", (record,))]


def _pull_change(image: WantedImage, reading: SeenImages) -> Change:
    by = f" at {image.digest[:19]}" if image.digest else ""
    why = (
        "it is not on the host" if reading.answered else "Docker does not answer yet, so whether it is there is unknown"
    )
    what, fetches = f"pull {image.reference}{by}", repository_of(image.reference)
    if image.refusal:
        return Change(what, why, (image.refusal,), fetches=fetches, about=image.size)
    owns = _owned(image, reading) if reading.answered else ()
    return Change(what, why, (image.pull,), owns=owns, fetches=fetches, about=image.size)


def _owned(image: WantedImage, reading: SeenImages) -> tuple[Owned, ...]:
    """Return what the pull adds: a tag that already existed is not Rackwright's."""
    names = [] if reading.tagged(image.reference) else [image.reference]
    names += [f"{repository_of(image.reference)}@{image.digest}"] if image.digest else []
    return tuple(Owned("image", name) for name in names)


def report(wanted: WantedImages, reading: SeenImages) -> str:
    """List the tags on this host that differ from the pinned digest; nothing is restarted for it."""
    lines = not_asked({image.reference: image.unresolved for image in wanted if image.unresolved})
    for image in wanted:
        current = reading.tagged(image.reference)
        if current and image.digest and current != image.digest:
            lines.append(
                f"the tag {image.reference} has moved on this host: it names {current[:19]}, while {image.digest[:19]} "
                "is pinned and stays in use; to change that, run: rackwright pin INVENTORY"
            )
    return "\n".join(lines)


TAKES = frozenset({ENDPOINTS, "registry", "downloads", "proxy", "bundle"})
"""Sections of the settings that it is handed."""
IMAGE: Concern[WantedImages, SeenImages] = Concern(
    "image", read, parse, wanted, changes, report, takes=TAKES, joined=joined
)


def not_asked(names: Mapping[str, str]) -> list[str]:
    """Return the rows on names that the control machine could not resolve, so that the host does: each reason once.

    names: why, by name.
    """
    if not names:
        return []
    resolved = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} resolved by this host itself"
    reasons = [f"  {why}" for why in dict.fromkeys(names.values())]
    return [
        f"{resolved}, so another host may get other bytes",
        *reasons,
        "  to have the same everywhere: rackwright pin INVENTORY",
    ]


__all__: Sequence[str] = (
    "ADDRESS",
    "FILES",
    "IMAGE",
    "LocalImage",
    "SeenImages",
    "WantedImage",
    "digest_of",
    "folder_name",
    "keeps_files",
    "not_asked",
    "pin_path",
    "pull_job",
    "remove_names_script",
)
