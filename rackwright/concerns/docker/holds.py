"""Package holds of ours: put back where somebody released them, released where they are no longer asked for."""

from __future__ import annotations

from collections.abc import Sequence

from rackwright.concerns.docker.seen import SeenDocker
from rackwright.concerns.docker.wanted import WantedDocker
from rackwright.plan.change import Change, Owned, Shell


def hold_changes(asked: WantedDocker, seen: SeenDocker) -> list[Change]:
    """Packages of ours that somebody released again, and holds of ours that are no longer asked for."""
    ours = {name for name in asked.names("hold") if seen.installed(name)}
    if not asked.settings.docker.hold_packages:
        return [_unhold(sorted(ours))] if ours else []
    loose = sorted(name for name in ours if not seen.packages[name].held)
    if not loose:
        return []
    script = f"apt-mark hold {' '.join(loose)} >/dev/null"
    return [Change(f"hold {', '.join(loose)}", "unattended upgrades would move them", (Shell(script),))]


def _unhold(names: Sequence[str]) -> Change:
    script = f"apt-mark unhold {' '.join(names)} >/dev/null"
    owned = tuple(Owned("hold", name) for name in names)
    return Change(f"release {', '.join(names)}", "docker.hold_packages is off", (Shell(script),), disowns=owned)
