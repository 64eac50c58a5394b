"""Prune Rackwright's images and models that no retained release needs; those of others stay (DECISIONS 21).

Nothing is pruned before every endpoint's wanted release is on the host, so that a rollback never needs a download.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from rackwright.concerns.endpoint.release.concern import TAKES as RELEASE_TAKES
from rackwright.concerns.endpoint.release.concern import wanted_releases
from rackwright.concerns.endpoint.release.files import NEEDS, Release
from rackwright.concerns.image import IMAGE, LocalImage
from rackwright.concerns.models import MODELS, SeenModel, remove_script
from rackwright.hostside import host_script
from rackwright.paths import STATE
from rackwright.plan.answers import Answers
from rackwright.plan.change import Change, Owned, Shell
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.ownership import RECORD
from rackwright.plan.reading import decode, lines_of
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.image_reference import repository_of, tag_of


@dataclass(frozen=True)
class KeptRelease:
    """Requirements of one release on the host: its hash, its image, and the host paths that it mounts.

    A release without readable requirements has no image.
    """

    hash: str
    image: str
    paths: frozenset[str]


@dataclass(frozen=True)
class SeenRetention:
    """The releases on the host, and the images of all containers there, by the requested name."""

    releases: tuple[KeptRelease, ...]
    used: frozenset[str] = frozenset()


@dataclass(frozen=True)
class WantedRetention:
    """Prunable: Rackwright's models and images that no release on the host needs."""

    models: tuple[SeenModel, ...]
    images: tuple[LocalImage, ...]


def read(_: HostSettings) -> str:
    """Print the requirements of every release on the host."""
    return f"""\
for release in {STATE}/endpoints/*/releases/*/; do
  [ -f "$release/spec.json" ] || continue
  release=${{release%/}}
  if [ -f "$release/{NEEDS}" ]; then carry "${{release##*/}}" "$release/{NEEDS}"
  else printf '%s \\n' "${{release##*/}}"; fi
done
exit 0"""


def joined(output: str, answers: Answers) -> str:
    """Return the releases, and the image of every container."""
    return "\n".join([output, *(f"used {one.image}" for one in answers.containers or () if one.image)])


def parse(output: str) -> SeenRetention:
    """Parse the listing: a row for each release with its requirements, then the images that containers use."""
    lines = lines_of(output)
    releases = (_kept(*row.split(" ", 1)) for row in lines if not row.startswith("used "))
    return SeenRetention(tuple(releases), frozenset(row.split(" ", 1)[1] for row in lines if row.startswith("used ")))


def _kept(release: str, text: str) -> KeptRelease:
    needs = [row.partition(" ")[::2] for row in lines_of(decode(text))]
    image = next((name for kind, name in needs if kind == "image"), "")
    return KeptRelease(release, image, frozenset(name for kind, name in needs if kind == "path"))


def wanted(settings: HostSettings, reading: HostReading) -> WantedRetention:
    """Return the models and images that no release needs.

    None as long as a wanted release is not on the host, a release there has no readable requirements, or Docker does
    not answer.
    """
    retention = reading[RETENTION]
    on_host = retention.releases
    releases = wanted_releases(settings, reading).values()
    here = {release.hash for release in on_host}
    staged = all(isinstance(one, Release) and one.hash in here for one in releases)
    if not (reading[IMAGE].answered and staged and all(release.image for release in on_host)):
        return WantedRetention((), ())
    owned: frozenset[Owned] = reading[RECORD]
    return WantedRetention(
        tuple(model for model in reading[MODELS].models if spare_model(model, on_host, owned)),
        tuple(image for image in reading[IMAGE].images if spare_image(image, on_host, owned, retention.used)),
    )


def spare_model(model: SeenModel, retained: Iterable[KeptRelease], owned: Iterable[Owned]) -> bool:
    """Return True for a model that Rackwright put there, not on a share, and that no retained release mounts."""
    if model.shared:
        return False
    ours = any(entry.kind == "model" and fnmatchcase(model.path, entry.name) for entry in owned)
    return ours and not any(model.path in release.paths for release in retained)


def spare_image(
    image: LocalImage, retained: Iterable[KeptRelease], owned: Iterable[Owned], used: Iterable[str] = ()
) -> bool:
    """Return True for an image that Rackwright pulled, that no retained release runs, and no container uses."""
    names = {f"{image.repository}:{image.tag}", f"{image.repository}@{image.digest}"}
    ours = any(entry.kind == "image" and listed(entry.name) in names for entry in owned)
    if any(listed(name) in names for name in used if ":" in name):
        return False  # Docker would refuse: a container was made from it
    return ours and not any(listed(release.image) == f"{image.repository}@{image.digest}" for release in retained)


def listed(reference: str) -> str:
    """Return a reference with its repository in the form in which Docker lists it."""
    bare, at, digest = reference.partition("@")
    return f"{repository_of(bare)}@{digest}" if at else f"{repository_of(bare)}:{tag_of(bare)}"


def changes(spare: WantedRetention, _: SeenRetention) -> Sequence[Change]:
    """Remove each spare model and image."""
    return [*(remove_model(model) for model in spare.models), *(remove_image(image) for image in spare.images)]


def remove_model(model: SeenModel) -> Change:
    """Return the change that removes a spare model."""
    what = f"remove the model {model.path} ({model.size / 2**30:.1f} GiB)"
    step = Shell(remove_script(model.path), timeout=600)
    return Change(what, "no kept release names it", (step,), disowns=(Owned("model", model.path),))


def remove_image(image: LocalImage) -> Change:
    """Return the change that removes a name of a spare image."""
    names = [f"{image.repository}:{image.tag}"] if image.tag else []
    names += [f"{image.repository}@{image.digest}"] if image.digest else []
    owned = tuple(Owned("image", name) for name in names)
    step = Shell(host_script("remove_image", images="\n".join(names)), timeout=600)
    what = f"remove the image {names[0]}"
    return Change(what, "no kept release names it", (step,), disowns=owned)


TAKES = RELEASE_TAKES | {"releases"}
"""Sections of the settings that it is handed."""
RETENTION: Concern[WantedRetention, SeenRetention] = Concern(
    "retention", read, parse, wanted, changes, takes=TAKES, joined=joined
)
