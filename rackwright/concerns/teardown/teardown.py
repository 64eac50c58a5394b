"""What a teardown does: what the ownership record or a mark says is ours goes, and what stays is said. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from rackwright.concerns.deploy_steps import Declared, left_of
from rackwright.concerns.docker.apt import ENGINES
from rackwright.concerns.dockerd.restart_job import HOME as DOCKERD_HOME
from rackwright.concerns.drained import MARK
from rackwright.concerns.lease import LAST_NUMBER, LEASED, SeenLease
from rackwright.concerns.teardown.marks import Marks
from rackwright.concerns.teardown.removal import removals, unknown_kinds
from rackwright.paths import ENCODING_MARKS, ETC, OWNED, RUN, SLICE, STATE
from rackwright.plan.change import Change, Owned, Shell
from rackwright.plan.concern import HostReading
from rackwright.plan.ownership import RECORD

PURGED = frozenset({"model", "image"})
"""Kinds that a teardown leaves unless it purges: they are large, and cost hours to fetch again."""
RECORDED, MARKED = "the ownership record names it", "its mark says that it is ours"
GONE = "it is no longer on the host"
DATA = "Docker's data (/var/lib/docker), which removing its packages does not touch"


@dataclass(frozen=True)
class Teardown:
    """The changes of a teardown, in order, and what stays, in sentences."""

    changes: tuple[Change, ...]
    kept: tuple[str, ...] = ()
    """What is left on purpose."""
    unknown: tuple[str, ...] = ()
    """What nobody can tell whether it is ours, or gone."""
    foreign: tuple[str, ...] = ()
    """What has a name like ours and is somebody else's."""
    record_stays: bool = False
    """True when the record still names something afterwards."""


def plan_teardown(reading: HostReading, marks: Marks, purge: bool) -> Teardown:
    """Undo what the record names and what carries our mark; models and images only with `purge`."""
    record: frozenset[Owned] = reading[RECORD]
    stay = frozenset() if purge else frozenset(one for one in record if one.kind in PURGED)
    gone = frozenset(one for one in stay if is_gone(one, marks))
    going = _without_served(record | marks.marked) - stay
    found = [_with_reason(change, record) for change in removals(going, reading)]
    left = stay - gone | frozenset(unknown_kinds(record))
    last = _last(bool(record) or not marks.nothing, bool(left), reading[LEASED])
    changes = (*found, *_forget(gone), *last)
    foreign = tuple(name for name in marks.foreign if name not in {f"{one.kind} {one.name}" for one in record})
    return Teardown(changes, tuple(_kept(left, record, marks)), tuple(_unknown(record, marks)), foreign, bool(left))


def plan_left_behind(reading: HostReading, declared: Declared, purge: bool) -> list[Change]:
    """Remove what steps that are no longer called left behind; models and images only with `purge`."""
    record: frozenset[Owned] = reading[RECORD]
    left = left_of(declared, record)
    going = [one for own in left.values() for one in own if purge or one.kind not in PURGED]
    return [replace(change, why="its step is no longer called") for change in removals(going, reading)]


def _without_served(owned: frozenset[Owned]) -> frozenset[Owned]:
    """Without the containers that go with their endpoint's unit."""
    units = {one.name.removesuffix(".service") for one in owned if one.kind == "unit"}
    return frozenset(one for one in owned if one.kind != "container" or one.name not in units)


def is_gone(one: Owned, marks: Marks) -> bool:
    """Whether a model or an image that the record names was looked for, and is not there."""
    if one.kind == "model":
        return not any(fnmatchcase(path, place) for path in marks.models for place in (one.name, f"{one.name}.partial"))
    return marks.docker == "up" and one.name not in marks.images


def _with_reason(change: Change, record: frozenset[Owned]) -> Change:
    return replace(change, why=RECORDED if record & set(change.disowns) else MARKED)


def _forget(gone: Iterable[Owned]) -> list[Change]:
    return [Change(f"forget the {one.kind} {one.name}", GONE, (), disowns=(one,)) for one in sorted(gone)]


def _last(here: bool, left: bool, lease: SeenLease) -> list[Change]:
    """The rest of our folders, the lease with them; the record itself stays as long as it still names something."""
    if not here and not lease.last_number:
        return []
    spare = "" if left else f"rm -rf {STATE} || exit 1\n"
    state = f"{STATE}/endpoints {STATE}/guards {ENCODING_MARKS} {DOCKERD_HOME} {LAST_NUMBER} {SLICE} {MARK}"
    script = f"rm -rf {state} {RUN} {ETC} || exit 1\n{spare}"
    return [Change("remove what is left of Rackwright's own folders", "teardown", (Shell(script),))]


def _kept(left: Iterable[Owned], record: frozenset[Owned], marks: Marks) -> list[str]:
    sure = {"model": True, "image": marks.docker == "up"}
    doubt = ", which was not looked at, as Docker does not answer"
    found = [f"{one.kind} {one.name}{'' if sure.get(one.kind, True) else doubt}" for one in sorted(left)]
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
    """What is still there once a teardown has ended, as words; nothing when all is gone.

    record_stays: it still names what stays on purpose, so its folder is no remainder.
    """
    found = [f"{one.kind} {one.name}" for one in sorted(marks.marked) if one.kind != "rule"]
    found += [f"{count} rules of {command}" for command, count in sorted(marks.rules.items())]
    return [*found, *(folder for folder in marks.folders if not (record_stays and folder == STATE))]
