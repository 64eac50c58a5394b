"""Rackwright's package holds: set again where an operator released them, released where they are no longer wanted."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rackwright.concerns.docker import apt
from rackwright.concerns.docker.seen import SeenDocker
from rackwright.concerns.docker.wanted import WantedDocker
from rackwright.plan.change import Change, Owned, Shell


def hold_changes(wanted: WantedDocker, reading: SeenDocker) -> list[Change]:
    """Return changes that hold packages, those released by an operator included, and release unwanted holds."""
    present, settings = existing(wanted, reading), wanted.settings.docker
    ours = {name for name in wanted.names("hold") if reading.installed(name) and not _is_driver_of(wanted, name)}
    over = (set() if settings.hold_packages else ours - present) | (set() if settings.hold_existing else ours & present)
    found = [_unhold(sorted(over))] if over else []
    to_hold = (ours - over) | (present if settings.hold_existing else set())
    loose = sorted(name for name in to_hold if not reading.packages[name].held)
    return [*found, *([_hold(loose, ours)] if loose else [])]


def _is_driver_of(wanted: WantedDocker, name: str) -> bool:
    """Return True for a package of the driver where the settings say which: `driver()` holds it then."""
    return wanted.settings.driver.version is not None and re.match(apt.DRIVER, name) is not None


def existing(wanted: WantedDocker, reading: SeenDocker) -> set[str]:
    """Return packages under a serving endpoint that Rackwright did not install: the driver, and Docker Engine."""
    engine = () if wanted.names("package") & set(apt.ENGINES) else apt.ENGINES
    return {
        name for name in reading.packages if reading.installed(name) and (name in engine or re.match(apt.DRIVER, name))
    }


def _hold(names: Sequence[str], ours: set[str]) -> Change:
    script = f"apt-mark hold {' '.join(names)} >/dev/null"
    new = tuple(Owned("hold", name) for name in names if name not in ours)
    return Change(f"hold {', '.join(names)}", "unattended upgrades would move them", (Shell(script),), owns=new)


def _unhold(names: Sequence[str]) -> Change:
    script = f"apt-mark unhold {' '.join(names)} >/dev/null"
    owned = tuple(Owned("hold", name) for name in names)
    return Change(f"release {', '.join(names)}", "they are no longer to be held", (Shell(script),), disowns=owned)
