"""Metrics of the host, as a file for node_exporter's textfile collector. Pure."""

from __future__ import annotations

from rackwright.concerns.watch.units import check_file
from rackwright.hostside import host_text
from rackwright.paths import ENGINE_STATES, ENGINES_WATCHED, RUN, STATE
from rackwright.plan.render import render_own
from rackwright.settings.host_settings import HostSettings

CHECK = check_file("metrics")
DEFAULT_FOLDER = "/var/lib/prometheus/node-exporter"
"""The folder of Debian's package."""
WRITTEN_FILE = f"{STATE}/watch/textfile"
"""The path of the file that was written: a teardown removes it."""


def metrics_files(settings: HostSettings) -> dict[str, str]:
    """Return the check that writes them."""
    folder = settings.watch.textfile
    missing = (
        "exit 0" if folder is None else f"printf '%s\\n' '{folder} is missing: nothing writes metrics there'; exit 1"
    )
    return {
        CHECK: render_own(
            "watch-metrics.j2",
            folder=folder or DEFAULT_FOLDER,
            missing=missing,
            state=STATE,
            run=RUN,
            watched=ENGINES_WATCHED,
            states=ENGINE_STATES,
            guard="firewall",
            place=WRITTEN_FILE,
            program=host_text("metrics.awk").rstrip(),
        )
    }
