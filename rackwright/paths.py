"""Paths of Rackwright's files on a host, and every name that it gives there: units, containers, jobs, guards.

All names are made here, so that no endpoint's can be one of the tool's own: `reserved` refuses those that would be.
"""

from __future__ import annotations

import re
from typing import Literal

STATE = "/var/lib/rackwright"
"""Ownership record, endpoints and their releases: survives a reboot."""
RUN = "/run/rackwright"
"""Jobs in flight and their short-lived secrets: root only, gone after a reboot."""
OWNED = f"{STATE}/owned.json"
ETC = "/etc/rackwright"
"""Small files that Rackwright's systemd units read at boot."""
SLICE = f"{STATE}/run"
"""What the host keeps of the last run that changed it, for resuming without its record; root's alone."""
MANIFESTS = f"{STATE}/manifests"
"""What this host has verified of each model folder, as NAME.json: only root may write there."""
ENCODING_MARKS = f"{STATE}/encodings"
"""What this host has verified of each encoding, as files of its name: only root may write there."""
UNITS = "/etc/systemd/system"
DOCKER_SOCKET = "/var/run/docker.sock"
"""Where Docker is asked: never by a context, nor by what an environment says."""
DOCKER_HOST = f"unix://{DOCKER_SOCKET}"
"""The same in Docker's own words; before it no context counts."""
DOCKER_MISLEADING = (
    "DOCKER_API_VERSION",
    "DOCKER_CERT_PATH",
    "DOCKER_CONFIG",
    "DOCKER_CONTENT_TRUST",
    "DOCKER_CONTEXT",
    "DOCKER_DEFAULT_PLATFORM",
    "DOCKER_TLS",
    "DOCKER_TLS_VERIFY",
)
"""Variables of a login, or of systemd, by which Docker's client would ask another daemon, or ask for something else."""
MARKS = f"{STATE}/marks"
"""Folder with the marks that take endpoints out of service, a file for each that has set one."""
MOVED_UNITS = f"{STATE}/aside"
"""Units of a Rackwright name that were made by hand, kept until a teardown puts them back."""

RELEASE_MOUNT = "/config/release"
ENCODINGS_MOUNT = "/config/encodings"
SCRATCH_MOUNT = "/scratch"
KEYED_MOUNT = "/config/keyed"
"""The engine's YAML with the endpoint's key in it."""
IN_CONTAINER = (RELEASE_MOUNT, ENCODINGS_MOUNT, SCRATCH_MOUNT, KEYED_MOUNT)
"""Rackwright's folders in an endpoint's container."""

WRITTEN = "Written by Rackwright"
"""What the first line of every Rackwright unit says."""

_OWN = "rackwright-"
TARGET = "rackwright.target"
BOOT_UNIT = f"{_OWN}boot.service"
RESTORE_UNIT = f"{_OWN}restore.service"
FIREWALL_UNIT = f"{_OWN}firewall.service"
FIREWALL_SCRIPT = f"{ETC}/firewall"
"""Puts our rules and drops back."""
FIREWALL_LEFT = f"{RUN}/firewall"
"""What the kernel showed of Rackwright's files when they were put there."""
FIREWALL_OPENED = f"{FIREWALL_LEFT}/opened"
"""File with the second of uptime until which an operator has opened closed ports; a reboot ends that, too."""
FIREWALL_GUARD = "firewall"
ENGINES_PAUSED = f"{RUN}/engines-paused"
"""File with the second of uptime until which the watch leaves engines alone; then `who=`, `since=`, `reason=`."""
ENGINES_WATCHED = f"{ETC}/watched"
"""Folder with a file for each endpoint that the watch looks at."""
ENGINE_STATES = f"{RUN}/watch"
"""Folder with what the last look at each endpoint found, as `KEY=VALUE` lines of a file of its name."""
ACTS = f"{STATE}/watch"
"""Folder with `acts-ENDPOINT`: what the watch did, a row of `EPOCH KIND RESULT TEXT` each."""
EVENTS_SENT = f"{STATE}/notify/sent"
"""Folder with a file for each event that the host has sent, and whose end it has not."""
WATCH_UNITS = (f"{_OWN}watch.service", f"{_OWN}watch.timer")
WORD_NOTES = "/run/rackwright-word"
"""Folder with a note for each asker of the host's word, and for each endpoint that it asked for."""
WORD_UNITS = (f"{_OWN}word.socket", f"{_OWN}word@.service")
"""Units that answer whether the host's endpoints may be used."""
ACT_UNIT = f"{_OWN}act@.service"
"""The unit that restarts a hung endpoint; its instance is the endpoint."""
SWITCH_LOCK = f"{RUN}/switch.lock"
"""Held by the watch while it restarts an endpoint."""
ACT_UNTIL = f"{RUN}/act-until"
"""Second of the host's uptime until which that may take, and the endpoint."""
NOTIFY_UNIT = f"{_OWN}notify.service"
GATEWAY_UNIT = f"{_OWN}gateway.service"
"""HAProxy in front of the endpoints."""
KEEPALIVED_UNIT = f"{_OWN}keepalived.service"
"""Gives the gateways' common address to one of them."""
CERTIFICATE_UNIT, CERTIFICATE_TIMER = f"{_OWN}certificate.service", f"{_OWN}certificate.timer"
"""Orders and renews a gateway's certificate."""
OWN_UNITS = (
    *(TARGET, BOOT_UNIT, RESTORE_UNIT, FIREWALL_UNIT),
    *(
        *WATCH_UNITS,
        *WORD_UNITS,
        ACT_UNIT,
        NOTIFY_UNIT,
        GATEWAY_UNIT,
        KEEPALIVED_UNIT,
        CERTIFICATE_UNIT,
        CERTIFICATE_TIMER,
    ),
)
"""Units that belong to the host rather than to one endpoint."""
OWN_DROP_INS = ("rackwright-firewall.conf", "rackwright-held.conf")
"""Names of the drop-ins that Rackwright writes for its units."""
_FAMILIES = ("job", "guard")
"""Words that begin the names of many transient Rackwright units."""

EndpointJob = Literal["switch", "wait", "check", "rest"]
ENDPOINT_JOBS: tuple[EndpointJob, ...] = ("switch", "wait", "check", "rest")
Helper = Literal["judge", "check"]
HELPERS: tuple[Helper, ...] = ("judge", "check")
"""Short-lived containers that stand beside an endpoint's."""
HELPER_LABEL = "rackwright.helper"
"""Label of every Rackwright container that serves nothing."""
ENDPOINT_LABEL = "rackwright.endpoint"
"""Label of an endpoint's container, with its name."""


def is_drop_ins(folder: str) -> bool:
    """Return True for the folder of drop-ins of a Rackwright unit."""
    return folder.startswith(f"{UNITS}/{_OWN}") and folder.endswith(".d")


def endpoint_dir(endpoint: str) -> str:
    """Return the folder of one endpoint: `releases/HASH`, and the pointers `current` and `proven`."""
    return f"{STATE}/endpoints/{endpoint}"


def release_dir(endpoint: str, spec_hash: str) -> str:
    """Return the folder of one release, named by its content."""
    return f"{endpoint_dir(endpoint)}/releases/{spec_hash}"


def keys_dir(endpoint: str) -> str:
    """Return the folder with the keys of an endpoint's clients, each by its digest, as a header line; root's alone."""
    return f"{endpoint_dir(endpoint)}/keys"


def keyed_dir(endpoint: str) -> str:
    """Return the folder with the engine's YAML and the key in it, made at each start; the container's user reads it."""
    return f"{endpoint_dir(endpoint)}/keyed"


def group_dir(endpoint: str) -> str:
    """Return the folder of what the members of a group know of each other while they run; gone after a reboot."""
    return f"{RUN}/groups/{endpoint}"


def follow_unit(endpoint: str) -> str:
    """Return the transient unit by which a member points at the head's release: that starts its own unit again."""
    return f"{_OWN}job-follow-{endpoint}.service"


def questions_file(endpoint: str, spec_hash: str) -> str:
    """Return the script that asks a proven release again, as its last switch did; root's alone."""
    return f"{endpoint_dir(endpoint)}/proofs/{spec_hash}"


def word_unit(instance: str) -> str:
    """Return the name of the unit that answers one question for the word."""
    return WORD_UNITS[1].replace("@", f"@{instance}")


def act_unit(endpoint: str) -> str:
    """Return the name of the unit that restarts an endpoint when it hangs."""
    return ACT_UNIT.replace("@", f"@{endpoint}")


def failed_dir(home: str) -> str:
    """Return the folder with the logs of failed tries, below an endpoint's folder or dockerd's; root's alone."""
    return f"{home}/failed"


TRIALS = "trials"
"""Folder in an endpoint's, with the logs of variants that a bench has tried."""


def trials_dir(endpoint: str) -> str:
    """Return that folder of an endpoint; root's alone."""
    return f"{endpoint_dir(endpoint)}/{TRIALS}"


def trial_file(home: str) -> str:
    """Return the path of the script that takes a trial back: in the folder of what is tried, while it is tried."""
    return f"{home}/trial"


def held_file(endpoint: str) -> str:
    """Return the drop-in that blocks an endpoint's unit: it was never proven, and could not be taken back at boot."""
    return f"/run/systemd/system/{unit_name(endpoint)}.d/rackwright-held.conf"


def unit_name(endpoint: str) -> str:
    """Return the name of an endpoint's systemd unit; its container has the same name without the suffix."""
    return f"{_OWN}{endpoint}.service"


def endpoint_of(unit: str) -> str | None:
    """Return the endpoint whose unit this is; None for units of the host and for foreign ones."""
    name = unit.removeprefix(_OWN).removesuffix(".service")
    return name if unit == unit_name(name) and "@" not in name and reserved(name) is None else None


def container_name(endpoint: str) -> str:
    """Name of the endpoint's container."""
    return f"{_OWN}{endpoint}"


def helper_container(endpoint: str, purpose: Helper) -> str:
    """Name of a short-lived container beside an endpoint's. No endpoint's name has a dot."""
    return f"{container_name(endpoint)}.{purpose}"


def endpoint_job(kind: EndpointJob, endpoint: str) -> str:
    """Name of the one job of its kind for an endpoint."""
    return f"{kind}-{endpoint}"


def aside_job(unit: str) -> str:
    """Name of the job that keeps a foreign unit apart."""
    return f"aside-{unit.rpartition('.')[0]}"


def job_unit(name: str) -> str:
    """Name of a job's transient unit."""
    return f"{_OWN}job-{name}.service"


def job_container(name: str) -> str:
    """Name of the container that a job runs in, if any."""
    return f"{_OWN}job-{name}"


def job_folder(name: str) -> str:
    """Return the folder of a job's own files, gone after a reboot."""
    return f"{RUN}/jobs/{name}"


def guard_unit(name: str) -> str:
    """Return the name, without suffix, of the timer and the service that take a guarded change back."""
    return f"{_OWN}guard-{name}"


def guard_file(name: str) -> str:
    """Return the path of the script by which a guarded change is taken back."""
    return f"{RUN}/guards/{name}"


def guard_trial(name: str) -> str:
    """Return the path of what must be taken back of a guarded change at boot: it survives one."""
    return f"{STATE}/guards/{name}"


_WORDS = {unit.removeprefix(_OWN).rpartition(".")[0]: unit for unit in reversed(OWN_UNITS) if unit != TARGET}
RESERVED = rf"^(({'|'.join(sorted(_WORDS))})|({'|'.join(_FAMILIES)})(-.*)?)$"
"""Pattern of the names that no endpoint may have."""


def reserved(endpoint: str) -> str | None:
    """Return the Rackwright unit that has the name of this endpoint's unit; None without one."""
    if not re.match(RESERVED, endpoint):
        return None
    return _WORDS.get(endpoint, f"{_OWN}{endpoint.split('-', maxsplit=1)[0]}-...")
