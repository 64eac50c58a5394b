"""What a host looks after by itself: one timer, and a list of checks that any concern may join. Pure.

A check is a script that says what it found. It ends with 0 when all was well, and otherwise when it had to repair
something, or could not. None runs while somebody is at work on the host.
"""

from __future__ import annotations

from rackwright.hostside import DOCKER_ENVIRONMENT, host_text
from rackwright.paths import ETC, RUN, STATE, UNITS, WATCH_UNITS
from rackwright.plan.render import render_own

WATCH_SERVICE, WATCH_TIMER = WATCH_UNITS
RUNNER = f"{ETC}/watch"
CHECKS = f"{ETC}/watch.d"
PAUSED = f"{RUN}/watch-paused"
"""The second of the host's uptime until which nothing is looked after."""
TRACE = f"{RUN}/watch-trace"
"""What `nft monitor` prints while it is asked who takes our table away."""
SECONDS = 30
"""Between two looks."""
KEPT_PORT = f"{CHECKS}/kept-port"
FREED = f"{RUN}/kept-port-freed"
"""Is there once that check has restarted dockerd in this boot."""
MENDED = f"{RUN}/chains-mended"
"""When it has last restarted dockerd for the chains that another tool had flushed."""
WATCH_FILES = (RUNNER, KEPT_PORT, *(f"{UNITS}/{unit}" for unit in WATCH_UNITS))


def check_file(name: str) -> str:
    """Where a concern puts its check."""
    return f"{CHECKS}/{name}"


def repairs_file(name: str) -> str:
    """Where a check notes what it had to repair: seconds since 1970, and what it found, a line each."""
    return f"{STATE}/watch/{name}"


def watch_files() -> dict[str, str]:
    """The runner, its units, and the check that is no single concern's, by path."""
    return {
        RUNNER: render_own("watch.j2", checks=CHECKS, paused=PAUSED, run=RUN, state=STATE),
        KEPT_PORT: render_own(
            "watch-kept-port.j2",
            docker=DOCKER_ENVIRONMENT.rstrip(),
            lacks=host_text("docker_lacks.sh").rstrip(),
            start=host_text("docker_start.sh").rstrip(),
            homes=f"{STATE}/endpoints",
            freed=FREED,
            mended=MENDED,
        ),
        f"{UNITS}/{WATCH_SERVICE}": render_own(f"{WATCH_SERVICE}.j2", runner=RUNNER),
        f"{UNITS}/{WATCH_TIMER}": render_own(f"{WATCH_TIMER}.j2", seconds=SECONDS),
    }
