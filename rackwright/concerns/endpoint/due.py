"""Why an endpoint must be switched, started or proven: by comparison, never by memory.

The running container carries the hash of the spec that it was started with, and a restart is due exactly when that
differs, or when nothing runs that should.
"""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.release import Release
from rackwright.settings.model import EndpointSettings
from rackwright.specdiff import reasons


@dataclass(frozen=True)
class Due:
    """Why an endpoint must be switched or proven; whether that takes a restart, and keeps the old log first."""

    reason: str
    restart: bool = True
    keep_log: bool = False


def why_switch(release: Release, seen: SeenEndpoint) -> Due | None:
    """The reason to switch, or to start and prove; None when the endpoint is as wanted."""
    at_release = seen.current == release.hash and seen.unit == release.unit and not seen.needs_reload
    if seen.loading and at_release and seen.running_hash in (None, release.hash):
        return None if seen.proven == release.hash else Due("it is loading and was never proven", restart=False)
    if seen.running_hash not in (None, release.hash):
        return Due(reasons(seen.spec, release.spec.as_json()) or f"it runs release {seen.running_hash}")
    if seen.running_hash is None or seen.active != "active":
        return Due(_why_not_running(seen))
    if seen.health != 200:
        return Due(f"it runs, but /health answers {seen.health or 'nothing'}", keep_log=True)
    return None if seen.proven == release.hash else Due("it runs, but was never proven", restart=False)


def why_admit(settings: EndpointSettings, seen: SeenEndpoint) -> Due | None:
    """A switch that broke off at its very end leaves the endpoint out of the site's balancer."""
    if settings.ready_hook and not seen.admitted:
        return Due("clients were not let in again after its last switch", restart=False)
    return None


def _why_not_running(seen: SeenEndpoint) -> str:
    if seen.current is None:
        return "it has never run here"
    if seen.active == "failed":
        return f"it gave up ({seen.result})"
    return f"it should run, but is {seen.active} ({seen.sub})"


def differing(release: Release, seen: SeenEndpoint) -> list[str]:
    """What is not as wanted around an endpoint that runs and has been proven."""
    rows = {
        "its text differs": seen.unit != release.unit,
        "systemd has not read it again": seen.needs_reload,
        "it is not enabled at boot": not seen.enabled,
        f"`current` points to {seen.current or 'nothing'}": seen.current != release.hash,
    }
    return [text for text, differs in rows.items() if differs]
