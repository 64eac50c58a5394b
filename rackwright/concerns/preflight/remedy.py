"""The remedy for a host that preflight stops, which a second run of the same settings does not help. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from rackwright.concerns.endpoint.group.other_hosts import TEARDOWN
from rackwright.concerns.preflight.members import ELSEWHERE
from rackwright.concerns.preflight.row import Case, CheckRow
from rackwright.profiles.catalog import fitting
from rackwright.record.ending import FIX
from rackwright_engines.fit.gpu import gpu_type

OTHER_MACHINE = frozenset({"RW3111", "RW3130", "RW3132"})
"""Codes of rows on a host that is not the machine of its settings: architecture, GPU model, compute capability."""
OTHER_SETTINGS = frozenset({"RW3133"})
"""Codes of rows that other settings alone help: GPUs of endpoints that the host does not have."""


def remedy(case: Case, rows: Iterable[CheckRow]) -> str:
    """Return what helps a host that these rows stop; empty where its own repair does, after which a run continues."""
    codes = {row.code for row in rows}
    if codes & OTHER_MACHINE:
        return another_profile(case)
    if ELSEWHERE in codes:
        return TEARDOWN
    return FIX if codes & OTHER_SETTINGS else ""


def another_profile(case: Case) -> str:
    """Return how a host gets settings for the machine that it is: a profile that fits it, or `hardware` as it is."""
    gpus = case.gpus.gpus
    architecture = case.machine.values.get("architecture", "")
    fit = fitting(gpus[0].name, len(gpus), architecture) if gpus else ()
    kind = gpu_type(gpus[0].name) if gpus else None
    if not (fit and kind):
        return "move the host to another group, or set `hardware` as it is"
    name = f"'{kind.name}'" if " " in kind.name else kind.name
    profile = f"give the host a profile that fits it, as {fit[0]} (rackwright profiles list --gpu {name})"
    return f"{profile}, or set `hardware` as it is"
