"""Rackwright's own objects that no endpoint and no kept release of a host needs, and their removal. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from rackwright.concerns.caches.entries import FOREIGN, whose_is
from rackwright.concerns.caches.needs import Needs, needs_of
from rackwright.concerns.encodings.concern import ENCODING_FILES, ENCODINGS
from rackwright.concerns.image import IMAGE, LocalImage
from rackwright.concerns.models import MODELS
from rackwright.concerns.models.concern import remove_script
from rackwright.concerns.retention import RETENTION, remove_image, remove_model, spare_image, spare_model
from rackwright.hostside import host_script
from rackwright.paths import ENCODING_MARKS
from rackwright.plan.change import Change, Owned, Shell
from rackwright.plan.concern import HostReading
from rackwright.plan.ownership import RECORD
from rackwright.settings.host_settings import HostSettings

WHY = "no endpoint and no kept release needs it"
PARTIAL = ".partial"
"""Ending of a folder in which a model is assembled."""


@dataclass(frozen=True)
class Spare:
    """One thing that can go."""

    name: str
    """A path, or an image's name."""
    size: int | None
    change: Change


@dataclass(frozen=True)
class SpareOfHost:
    """All that can go from a host, and why other things must stay until more is known of them."""

    spare: tuple[Spare, ...] = ()
    held: tuple[str, ...] = ()


def spare_of(
    settings: HostSettings, reading: HostReading, unfinished: Mapping[str, int | None], sizes: Mapping[str, int | None]
) -> SpareOfHost:
    """Return what can go from a host. unfinished: bytes of unfinished downloads. sizes: of images, by their names."""
    unclear = [release.hash for release in reading[RETENTION].releases if not release.image]
    if unclear:
        return SpareOfHost(held=(f"what release {unclear[0]} needs cannot be read, so nothing is removed",))
    needs = needs_of(settings, reading)
    held = []
    if not (reading[IMAGE].answered or settings.is_gateway_alone):
        held.append("Docker does not answer, so no image is removed; next: journalctl -u docker --lines 50")
    if reading[MODELS].hangs:
        held.append(f"the file system of {settings.models.folder} does not answer, so no model is removed")
    held += _on_share(reading, needs, unfinished)
    spare = (
        *_models(reading, needs),
        *_unfinished(reading, needs, unfinished),
        *_images(reading, needs, sizes),
        *_encodings(settings, reading, needs),
    )
    return SpareOfHost(spare, tuple(held))


def agreed_changes(found: SpareOfHost, agreed: Container[str]) -> list[Change]:
    """Return the changes that remove what can go still, of what an operator has agreed to."""
    return [one.change for one in found.spare if one.name in agreed]


def _models(reading: HostReading, needs: Needs) -> list[Spare]:
    owned, retained = reading[RECORD], reading[RETENTION].releases
    going = [
        model for model in reading[MODELS].models if spare_model(model, retained, owned) and not needs.of_model(model)
    ]
    return [Spare(model.path, model.size, remove_model(model)) for model in going]


def _on_share(reading: HostReading, needs: Needs, unfinished: Iterable[str]) -> list[str]:
    """Return why models on a share stay: hosts of another inventory may serve from there."""
    owned: frozenset[Owned] = reading[RECORD]
    unneeded = [
        model.path
        for model in reading[MODELS].models
        if model.shared and not needs.of_model(model) and whose_is("model", model.path, owned) != FOREIGN
    ]
    cut = [path for path in _abandoned(reading, needs, unfinished) if reading[MODELS].share]
    text = "is on a share, whose other hosts may need it, so it stays; next, once none does: rm -r"
    return [f"{path} {text} {path}" for path in [*unneeded, *cut]]


def _unfinished(reading: HostReading, needs: Needs, unfinished: Mapping[str, int | None]) -> list[Spare]:
    """Return downloads that were cut and can go: on a share, another host may be the one that continues them."""
    if reading[MODELS].share:
        return []
    cut = _abandoned(reading, needs, unfinished)
    return [Spare(path, unfinished[path], _remove_unfinished(path, path.removesuffix(PARTIAL))) for path in cut]


def _abandoned(reading: HostReading, needs: Needs, unfinished: Iterable[str]) -> list[str]:
    """Return downloads that were cut, of models that are neither needed nor there; others are continued one day."""
    owned: frozenset[Owned] = reading[RECORD]
    present = {model.path for model in reading[MODELS].models} | reading[MODELS].foreign
    found = []
    for path in sorted(unfinished):
        target = path.removesuffix(PARTIAL)
        wanted = target in needs.paths or any(_is_of(target, repository) for repository in needs.repositories)
        if target not in present and not wanted and whose_is("model", target, owned) != FOREIGN:
            found.append(path)
    return found


def _is_of(folder: str, repository: str) -> bool:
    return folder.rpartition("/")[2].startswith(f"{repository.replace('/', '--')}--")


def _remove_unfinished(path: str, target: str) -> Change:
    lock = shlex.quote(f"{path}/.parts/lock")
    script = (
        f"[ ! -e {lock} ] || flock --nonblock {lock} true ||"
        f" {{ echo 'a download into {path} is under way' >&2; exit 1; }}\n{remove_script(target)}"
    )
    step = Shell(script, timeout=600)
    return Change(f"remove the unfinished download {path}", WHY, (step,), disowns=(Owned("model", target),))


def _images(reading: HostReading, needs: Needs, sizes: Mapping[str, int | None]) -> list[Spare]:
    if not reading[IMAGE].answered:
        return []
    owned, retention = reading[RECORD], reading[RETENTION]
    going = [
        image
        for image in reading[IMAGE].images
        if spare_image(image, retention.releases, owned, retention.used)
        and not needs.of_image(image.repository, image.digest)
    ]
    return [
        Spare(_name(image), sizes.get(f"{image.repository}@{image.digest}"), remove_image(image)) for image in going
    ]


def _name(image: LocalImage) -> str:
    return f"{image.repository}:{image.tag}" if image.tag else f"{image.repository}@{image.digest}"


def _encodings(settings: HostSettings, reading: HostReading, needs: Needs) -> list[Spare]:
    folder, owned = settings.encodings.folder, reading[RECORD]
    if folder in needs.paths or not settings.all_endpoints:
        return []
    paths = {f"{folder}/{one.file}": one for one in ENCODING_FILES if one.file in reading[ENCODINGS]}
    ours = [path for path in paths if whose_is("file", path, owned) != FOREIGN]
    return [Spare(path, paths[path].size, _remove_encoding(path)) for path in ours]


def _remove_encoding(path: str) -> Change:
    mark = f"{ENCODING_MARKS}/{path.rpartition('/')[2]}"
    script = host_script("remove_file", path=path, folder=path.rpartition("/")[0])
    step = Shell(f"rm -f {shlex.quote(mark)}\n{script}")
    return Change(f"remove the encoding {path}", WHY, (step,), disowns=(Owned("file", path),))
