"""Plan of a teardown: remove all objects with an entry in the record or a mark, and report all that stay. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from rackwright.concerns.deploy_steps import Declared, left_of
from rackwright.concerns.diagnosis.seen import KEPT as DIAGNOSIS
from rackwright.concerns.docker.apt import ENGINES
from rackwright.concerns.dockerd.restart_job import HOME as DOCKERD_HOME
from rackwright.concerns.drained import MARK
from rackwright.concerns.driver.seen import HOME as DRIVER_HOME
from rackwright.concerns.gateway.files import HOME as GATEWAY_HOME
from rackwright.concerns.gateway.renewal import METRICS_FILE
from rackwright.concerns.lease import LAST_NUMBER, LEASED, SeenLease
from rackwright.concerns.models import MODELS
from rackwright.concerns.teardown.marks import Marks
from rackwright.concerns.teardown.removal_order import removals, unknown_kinds
from rackwright.concerns.watch.files import STATE_FOLDERS
from rackwright.concerns.watch.metrics import WRITTEN_FILE
from rackwright.hostside import host_script
from rackwright.paths import ENCODING_MARKS, ETC, OWNED, RUN, SLICE, STATE
from rackwright.plan.change import Change, Owned, Shell
from rackwright.plan.concern import HostReading
from rackwright.plan.ownership import RECORD

PURGED = frozenset({"model", "image"})
"""Kinds that a teardown leaves unless it purges: they are large, and cost hours to fetch again."""
RECORDED, MARKED = "the ownership record names it", "its mark says that it is ours"
GONE = "it is no longer on the host"
ON_SHARE = "it is on a share, whose other hosts may need it"
DATA = "Docker's data (/var/lib/docker), which removing its packages does not touch"


@dataclass(frozen=True)
class Teardown:
    """The changes of a teardown, in order, and sentences about all that stays."""

    changes: tuple[Change, ...]
    retained: tuple[str, ...] = ()
    """Objects that stay on purpose."""
    unknown: tuple[str, ...] = ()
    """Objects whose owner or existence cannot be determined."""
    foreign: tuple[str, ...] = ()
    """Objects with a name like Rackwright's that belong to others."""
    record_stays: bool = False
    """True when the record still has entries afterwards."""


def plan_teardown(reading: HostReading, marks: Marks, purge: bool) -> Teardown:
    """Remove all objects in the record or with Rackwright's mark; models and images only with `purge`."""
    record: frozenset[Owned] = reading[RECORD]
    shared = frozenset(one for one in record if _on_share(one, reading) or _is_marked_shared(one, marks))
    stay = shared if purge else frozenset(one for one in record if one.kind in PURGED)
    gone = frozenset(one for one in stay if is_gone(one, marks))
    going = _without_served(record | marks.marked) - stay
    found = [_with_reason(change, record) for change in removals(going, reading)]
    in_use = shared - gone if purge else frozenset()
    remaining = stay - gone - in_use | frozenset(unknown_kinds(record))
    last = _last(bool(record) or not marks.nothing, bool(remaining), reading[LEASED])
    changes = (*found, *_forget(gone), *_leave(in_use), *last)
    foreign = tuple(name for name in marks.foreign if name not in {f"{one.kind} {one.name}" for one in record})
    return Teardown(
        changes, tuple(_kept(remaining, record, marks)), tuple(_unknown(record, marks)), foreign, bool(remaining)
    )


def plan_left_behind(reading: HostReading, declared: Declared, purge: bool) -> list[Change]:
    """Remove the objects of steps that are no longer called; models and images only with `purge`."""
    record: frozenset[Owned] = reading[RECORD]
    by_step = left_of(declared, record)
    purged = [one for entries in by_step.values() for one in entries if purge or one.kind not in PURGED]
    going = [one for one in purged if not _on_share(one, reading)]
    return [replace(change, why="its step is no longer called") for change in removals(going, reading)]


def _without_served(owned: frozenset[Owned]) -> frozenset[Owned]:
    """Return the entries without containers that are removed with their endpoint's unit."""
    units = {one.name.removesuffix(".service") for one in owned if one.kind == "unit"}
    return frozenset(one for one in owned if one.kind != "container" or one.name not in units)


def is_gone(one: Owned, marks: Marks) -> bool:
    """Return True if a model or an image in the record was searched, and is missing."""
    if one.kind == "model":
        return not _is_any(one, marks.models)
    return marks.docker == "up" and one.name not in marks.images


def _with_reason(change: Change, record: frozenset[Owned]) -> Change:
    return replace(change, why=RECORDED if record & set(change.disowns) else MARKED)


def _forget(gone: Iterable[Owned]) -> list[Change]:
    return [Change(f"forget the {one.kind} {one.name}", GONE, (), disowns=(one,)) for one in sorted(gone)]


def _on_share(one: Owned, reading: HostReading) -> bool:
    """Return True for a model that other hosts may serve from, or fill now, whatever this host's record says."""
    models = reading[MODELS]
    inside = bool(models.share) and one.name.rpartition("/")[0] == models.share
    paths = [model.path for model in models.models if model.shared]
    return one.kind == "model" and (inside or any(fnmatchcase(path, one.name) for path in paths))


def _is_marked_shared(one: Owned, marks: Marks) -> bool:
    """Return True for a model on a share that the settings no longer name as the folder of models."""
    return one.kind == "model" and _is_any(one, marks.shared)


def _is_any(one: Owned, paths: Iterable[str]) -> bool:
    return any(fnmatchcase(path, pattern) for path in paths for pattern in (one.name, f"{one.name}.partial"))


def _leave(shared: Iterable[Owned]) -> list[Change]:
    return [Change(f"leave the model {one.name}", ON_SHARE, (), disowns=(one,)) for one in sorted(shared)]


def _last(here: bool, remaining: bool, lease: SeenLease) -> list[Change]:
    """Remove Rackwright's remaining folders, the lease included; the record stays as long as it has entries."""
    if not here and not lease.last_number:
        return []
    spare = "" if remaining else f"rm -rf {STATE} || exit 1\n"
    files = (ENCODING_MARKS, LAST_NUMBER, SLICE, MARK, DIAGNOSIS)
    state = (f"{STATE}/endpoints", f"{STATE}/guards", DOCKERD_HOME, DRIVER_HOME, *files)
    metrics = "".join(host_script("metrics_remove", place=path) for path in (WRITTEN_FILE, METRICS_FILE))
    script = f"{metrics}rm -rf {' '.join((*state, *STATE_FOLDERS, GATEWAY_HOME))} {RUN} {ETC} || exit 1\n{spare}"
    return [Change("remove what is left of Rackwright's own folders", "teardown", (Shell(script),))]


def _kept(remaining: Iterable[Owned], record: frozenset[Owned], marks: Marks) -> list[str]:
    sure = {"model": True, "image": marks.docker == "up"}
    doubt = ", which was not looked at, as Docker does not answer"
    found = [f"{one.kind} {one.name}{'' if sure.get(one.kind, True) else doubt}" for one in sorted(remaining)]
    engine = any(one.kind == "package" and one.name in ENGINES for one in record)
    return [*found, *([DATA] if engine or (marks.data and record) else [])]


def _unknown(record: frozenset[Owned], marks: Marks) -> list[str]:
    found = list(marks.unseen)
    if marks.docker == "down":
        found.append("its containers were not looked at, as Docker does not answer; next: systemctl start docker")
    if not marks.record and not marks.nothing and not record:
        found.append(LOST)
        found += [f"{path} has Rackwright's manifest of a model, fetched or adopted" for path in marks.manifests]
    return found


LOST = (
    f"{OWNED} is gone, and it alone names which packages, holds, members of the group docker, keys in "
    "/etc/docker/daemon.json, certificates in /etc/docker/certs.d, registry logins, images and models Rackwright has "
    "added; next: look at them by hand (apt-mark showhold; getent group docker; cat /etc/docker/daemon.json "
    "/root/.docker/config.json; docker image ls)"
)
NOTHING = (
    f"nothing of Rackwright was found: no record ({OWNED}), no unit, container, rule, file or folder with its mark"
)


def remains(marks: Marks, record_stays: bool) -> Sequence[str]:
    """Return all that remains after a teardown, as text; empty when everything was removed.

    record_stays: it still has entries that stay on purpose, so its folder does not count.
    """
    found = [f"{one.kind} {one.name}" for one in sorted(marks.marked) if one.kind != "rule"]
    found += [f"{count} rules of {command}" for command, count in sorted(marks.rules.items())]
    return [*found, *(folder for folder in marks.folders if not (record_stays and folder == STATE))]
