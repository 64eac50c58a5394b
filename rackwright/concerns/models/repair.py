"""Models on a host whose files are not as verified: exactly those files are fetched again. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from rackwright.concerns.models.concern import (
    MODELS,
    SeenModel,
    WantedModel,
    _image,
    _job,
    _not_locked,
    _some,
    fetch_job,
    folder_name,
    wanted,
)
from rackwright.concerns.models.neighbours import named
from rackwright.messages import few
from rackwright.plan.change import Change
from rackwright.plan.concern import HostReading
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.sections import ModelSource

NOWHERE = "/config/models/repaired"
"""A mount that no container has: a model that only a kept release needs is no longer in the settings."""


def repair_changes(settings: HostSettings, reading: HostReading) -> Iterator[Change]:
    """Yield the changes that put models of a host right, those that only a kept release needs included."""
    by_folder = {one.folder: one for one in wanted(settings, reading)}
    for model in reading[MODELS].models:
        target = by_folder.get(model.path)
        if broken := _broken(model, target):
            target = target or _kept(settings, model, reading)
            what = f"put {model.repository} at {model.commit[:12]} right"
            yield _job(target, what, f"not as verified: {_some(broken)}", owned=False)
        elif target and target.keeps is not None:
            what = f"hand {model.repository} on to {few(target.takers)}"
            yield Change(what, "files of it are broken there", (target.keeps,))
    for target in _without_record(reading, by_folder):
        what = f"verify {target.source.repository} at {target.source.revision[:12]}, and complete it"
        yield _job(target, what, "this host has no record of what it has verified there", owned=False)


def broken_models(settings: HostSettings, reading: HostReading) -> frozenset[str]:
    """Return the models of the settings that are put right, by their names among the hosts of a run."""
    by_folder = {one.folder: one for one in wanted(settings, replace(reading, hands_on=None))}
    present = {model.path: model for model in reading[MODELS].models}
    broken = [one for folder, one in by_folder.items() if folder in present and _broken(present[folder], one)]
    found = [*broken, *_without_record(reading, by_folder)]
    return frozenset(named(one.source, one.commit) for one in found if one.commit)


def _broken(model: SeenModel, target: WantedModel | None) -> list[str]:
    return list(model.changed) or (_not_locked(target.source, model) if target else [])


def _without_record(reading: HostReading, by_folder: Mapping[str, WantedModel]) -> list[WantedModel]:
    """Return the models that are on the host without its record; with an unknown commit, in any folder of theirs."""
    foreign = reading[MODELS].foreign
    return [
        target
        for folder, target in sorted(by_folder.items())
        if folder in foreign or (target.commit is None and any(fnmatchcase(path, folder) for path in foreign))
    ]


def _kept(settings: HostSettings, model: SeenModel, reading: HostReading) -> WantedModel:
    """Return a model that the settings do not name, as its record describes it."""
    folder = model.path.rpartition("/")[2]
    source = ModelSource(
        repository=model.repository,
        revision=model.commit,
        directory=folder,
        mount=NOWHERE,
        include=tuple(sorted(model.include)),
        exclude=tuple(sorted(model.exclude)),
    )
    if folder == f"{folder_name(source)}--{model.commit[:12]}":
        source = source.model_copy(update={"directory": None})
    fetcher = _image(settings, reading)
    fetch = fetch_job(settings, source, model.commit, fetcher) if fetcher else None
    return WantedModel(source, model.commit, model.path, fetch, fetcher.image if fetcher else "")
