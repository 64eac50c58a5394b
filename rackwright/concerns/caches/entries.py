"""The content of one host's caches, an entry each: bytes, for whom, when verified, whose. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from rackwright.concerns.caches.needs import Needs, needs_of
from rackwright.concerns.caches.seen import HubModel, SeenCaches
from rackwright.concerns.encodings.concern import ENCODING_FILES, ENCODINGS
from rackwright.concerns.image import IMAGE, LocalImage
from rackwright.concerns.models import MODELS, commit_of
from rackwright.concerns.models.concern import SeenModel
from rackwright.concerns.retention import listed
from rackwright.plan.change import Owned
from rackwright.plan.concern import HostReading
from rackwright.plan.ownership import RECORD
from rackwright.settings.host_settings import HostSettings

MODEL, IMAGE_KIND, ENCODING, UNFINISHED, HUB = "model", "image", "encoding", "unfinished", "hub cache"
OURS, FOREIGN = "rackwright", "others"
ImageSizes = Mapping[tuple[str, str], int]
"""Bytes of an image by its repository and digest."""


@dataclass(frozen=True)
class CacheEntry:
    """One thing in a host's caches."""

    kind: str
    name: str
    path: str
    size: int | None
    """Bytes; None where they are not known."""
    needed_by: tuple[str, ...] = ()
    """Endpoints, and releases that the host keeps."""
    verified: int | None = None
    """Seconds since 1970; None where Rackwright has not verified it, or not in this state."""
    whose: str = FOREIGN
    trouble: str = ""
    """Those of its files that are not as verified."""
    shared: bool = False
    """True for a model on a network file system."""


def entries_of(
    settings: HostSettings, reading: HostReading, caches: SeenCaches, sizes: ImageSizes
) -> tuple[CacheEntry, ...]:
    """Return all entries of a host. sizes: of its images."""
    needs = needs_of(settings, reading)
    owned: frozenset[Owned] = reading[RECORD]
    return (
        *(_model(model, needs, owned, caches) for model in reading[MODELS].models),
        *_unknown_models(reading, needs, caches),
        *_images(reading, needs, owned, sizes),
        *_encodings(settings, reading, needs, owned, caches),
        *(_unfinished(path, size, owned) for path, size in sorted(caches.unfinished.items())),
        *(_hub_model(model, settings, reading) for model in caches.hub),
        *(CacheEntry(HUB, "files that its models share", path, size) for path, size in sorted(caches.shared.items())),
    )


def whose_is(kind: str, name: str, owned: frozenset[Owned]) -> str:
    """Return whose an object is, by the host's record, which has a pattern for a model whose commit was not known."""
    is_ours = any(one.kind == kind and fnmatchcase(name, one.name) for one in owned)
    return OURS if is_ours else FOREIGN


def _model(model: SeenModel, needs: Needs, owned: frozenset[Owned], caches: SeenCaches) -> CacheEntry:
    name = f"{model.repository}@{model.commit[:12]}"
    folder = model.path.rpartition("/")[2]
    verified = max(model.fetched, caches.hashed.get(folder, 0))
    trouble = f"not as verified: {', '.join(model.changed)}" if model.changed else ""
    whose = whose_is("model", model.path, owned)
    at = None if trouble else verified
    needed = needs.of_model(model)
    return CacheEntry(MODEL, name, model.path, model.size, needed, at, whose, trouble, model.shared)


def _unknown_models(reading: HostReading, needs: Needs, caches: SeenCaches) -> Iterator[CacheEntry]:
    """Yield the folders beside the models of which this host has no record: it has not verified them."""
    recorded = {model.path for model in reading[MODELS].models}
    for path in sorted((caches.folders.keys() | reading[MODELS].foreign) - recorded):
        needed = needs.paths.get(path, ())
        trouble = "not verified by this host" if needed or path in reading[MODELS].foreign else ""
        yield CacheEntry(MODEL, path.rpartition("/")[2], path, caches.folders.get(path), needed, trouble=trouble)


def _images(reading: HostReading, needs: Needs, owned: frozenset[Owned], sizes: ImageSizes) -> Iterator[CacheEntry]:
    """Yield each image once, whatever the number of its tags."""
    found: dict[tuple[str, str | None], list[LocalImage]] = {}
    for image in reading[IMAGE].images:
        found.setdefault((image.repository, image.digest), []).append(image)
    ours = {listed(one.name) for one in owned if one.kind == "image"}
    for (repository, digest), images in found.items():
        tags = [f"{repository}:{image.tag}" for image in images if image.tag]
        reference = f"{repository}@{digest}"
        whose = OURS if ours & {*tags, reference} else FOREIGN
        needed = needs.of_image(repository, digest)
        size = sizes.get((repository, digest or ""))
        yield CacheEntry(IMAGE_KIND, (tags or [repository])[0], reference if digest else "", size, needed, None, whose)


def _encodings(
    settings: HostSettings, reading: HostReading, needs: Needs, owned: frozenset[Owned], caches: SeenCaches
) -> Iterator[CacheEntry]:
    needed = needs.paths.get(settings.encodings.folder, ())
    for encoding in ENCODING_FILES:
        file = reading[ENCODINGS].get(encoding.file)
        if file is None:
            continue
        path = f"{settings.encodings.folder}/{encoding.file}"
        right = file.sha256 == encoding.sha256
        verified = caches.marked.get(encoding.file) if right else None
        trouble = "" if right else "its bytes are not the published ones"
        whose = whose_is("file", path, owned)
        yield CacheEntry(
            ENCODING, encoding.file, path, encoding.size if right else None, needed, verified, whose, trouble
        )


def _unfinished(path: str, size: int | None, owned: frozenset[Owned]) -> CacheEntry:
    target = path.removesuffix(".partial")
    whose = whose_is("model", target, owned)
    return CacheEntry(UNFINISHED, target.rpartition("/")[2], path, size, whose=whose)


def _hub_model(model: HubModel, settings: HostSettings, reading: HostReading) -> CacheEntry:
    """Return a model of a hub cache: it is for the endpoints whose commit it has, which copy its files."""
    users = [
        name
        for name, endpoint in settings.all_endpoints.items()
        for source in (endpoint.model, endpoint.draft)
        if source and source.repository == model.repository and commit_of(source, reading) in model.commits
    ]
    return CacheEntry(HUB, model.repository, model.path, model.size, tuple(dict.fromkeys(users)))
