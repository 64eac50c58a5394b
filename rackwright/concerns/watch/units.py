"""Automatic checks of a host: one timer, and a list of checks that any concern may extend. Pure.

A check is a script that prints its finding. It exits with 0 when all was well, and otherwise after a repair, or when
a repair failed. No check runs while a run works on the host.
"""

from __future__ import annotations

from rackwright.hostside import DOCKER_ENVIRONMENT, host_text
from rackwright.paths import ENGINES_WATCHED, ETC, RUN, STATE, SWITCH_LOCK, UNITS, WATCH_UNITS
from rackwright.plan.render import render_own

WATCH_SERVICE, WATCH_TIMER = WATCH_UNITS
RUNNER = f"{ETC}/watch"
CHECKS = f"{ETC}/watch.d"
WATCHED = ENGINES_WATCHED
"""Folder of the endpoints that the host looks at, a file each."""
PAUSED = f"{RUN}/watch-paused"
"""File with the second of the host's uptime until which no check runs."""
TRACE = f"{RUN}/watch-trace"
"""Output of `nft monitor` while it traces which process removes Rackwright's table."""
NOTIFY_STARTER = f"{ETC}/notify-start"
"""Script that starts the sender of events when it is due; only where the settings notify someone."""
BESIDE = "# rackwright: beside a run"
"""Second line of a check that only reads: it also runs while a run works on the host, and in a pause."""
SECONDS = 30
"""Seconds between two runs of the checks."""
KEPT_PORT = f"{CHECKS}/kept-port"
FREED = f"{RUN}/kept-port-freed"
"""File that exists once that check has restarted dockerd in this boot."""
MENDED = f"{RUN}/chains-mended"
"""File with the time of its last restart of dockerd for chains that another tool had flushed."""
WATCH_FILES = (RUNNER, KEPT_PORT, *(f"{UNITS}/{unit}" for unit in WATCH_UNITS))


def check_file(name: str) -> str:
    """Return the path of a concern's check."""
    return f"{CHECKS}/{name}"


def repairs_file(name: str) -> str:
    """Return the path where a check records its repairs: a row each of seconds since 1970 and the finding."""
    return f"{STATE}/watch/{name}"


def watch_files() -> dict[str, str]:
    """Return the runner, its units, and the check without a concern of its own, by path."""
    return {
        RUNNER: render_own(
            "watch.j2", checks=CHECKS, beside=BESIDE, paused=PAUSED, run=RUN, state=STATE, sender=NOTIFY_STARTER
        ),
        KEPT_PORT: render_own(
            "watch-kept-port.j2",
            docker=DOCKER_ENVIRONMENT.rstrip(),
            lacks=host_text("docker_lacks.sh").rstrip(),
            start=host_text("docker_start.sh").rstrip(),
            tell=host_text("tell.sh").rstrip(),
            homes=f"{STATE}/endpoints",
            freed=FREED,
            mended=MENDED,
            lock=SWITCH_LOCK,
        ),
        f"{UNITS}/{WATCH_SERVICE}": render_own(f"{WATCH_SERVICE}.j2", runner=RUNNER),
        f"{UNITS}/{WATCH_TIMER}": render_own(f"{WATCH_TIMER}.j2", seconds=SECONDS),
    }
