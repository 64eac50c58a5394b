"""Docker's concern: its reading, and its changes in the order in which they must be done."""

from __future__ import annotations

from rackwright.concerns.docker import apt
from rackwright.concerns.docker.daemon import DAEMON_JSON, BrokenDaemonJsonError, parse_daemon_json
from rackwright.concerns.docker.dockerd import daemon_changes, enable_changes, forget_changes, start_changes
from rackwright.concerns.docker.files import AUTHORITY, file_changes, paths
from rackwright.concerns.docker.holds import hold_changes
from rackwright.concerns.docker.install import cannot_install, install_changes
from rackwright.concerns.docker.seen import READ_UNITS, SeenDocker, joined, parse
from rackwright.concerns.docker.users import user_changes
from rackwright.concerns.docker.wanted import WantedDocker, wanted
from rackwright.hostside import host_script
from rackwright.plan.change import Change, Refuse
from rackwright.plan.concern import Concern
from rackwright.settings.host_settings import ENDPOINTS, HostSettings


def read(settings: HostSettings) -> str:
    """Print the state of packages, daemon, files and users."""
    return host_script(
        "docker_read",
        packages="\n".join(apt.PACKAGES),
        driver=apt.DRIVER,
        users=" ".join(settings.docker.users),
        authority=AUTHORITY,
        paths=" ".join(paths(settings)),
    )


def changes(wanted: WantedDocker, reading: SeenDocker) -> list[Change]:
    """Return the changes in the order in which they must be done; only refusals when there are any."""
    found = refusals(wanted, reading)
    if found:
        return found
    daemon = daemon_changes(wanted, reading)
    start = [] if daemon else start_changes(reading)
    return [
        *file_changes(wanted, reading),
        *install_changes(wanted, reading),
        *daemon,
        *start,
        *enable_changes(reading),
        *forget_changes(wanted, reading),
        *hold_changes(wanted, reading),
        *user_changes(wanted, reading),
    ]


def refusals(wanted: WantedDocker, reading: SeenDocker) -> list[Change]:
    """Return the reasons why Docker cannot be set up here; empty when it can."""
    try:
        parse_daemon_json(reading.files.get(DAEMON_JSON))
    except BrokenDaemonJsonError as error:
        return [Change("configure Docker", f"{DAEMON_JSON} is broken", (Refuse(error.text, code=error.code),))]
    texts = [
        f"docker.users: user {user} does not exist on this host; create it (adduser {user}) "
        "or take it out of the settings"
        for user in wanted.settings.docker.users
        if user not in reading.users
    ]
    texts += cannot_install(wanted, reading)
    return [Change("set Docker up", "something is in the way", (Refuse(text, code="RW2103"),)) for text in texts]


TAKES = frozenset(
    {ENDPOINTS, "docker", "downloads", "driver", "firewall", "registry", "mirrors", "bundle", "proxy", "paths"}
)
"""Sections of the settings that it is handed."""
DOCKER: Concern[WantedDocker, SeenDocker] = Concern(
    "docker", read, parse, wanted, changes, takes=TAKES, units=READ_UNITS, joined=joined
)
