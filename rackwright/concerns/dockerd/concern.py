"""dockerd's configuration where endpoints serve: its restart is a switch of the host, in its turn, with the gate.

It is decided from the readings of docker and endpoint; its own reading has the result of the last such restart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rackwright.concerns.docker import DOCKER, SeenDocker, WantedDocker
from rackwright.concerns.docker.chains import can_restart_script
from rackwright.concerns.docker.concern import TAKES as DOCKER_TAKES
from rackwright.concerns.docker.concern import refusals
from rackwright.concerns.docker.dockerd import Reconfiguration, deferred, waiting
from rackwright.concerns.dockerd.restart_job import HOME, JOB, Scripts, joining_job, restart_job
from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.questions import tried_of
from rackwright.concerns.endpoint.release.concern import binding_of
from rackwright.concerns.endpoint.seen import SeenEndpoint, last_switch
from rackwright.concerns.endpoint.switch.events import LastSwitch
from rackwright.concerns.endpoint.switch.steps import DaemonRestart
from rackwright.concerns.endpoint.switch.transaction import Part
from rackwright.hostside import host_script
from rackwright.paths import job_unit, unit_name
from rackwright.plan.change import Change, Refuse
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.reading import pairs
from rackwright.settings.host_settings import HostSettings


@dataclass(frozen=True)
class WantedDockerd:
    """dockerd as the settings want it, and the endpoints that depend on it."""

    wanted_docker: WantedDocker
    docker: SeenDocker
    endpoints: Mapping[str, SeenEndpoint]
    bindings: Mapping[str, Binding]
    """By endpoint, for one whose binding was changed by hand."""


def read(_: HostSettings) -> str:
    """Print the result of the last restart while endpoints served."""
    return host_script("dockerd_read", home=HOME)


def parse(output: str) -> LastSwitch | None:
    """Parse the reading."""
    return last_switch(pairs(output))


def wanted(settings: HostSettings, reading: HostReading) -> WantedDockerd:
    """Return the settings with the readings of Docker and of the endpoints."""
    bindings = {name: binding_of(endpoint, reading, settings) for name, endpoint in settings.all_endpoints.items()}
    return WantedDockerd(DOCKER.wanted(settings, reading), reading[DOCKER], reading[ENDPOINT].endpoints, bindings)


def changes(wanted: WantedDockerd, last: LastSwitch | None) -> list[Change]:
    """Return the restart of dockerd that waits for the host's turn, or the one that is under way."""
    if wanted.docker.restarting:
        return [_joining(wanted)]
    found = None if refusals(wanted.wanted_docker, wanted.docker) else deferred(wanted.wanted_docker, wanted.docker)
    return [_restart(wanted, found, last)] if found else []


def _joining(wanted: WantedDockerd) -> Change:
    names = tuple(name for name in wanted.wanted_docker.settings.all_endpoints if name in wanted.endpoints)
    step = DaemonRestart(names, "earlier", joining_job(), serving=True)
    return Change("wait for the restart of dockerd", "an earlier run has left it under way", (step,))


def _restart(wanted: WantedDockerd, found: Reconfiguration, last: LastSwitch | None) -> Change:
    if wanted.docker.waits:
        return waiting(found, wanted.docker)
    stood = tuple(_serving_endpoints(wanted))
    names = [one.name for one in stood]
    together = next((name for name in names if wanted.bindings[name].addresses), None)
    if together:
        return _together(together, found)
    others = [name for name in wanted.docker.serving if name not in names]
    scripts = Scripts(
        valid=found.valid_script,
        forward=found.after.apply_script("restart", "nvidia"),
        back=found.before.apply_script("restart"),
        trial=found.before.trial(job_unit(JOB), (*names, *others)),
        again=can_restart_script(),
    )
    label = found.after.digest
    job = restart_job(label, scripts, stood, others)
    step = DaemonRestart((*names, *others), label, job, serving=bool(stood))
    return Change(
        f"{found.what} with {', '.join(step.endpoints)}",
        found.why + (last.against(label) if last else ""),
        (step,),
        owns=found.owns,
        disowns=found.disowns,
        diff=found.diff,
        by_itself=found.only_repairs,
    )


def _together(name: str, found: Reconfiguration) -> Change:
    """Refuse: one host's dockerd would stop the endpoint on all its hosts, outside of their common switch."""
    text = (
        f"dockerd would be restarted under endpoint {name}, which other hosts serve with this one, and that is not "
        f"supported yet; next, on all of them: systemctl stop {unit_name(name)}, then the same command again"
    )
    return Change(found.what, found.why, (Refuse(text, code="RW2201"),), by_itself=found.only_repairs)


def _serving_endpoints(wanted: WantedDockerd) -> list[Part]:
    """Return the endpoints that serve and are wanted, each with the release that it serves."""
    found = []
    for name, endpoint in wanted.wanted_docker.settings.all_endpoints.items():
        reading = wanted.endpoints.get(name, SeenEndpoint())
        if name in wanted.docker.serving and reading.serving and reading.running_hash:
            spec = _spec_of(reading.running_hash, reading)
            tried = tried_of(name, reading.running_hash, spec, reading.binding or wanted.bindings[name])
            found.append(Part(name, endpoint, tried, tried, spec.get("port")))
    return found


def _spec_of(release: str, reading: SeenEndpoint) -> Mapping[str, Any]:
    """Return spec.json of the running release; nothing when it is neither the current nor the proven one."""
    return next((spec for spec in (reading.spec, reading.proven_spec) if spec and spec["hash"] == release), {})


TAKES = DOCKER_TAKES
"""Sections of the settings that it is handed."""
DOCKERD: Concern[WantedDockerd, LastSwitch | None] = Concern("dockerd", read, parse, wanted, changes, takes=TAKES)
