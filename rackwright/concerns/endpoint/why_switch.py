"""Reasons to switch, start or prove an endpoint: by comparison, never by memory.

The running container carries the hashes of its serving part and of the binding that it was started with. A restart is
due exactly when one of them differs, or when nothing runs that should. A wanted release that differs from the running
one in its unit or its helper scripts alone is deferred: it is adopted at the next switch (DECISIONS 40).
"""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.container_diff import reasons
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.settings.host_settings import EndpointSettings


@dataclass(frozen=True)
class Due:
    """A reason to switch or prove an endpoint; whether that takes a restart, and keeps the old log first."""

    reason: str
    restart: bool = True
    keep_log: bool = False


@dataclass(frozen=True)
class Aim:
    """The wanted state of an endpoint."""

    release: Release
    binding: Binding
    adopt: bool = False
    """True if what differs in the unit or the helper scripts alone is worth a restart."""


def serves_the_same(aim: Aim, reading: SeenEndpoint) -> bool:
    """Return True if what runs was started with the wanted serving part and binding."""
    running = reading.running
    wanted = (aim.release.spec.serving_hash, aim.binding.hash)
    return running is not None and (running.serving, running.binding) == wanted


def is_deferred(aim: Aim, reading: SeenEndpoint) -> bool:
    """Return True if the wanted release waits for the next switch, since what runs, or loads, serves the same."""
    if aim.adopt or reading.current in (None, aim.release.hash) or not reading.files_whole:
        return False
    if not reading.has_proven(reading.current, aim.binding):
        return False
    if reading.loading and reading.running is None:
        return reading.binding == aim.binding and reading.spec.get("serving") == aim.release.spec.serving_hash
    return reading.running_hash == reading.current and serves_the_same(aim, reading)


def resting_release(aim: Aim, reading: SeenEndpoint) -> str:
    """Return the release that unit and pointer should name: the wanted one, or the running one while it is deferred."""
    return (reading.current if is_deferred(aim, reading) else None) or aim.release.hash


def why_switch(aim: Aim, reading: SeenEndpoint) -> Due | None:
    """Return the reason to switch, or to start and prove; None when the endpoint serves what is wanted."""
    meant = resting_release(aim, reading)
    if reading.loading and _starts(meant, aim, reading):
        return (
            None if reading.has_proven(meant, aim.binding) else Due("it is loading and was never proven", restart=False)
        )
    if reading.running is not None and not serves_the_same(aim, reading):
        return Due(_what_differs(aim, reading))
    if reading.sick:
        return Due("the host's watch restarted it several times and gave it up (marked sick)")
    if reading.running is None or reading.active != "active":
        return Due(_why_not_running(reading) + _swapped(aim, reading))
    if reading.health != 200:
        return Due(f"it runs, but /health answers {reading.health or 'nothing'}", keep_log=True)
    if reading.running_hash != meant:
        return Due(_why_adopt(reading))
    if edited := edited_by_hand(reading):
        return Due(edited)
    return None if reading.has_proven(meant, aim.binding) else Due(_unproven(meant, aim, reading), restart=False)


def edited_by_hand(reading: SeenEndpoint) -> str:
    """Return how what runs differs from its release although it carries its labels; empty when it does not."""
    command = f"it was started {reading.command_edited}, not as its release says" if reading.command_edited else ""
    limits = f"limits of its container were changed: {reading.limits_edited}" if reading.limits_edited else ""
    return "; ".join(filter(None, (command, limits)))


def _starts(meant: str, aim: Aim, reading: SeenEndpoint) -> bool:
    """Return True if a start that is under way ends in the wanted release."""
    if reading.current != meant or not reading.unit_same or reading.needs_reload or reading.binding != aim.binding:
        return False
    return reading.running is None or (reading.running_hash == meant and serves_the_same(aim, reading))


def _what_differs(aim: Aim, reading: SeenEndpoint) -> str:
    assert reading.running is not None
    found = [reasons(reading.spec, aim.release.spec.as_json())]
    found += [_what_is_bound(aim, reading)] if reading.running.binding != aim.binding.hash else []
    return ", ".join(filter(None, found)) or f"it runs release {reading.running_hash}"


def _what_is_bound(aim: Aim, reading: SeenEndpoint) -> str:
    """Return the host's own differences; a container carries only a hash of them."""
    assert reading.running is not None
    bindings = [
        binding
        for binding in (reading.binding, reading.proven_binding)
        if binding and binding.hash == reading.running.binding
    ]
    return "its key changed" if bindings and bindings[0].gpus == aim.binding.gpus else "its GPUs changed"


def _why_adopt(reading: SeenEndpoint) -> str:
    """Return why a release that serves what is wanted is not left running until the next switch."""
    if reading.running_hash != reading.current:
        return f"it runs release {reading.running_hash}, and `current` points to {reading.current or 'nothing'}"
    if reading.proven != reading.current:
        return f"release {reading.current} was never proven"
    if not reading.files_whole:
        return f"files of release {reading.current} were changed by hand"
    return "its unit or its helper scripts differ, and --adopt asks for them"


def _unproven(meant: str, aim: Aim, reading: SeenEndpoint) -> str:
    same_gpus = aim.binding.gpus == reading.proven_binding.gpus if reading.proven_binding else False
    with_these = (" with this key" if same_gpus else " with these GPUs") if reading.proven == meant else ""
    return f"it runs, but was never proven{with_these}"


def why_admit(settings: EndpointSettings, reading: SeenEndpoint) -> Due | None:
    """Report a switch that broke off at its very end: it leaves the endpoint out of the site's balancer."""
    if settings.ready_hook and not reading.admitted:
        return Due("clients were not let in again after its last switch", restart=False)
    return None


def _swapped(aim: Aim, reading: SeenEndpoint) -> str:
    """Return the faults at which a start with the binding on the host would fail."""
    if reading.binding in (None, aim.binding):
        return ""
    return ", and its key changed" if reading.binding.gpus == aim.binding.gpus else ", and its GPUs changed"


def _why_not_running(reading: SeenEndpoint) -> str:
    if reading.held:
        return "it was held back at boot: what was proven could not be put back"
    if reading.current is None:
        return "it has never run here"
    if reading.active == "failed":
        return f"it gave up ({reading.result})"
    return f"it should run, but is {reading.active} ({reading.sub})"


def misplaced(aim: Aim, reading: SeenEndpoint) -> list[str]:
    """Return the faults around an endpoint that runs and has been proven."""
    meant = resting_release(aim, reading)
    rows = {
        "its text differs": reading.current == meant and not reading.unit_same,
        "systemd has not read it again": reading.needs_reload,
        "it is not enabled at boot": not reading.enabled,
        f"`current` points to {reading.current or 'nothing'}": reading.current != meant,
        "its binding was changed by hand": reading.binding != aim.binding,
    }
    return [text for text, differs in rows.items() if differs]
