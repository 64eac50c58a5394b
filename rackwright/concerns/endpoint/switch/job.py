"""The scripts of a switch with their parameters: forward, drain, halt, commit, remove. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.proof.asking import port_holder_script
from rackwright.hostside import durable_script, host_script, host_text, job_script
from rackwright.paths import (
    ACT_UNTIL,
    ENDPOINT_LABEL,
    STATE,
    SWITCH_LOCK,
    UNITS,
    WORD_NOTES,
    container_name,
    endpoint_dir,
    endpoint_job,
    group_dir,
    held_file,
    job_unit,
    release_dir,
    unit_name,
)
from rackwright.settings.host_settings import EndpointSettings

ROOM = 16 * 1024
"""KiB on a file system of the host's, below which a failure is its fault."""
HEARD = 60
"""Seconds within which each asker of the host's word has heard that it is drained, or is gone."""
CONTAINERD = "/var/lib/containerd /run/containerd"
"""Folders in which each start of a container writes, beside Docker's own."""


def in_turn(scripts: Iterable[str]) -> str:
    """Chain scripts one after the other, each in a shell of its own that it may leave, up to the first that fails."""
    return "".join(f"(\n{script}\n)\n[ $? = 0 ] || exit 1\n" for script in scripts if script)


def named(endpoint: str, script: str) -> str:
    """Return a script whose reason to fail names its endpoint."""
    if not script:
        return ""
    prefix = f'[ -s "$reason" ] && sed -i "s/^/endpoint {endpoint}: /" "$reason"'
    return f"(\n{script}\n)\n[ $? = 0 ] && exit 0\n{prefix}\nexit 1\n"


def can_start_script(
    endpoint: str, releases: Iterable[tuple[str, str | None]], publishes: bool, again: bool = False
) -> str:
    """Fail before an endpoint is stopped, where what is to start, or to come back, could not be written or start here.

    releases: by endpoint. publishes: whether one of them publishes its port. again: after a drain, of what may have
    gone since.
    """
    folders = (release_dir(name, one) for name, one in dict.fromkeys(releases) if one)
    paths = {"unit": unit_name(endpoint), "units": UNITS, "home": endpoint_dir(endpoint)}
    writes = "" if again else in_turn([host_script("can_write", **paths)])
    return (
        (host_text("docker_lacks.sh") if publishes else "")
        + host_text("docker_start.sh")
        + writes
        + host_script(
            "can_start",
            unit=unit_name(endpoint),
            releases=" ".join(folders),
            publishes="yes" if publishes else "no",
            room=ROOM,
            written=CONTAINERD,
            again="yes" if again else "no",
            by="switch",
        )
    )


def start_again_script(by: str) -> str:
    """Print what keeps each endpoint that runs on a host from starting again there, a line each; changes nothing.

    by: how they are going to be stopped, by a "drain" or by a "boot".
    """
    able = f"able() (\n{host_text('can_start.sh')}\n)\n"
    asking = host_script("start_again", home=f"{STATE}/endpoints", room=ROOM, written=CONTAINERD, again="no", by=by)
    shared = "".join(map(host_text, ("docker_lacks.sh", "docker_store.sh", "docker_start.sh")))
    return shared + able + asking


def tidy_script(endpoint: str) -> str:
    """Put the endpoint's caches right, in a shell of its own: releases of earlier versions do not."""
    script = host_script("tidy_scratch", caches=f"{endpoint_dir(endpoint)}/caches")
    return f"(\n{script})\n"


def await_act_script(seconds: int) -> str:
    """Wait for a restart by the host's watch that is under way, for so long."""
    return job_script("await_act", lock=SWITCH_LOCK, until=ACT_UNTIL, seconds=seconds)


def drain_script(endpoint: str, port: int, drain_timeout: int, hook: str) -> str:
    """Run the site's hook, a script, wait until each gateway knows, and then until no request is open on `port`.

    drain_timeout: in seconds, of the last of the three.
    """
    return job_script(
        "drain",
        endpoint=endpoint,
        notes=WORD_NOTES,
        askers_limit=HEARD,
        unit=unit_name(endpoint),
        container=container_name(endpoint),
        port=port,
        drain_timeout=drain_timeout,
        hook=hook,
    )


def drain_time(settings: EndpointSettings) -> int:
    """Return the seconds that such a drain may take."""
    return settings.hook_timeout + HEARD + settings.drain_timeout


def gpus_kept_script(*endpoints: str) -> str:
    """Ask for the GPUs in every other endpoint's container, as must be done after a daemon-reload."""
    return host_script("gpus_kept", **{"except": " ".join(endpoints)})


def join_script(endpoint: str, load_timeout: int) -> str:
    """Wait for what an earlier run has left under way: its switch, and then the load.

    After a power cut the unit may still try again and again to get a port that dockerd has kept.
    """
    job = job_unit(endpoint_job("switch", endpoint))
    return host_script("wait_for_switch", job=job, seconds=load_timeout + 60) + started_script(endpoint, load_timeout)


def wait_script(endpoint: str, load_timeout: int) -> str:
    """Wait until an endpoint that loads or runs already is ready; a little longer than its unit does itself."""
    missing = f"{group_dir(endpoint)}/missing"
    waiting = job_script("await_start", unit=unit_name(endpoint), load_timeout=load_timeout + 30, missing=missing)
    return port_holder_script(endpoint) + waiting


def started_script(endpoint: str, load_timeout: int) -> str:
    """Return the same of a start, or of a load after a boot: what keeps its port from it is put right once."""
    shared = host_text("docker_lacks.sh") + host_text("docker_start.sh")
    mend = shared + host_script("free_port", unit=unit_name(endpoint))
    return mend + wait_script(endpoint, load_timeout)


def keep_log_script(endpoint: str, label: str, part: str = "switch") -> str:
    """Keep the journal of a failed try on the host and say where; part: "switch" or "all"."""
    return job_script("keep_log", unit=unit_name(endpoint), home=endpoint_dir(endpoint), label=label, part=part)


def halt_script(endpoint: str, forget: bool) -> str:
    """Stop an endpoint that has no release to roll back to.

    forget: True when it was never proven here, so that it does not start at boot either.
    """
    words = {"unit": unit_name(endpoint), "home": endpoint_dir(endpoint), "forget": "yes" if forget else "no"}
    return host_script("halt", **words)


def pointed_at_script(endpoint: str, release: str) -> str:
    """Fail where what runs already is no longer wanted: another run may have rolled back."""
    return host_script("pointed_at", home=endpoint_dir(endpoint), release=release)


def point_script(endpoint: str, release: str, binding: Binding) -> str:
    """Let unit, pointer and binding be a release's, reload systemd and enable the unit, without a restart."""
    words = {"unit": unit_name(endpoint), "home": endpoint_dir(endpoint), "units": UNITS, "binding": binding.text}
    return durable_script("point", **words, held=held_file(endpoint), release=release_dir(endpoint, release))


def start_script(endpoint: str, release: str) -> str:
    """Start an endpoint that points at a release already, without waiting."""
    tidy = tidy_script(endpoint)
    return tidy + job_script("start", unit=unit_name(endpoint), home=endpoint_dir(endpoint), release=release)


def commit_script(endpoint: str, release: str, binding: Binding, keep: int) -> str:
    """Mark a release as proven with a binding, and prune releases beyond the last `keep` proven ones."""
    return durable_script("commit", home=endpoint_dir(endpoint), release_hash=release, binding=binding.text, keep=keep)


def remove_script(endpoint: str) -> str:
    """Stop an endpoint and take its unit and its folder away."""
    names = {"unit": unit_name(endpoint), "endpoint": endpoint, "home": endpoint_dir(endpoint)}
    return host_script("remove_endpoint", **names, group=group_dir(endpoint), label=ENDPOINT_LABEL, units=UNITS)
