"""Why an endpoint must be switched, started or proven: by comparison, never by memory.

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
from rackwright.settings.model import EndpointSettings


@dataclass(frozen=True)
class Due:
    """Why an endpoint must be switched or proven; whether that takes a restart, and keeps the old log first."""

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


def serves_the_same(aim: Aim, seen: SeenEndpoint) -> bool:
    """Return True if what runs was started with the wanted serving part and binding."""
    running = seen.running
    wanted = (aim.release.spec.serving_hash, aim.binding.hash)
    return running is not None and (running.serving, running.binding) == wanted


def is_deferred(aim: Aim, seen: SeenEndpoint) -> bool:
    """Return True if the wanted release waits for the next switch, since what runs, or loads, serves the same."""
    if aim.adopt or seen.current in (None, aim.release.hash) or not seen.files_whole:
        return False
    if not seen.has_proven(seen.current, aim.binding):
        return False
    if seen.loading and seen.running is None:
        return seen.binding == aim.binding and seen.spec.get("serving") == aim.release.spec.serving_hash
    return seen.running_hash == seen.current and serves_the_same(aim, seen)


def resting_release(aim: Aim, seen: SeenEndpoint) -> str:
    """Return the release that unit and pointer should name: the wanted one, or the running one while it is deferred."""
    return (seen.current if is_deferred(aim, seen) else None) or aim.release.hash


def why_switch(aim: Aim, seen: SeenEndpoint) -> Due | None:
    """Return the reason to switch, or to start and prove; None when the endpoint serves what is wanted."""
    meant = resting_release(aim, seen)
    if seen.loading and _starts(meant, aim, seen):
        return None if seen.has_proven(meant, aim.binding) else Due("it is loading and was never proven", restart=False)
    if seen.running is not None and not serves_the_same(aim, seen):
        return Due(_what_differs(aim, seen))
    if seen.running is None or seen.active != "active":
        return Due(_why_not_running(seen) + _swapped(aim, seen))
    if seen.health != 200:
        return Due(f"it runs, but /health answers {seen.health or 'nothing'}", keep_log=True)
    if seen.running_hash != meant:
        return Due(_why_adopt(seen))
    if edited := edited_by_hand(seen):
        return Due(edited)
    return None if seen.has_proven(meant, aim.binding) else Due(_unproven(meant, aim, seen), restart=False)


def edited_by_hand(seen: SeenEndpoint) -> str:
    """Return how what runs differs from its release although it carries its labels; empty when it does not."""
    command = f"it was started {seen.command_edited}, not as its release says" if seen.command_edited else ""
    limits = f"limits of its container were changed: {seen.limits_edited}" if seen.limits_edited else ""
    return "; ".join(filter(None, (command, limits)))


def _starts(meant: str, aim: Aim, seen: SeenEndpoint) -> bool:
    """Return True if a start that is under way ends in the wanted release."""
    if seen.current != meant or not seen.unit_same or seen.needs_reload or seen.binding != aim.binding:
        return False
    return seen.running is None or (seen.running_hash == meant and serves_the_same(aim, seen))


def _what_differs(aim: Aim, seen: SeenEndpoint) -> str:
    assert seen.running is not None
    found = [reasons(seen.spec, aim.release.spec.as_json())]
    found += [_what_is_bound(aim, seen)] if seen.running.binding != aim.binding.hash else []
    return ", ".join(filter(None, found)) or f"it runs release {seen.running_hash}"


def _what_is_bound(aim: Aim, seen: SeenEndpoint) -> str:
    """Return the host's own differences; a container carries only a hash of them."""
    assert seen.running is not None
    known = [own for own in (seen.binding, seen.proven_binding) if own and own.hash == seen.running.binding]
    return "its key changed" if known and known[0].gpus == aim.binding.gpus else "its GPUs changed"


def _why_adopt(seen: SeenEndpoint) -> str:
    """Return why a release that serves what is wanted is not left running until the next switch."""
    if seen.running_hash != seen.current:
        return f"it runs release {seen.running_hash}, and `current` points to {seen.current or 'nothing'}"
    if seen.proven != seen.current:
        return f"release {seen.current} was never proven"
    if not seen.files_whole:
        return f"files of release {seen.current} were changed by hand"
    return "its unit or its helper scripts differ, and --adopt asks for them"


def _unproven(meant: str, aim: Aim, seen: SeenEndpoint) -> str:
    own = aim.binding.gpus == seen.proven_binding.gpus if seen.proven_binding else False
    with_these = (" with this key" if own else " with these GPUs") if seen.proven == meant else ""
    return f"it runs, but was never proven{with_these}"


def why_admit(settings: EndpointSettings, seen: SeenEndpoint) -> Due | None:
    """Report a switch that broke off at its very end: it leaves the endpoint out of the site's balancer."""
    if settings.ready_hook and not seen.admitted:
        return Due("clients were not let in again after its last switch", restart=False)
    return None


def _swapped(aim: Aim, seen: SeenEndpoint) -> str:
    """Return the faults at which a start with the binding on the host would fail."""
    if seen.binding in (None, aim.binding):
        return ""
    return ", and its key changed" if seen.binding.gpus == aim.binding.gpus else ", and its GPUs changed"


def _why_not_running(seen: SeenEndpoint) -> str:
    if seen.held:
        return "it was held back at boot: what was proven could not be put back"
    if seen.current is None:
        return "it has never run here"
    if seen.active == "failed":
        return f"it gave up ({seen.result})"
    return f"it should run, but is {seen.active} ({seen.sub})"


def misplaced(aim: Aim, seen: SeenEndpoint) -> list[str]:
    """Return the faults around an endpoint that runs and has been proven."""
    meant = resting_release(aim, seen)
    rows = {
        "its text differs": seen.current == meant and not seen.unit_same,
        "systemd has not read it again": seen.needs_reload,
        "it is not enabled at boot": not seen.enabled,
        f"`current` points to {seen.current or 'nothing'}": seen.current != meant,
        "its binding was changed by hand": seen.binding != aim.binding,
    }
    return [text for text, differs in rows.items() if differs]
