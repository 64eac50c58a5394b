"""Marks of a host: which endpoints are out of service, by which writer, since when and why. Pure.

Each writer has files of its own in one folder of the host, and removes only those: `trial-ENDPOINT` of a run's job,
`watch-ENDPOINT` and `sick-ENDPOINT` of the host's watch, and `quarantine`. An operator's drain is of the concern
`drained`.
"""

from rackwright.concerns.marks.mark import (
    AT_WORK,
    QUARANTINE,
    TRIAL,
    Mark,
    MarkState,
    clear_script,
    parse_mark_file,
    quarantine_script,
    read_script,
    release_script,
    trial_mark,
)
from rackwright.paths import MARKS

__all__ = [
    "AT_WORK",
    "MARKS",
    "QUARANTINE",
    "TRIAL",
    "Mark",
    "MarkState",
    "clear_script",
    "parse_mark_file",
    "quarantine_script",
    "read_script",
    "release_script",
    "trial_mark",
]
