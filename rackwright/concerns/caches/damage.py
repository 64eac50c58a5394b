"""The changes that read the files of a host's caches again, and those that fetch exactly the broken ones. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.concerns.encodings import concern as encodings
from rackwright.concerns.encodings.concern import ENCODING_FILES, ENCODINGS
from rackwright.concerns.models import MODELS, hash_changes
from rackwright.concerns.models import repair as models
from rackwright.concerns.models.concern import HASH_JOB
from rackwright.hostside import job_script
from rackwright.paths import ENCODING_MARKS
from rackwright.plan.change import Change, Job
from rackwright.plan.concern import HostReading
from rackwright.settings.host_settings import HostSettings

WHY = "rackwright cache verify"


def verify_changes(settings: HostSettings, reading: HostReading) -> list[Change]:
    """Return what hashes the files of models and encodings again; the next reading shows what is damaged."""
    return [*hash_changes(settings, reading[MODELS], WHY), *_hash_encodings(settings, reading)]


def _hash_encodings(settings: HostSettings, reading: HostReading) -> Iterator[Change]:
    present = [one for one in ENCODING_FILES if one.file in reading[ENCODINGS]]
    if not present:
        return
    folder, sums = settings.encodings.folder, "\n".join(f"{one.sha256} {one.file}" for one in present)
    script = job_script("hash_encodings", folder=folder, sums=sums, marks=ENCODING_MARKS)
    job = Job(f"{HASH_JOB}encodings", f"hash the encodings of {folder}", script, timeout=600, code="RW2304")
    yield Change(f"hash the {len(present)} encodings of {folder}", WHY, (job,))


def repair_changes(settings: HostSettings, reading: HostReading) -> list[Change]:
    """Return what fetches exactly the files again that are not as verified."""
    return [*models.repair_changes(settings, reading), *encodings.repair_changes(settings, reading)]
