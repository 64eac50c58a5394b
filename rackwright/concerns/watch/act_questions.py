"""Questions of releases that an earlier version of Rackwright proved: they are stored without a switch. Pure.

Each commit stores them beside its release since then (switch/host/commit.sh).
"""

from __future__ import annotations

from collections.abc import Mapping

from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.questions import tried_of
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.endpoint.switch.proving import kept_questions
from rackwright.paths import questions_file
from rackwright.plan.change import Change, Shell, WriteFile
from rackwright.plan.concern import HostReading
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret


def missing_questions(settings: HostSettings, reading: HostReading) -> dict[str, Secret]:
    """Return them by path: of the proven release of each endpoint that the watch may restart."""
    if settings.watch.act != "restart":
        return {}
    endpoints = reading[ENDPOINT].endpoints
    found = (_missing(name, endpoints[name]) for name in settings.all_endpoints if name in endpoints)
    return {path: text for files in found for path, text in files.items()}


def _missing(name: str, now: SeenEndpoint) -> dict[str, Secret]:
    if now.askable or not (now.proven and now.proven_spec and now.proven_binding):
        return {}
    tried = tried_of(name, now.proven, now.proven_spec, now.proven_binding)
    return {questions_file(name, now.proven): Secret(kept_questions(name, tried))}


def store_questions(missing: Mapping[str, Secret]) -> list[Change]:
    """Return the changes that store them, for root alone."""
    return [
        Change(
            f"store the questions of a proven release at {path}",
            "the host's watch proves the endpoint by them after a restart",
            (Shell(f"mkdir -p -m 0700 {path.rpartition('/')[0]}"), WriteFile(path, text, "0600")),
        )
        for path, text in missing.items()
    ]
