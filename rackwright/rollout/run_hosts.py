"""The turn queue's view of hosts: their node, their limits, what a failure was, and the watching of a wave."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rackwright.adapter.concurrency import side_by_side, sleep
from rackwright.adapter.host import logger
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.container import url_of
from rackwright.concerns.endpoint.proof.asking import listener_script
from rackwright.concerns.endpoint.proof.engine_steps import engine_steps
from rackwright.concerns.endpoint.proof.proof_row import Answer, Question, Verdict
from rackwright.concerns.endpoint.questions import is_keyed, of_container
from rackwright.concerns.endpoint.release.concern import binding_of, wanted_releases
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.endpoint.switch.follow import (
    NotAdmittedError,
    NothingServesError,
    RolledBackError,
    StoppedError,
    UnknownEndError,
)
from rackwright.concerns.gpus import GPUS
from rackwright.hostside import host_script
from rackwright.loading.gateways import GROUP as GATEWAYS
from rackwright.paths import container_name, endpoint_dir, unit_name
from rackwright.plan.concern import HostReading
from rackwright.record.cause import Cause, Reason
from rackwright.record.handover import received
from rackwright.record.journal import note
from rackwright.record.progress import SELDOM
from rackwright.record.states import RunState
from rackwright.remote.errors import ConnectionLostError, StepFailedError
from rackwright.rollout.turn_queue import Bake, Outcome
from rackwright.rollout.waves import FIRST, LAST, Node, RunLimits, amount
from rackwright.settings.host_settings import EndpointSettings, HostSettings

WATCH_SECONDS = 5
WATCHED_AT_ONCE = 32
"""Hosts of a wave that are looked at side by side: one after the other, a large wave would outlast its bake."""


@dataclass(frozen=True)
class RunHost:
    """One host of the run, whether it must switch or not."""

    name: str
    order: int
    domains: tuple[str, ...]
    serving: bool
    settings: HostSettings


def domains_of(groups: Sequence[str], rack: str | None) -> tuple[str, ...]:
    """Return the failure domains of a host: its groups, and its rack."""
    return (*(groups or ("all",)), *([f"rack:{rack}"] if rack else []))


def serves(reading: HostReading) -> bool:
    """Return True if any endpoint of the host serves now."""
    return any(endpoint.serving for endpoint in reading[ENDPOINT].endpoints.values())


def shape_of(settings: HostSettings, reading: HostReading) -> str:
    """Equal for hosts that prove something for each other: what runs, by digest and options, and the GPUs' model."""
    releases = wanted_releases(settings, reading)
    values = [
        [*_spec_values(release), len(binding_of(settings.all_endpoints[name], reading, settings).gpus)]
        for name, release in releases.items()
        if isinstance(release, Release)
    ]
    text = json.dumps([values, sorted({gpu.name for gpu in reading[GPUS].gpus})])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _spec_values(release: Release) -> list[object]:
    spec = release.spec
    return [spec.image, spec.engine_yaml, list(spec.command), sorted(spec.environment.items())]


def limits_of(members: Iterable[RunHost], rollout: bool) -> RunLimits:
    """Return the limits of a run from its hosts' settings; where they differ within a domain, the lowest holds."""
    members = list(members)
    down: dict[str, int] = {}
    for domain in {domain for member in members for domain in member.domains}:
        inside = [member for member in members if domain in member.domains]
        serving = sum(member.serving for member in inside)
        down[domain] = min(amount(member.settings.rollout.max_unavailable, serving) for member in inside)
    if any(member.settings.is_gateway for member in members):
        down[GATEWAYS] = 1  # whatever the settings say: without the other one no client reaches any model
    wave = min((amount(member.settings.rollout.wave, len(members)) for member in members), default=1)
    budget = min((amount(member.settings.rollout.error_budget, len(members), 0) for member in members), default=0)
    bake = max((member.settings.rollout.bake for member in members), default=0)
    return RunLimits(down, wave, budget, bake) if rollout else RunLimits(down, None, budget)


def in_rollout() -> bool:
    """Return True below `rackwright rollout` and `rollback`."""
    return received().in_waves


def node_of(member: RunHost, shape: str, takes_capacity: bool) -> Node:
    """Return the node of a host that must switch."""
    usual = FIRST if member.settings.rollout.canary else 0
    cut = was_cut(member.name)
    rank = LAST if member.name in received().last else FIRST if cut else usual
    return Node(member.name, member.order, takes_capacity, shape, member.domains, rank, cut)


def was_cut(name: str) -> bool:
    """Return True if an earlier run was cut in the middle of this host's switch: it counts as down until it answers."""
    return name in received().first


def may_still_serve(served: bool, boot: str, settings: HostSettings) -> bool:
    """Return True if a host whose turn has failed may still serve; its error may say otherwise.

    A gateway that was restarted counts as down, whatever failed: it was not seen to answer. boot: the one that was to
    end; empty where the host was not restarted.
    """
    return served and not (boot and settings.is_gateway)


def outcome_of(error: BaseException, served: bool) -> Outcome:
    """Return the kind of a failed switch, by its error and whatever that was caused by.

    served: whether the host served before.
    """
    chain = list(_chain(error))
    found = dict.fromkeys(reason for one in chain if isinstance(one, StepFailedError) for reason in one.reasons)
    named = tuple(reason for reason in found if reason.cause is not Cause.OTHER)
    lost = any(isinstance(one, _NOT_SERVING) for one in chain)
    return Outcome(named or tuple(found) or (_UNKNOWN,), serves=served and not lost)


_UNKNOWN = Reason(Cause.OTHER, "the switch")
_NOT_SERVING = (ConnectionLostError, NothingServesError, StoppedError, NotAdmittedError)


def _chain(error: BaseException | None) -> Iterable[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def state_after(error: StepFailedError, served: bool) -> RunState:
    """Return the state of a host whose switch ended with an error.

    served: whether the host served before; without it, to be stopped again takes nothing away.
    """
    if isinstance(error, UnknownEndError):
        return RunState.UNKNOWN
    if isinstance(error, NothingServesError) or (isinstance(error, StoppedError) and served):
        return RunState.NOTHING_SERVES
    return RunState.ROLLED_BACK if isinstance(error, RolledBackError) else RunState.FAILED


def still_serving(endpoint: str, spec_hash: str, health_url: str) -> Question:
    """Return the cheap row of a bake: the unit runs, was not restarted, runs this release, and answers /health."""

    def judge(answer: Answer) -> Verdict:
        status, *more = answer.body.strip().splitlines() or [""]
        if status == f"active 0 {spec_hash} 200":
            return Verdict(True, f"unit, restarts, release, health: {status}")
        return Verdict(False, why_not_serving(status, more, spec_hash))

    home = endpoint_dir(endpoint)
    words = {"unit": unit_name(endpoint), "container": container_name(endpoint), "url": f"{health_url}/health"}
    script = f"(\n{listener_script(endpoint)}{host_script('still_serving', home=home, **words)}\n)\nprintf '\\n0 0'"
    return Question("still serving", script, judge, timeout=90)


def why_not_serving(status: str, more: Sequence[str], wanted: str) -> str:
    """Return the fault of an endpoint that was proven a moment ago. status, more: what still_serving.sh prints."""
    words = status.split()
    if len(words) != len(["state", "restarts", "release", "health"]) or status.startswith("stranger"):
        return status
    state, restarts, runs, health = words
    details = dict(text.split(" ", 1) for text in more if " " in text)
    after = f" after {details['after']} s" if "after" in details else ""
    cause = f"; its last error: {details['error']}" if "error" in details else ""
    if state == "active" and restarts == "1":
        return f"the engine died and systemd restarted it once{after}{cause}"
    if state == "active" and restarts not in ("0", "-"):
        return f"the engine died and systemd restarted it {restarts} times{after and f', first{after}'}{cause}"
    if state in ("activating", "deactivating"):
        return f"the engine died{after}, and systemd starts it again{cause}"
    if state != "active":
        return f"the engine ended{after}, and its unit is {state}{cause}"
    if runs != wanted:
        return f"release {runs} runs, not {wanted}" if runs != "-" else "its container is not running"
    return "/health does not answer" if health == "000" else f"/health answers {health}"


def bake_rows(name: str, proven: str, spec: Mapping[str, Any], last: EndpointSettings | None) -> list[Question]:
    """Return the rows of a bake for one endpoint. last: its settings at the last time, which asks for a token."""
    base = url_of(spec["address"], spec["port"], spec.get("network", "host"))
    cheap = still_serving(name, proven, base)
    if last is None:
        return [cheap]
    steps = engine_steps(base, spec["served_name"], last.engine_kind)
    return [cheap, *of_container(name, (steps,), is_keyed(spec))]


BakeCheck = Callable[[bool], Outcome]
"""Look at a host while its wave is baked; the argument is True for the last time."""


def baking(seconds: int, checks: Mapping[str, BakeCheck]) -> Callable[[Bake], dict[str, Outcome]]:
    """Watch a finished wave for some seconds; ends at the first host that no longer serves."""

    def bake(task: Bake) -> dict[str, Outcome]:
        note("bake", wave=task.wave, seconds=seconds, hosts=list(task.hosts))
        logger.info(f"--> Wave {task.wave} is done: watching {', '.join(task.hosts) or 'no host'} for {seconds} s")
        reported = time.monotonic()
        deadline, last = reported + seconds, seconds <= 0
        while not last:
            sleep(min(WATCH_SECONDS, max(0.0, deadline - time.monotonic())))
            last = time.monotonic() >= deadline
            failed = _failed_of(task.hosts, checks, last)
            if failed:
                return failed
            reported = _count_down(task, deadline, reported)
        return {}

    return bake


def _count_down(task: Bake, deadline: float, reported: float) -> float:
    """Print every half minute how long a wave is still watched; returns the time of the last message."""
    now = time.monotonic()
    if now - reported < SELDOM or deadline - now < 1:
        return reported
    logger.info(f"    Wave {task.wave}: {round(deadline - now)} s more")
    return now


def _failed_of(hosts: Sequence[str], checks: Mapping[str, BakeCheck], last: bool) -> dict[str, Outcome]:
    outcomes = side_by_side(lambda name: checks[name](last), hosts, WATCHED_AT_ONCE)
    return {name: outcome for name, outcome in zip(hosts, outcomes, strict=True) if not outcome.is_well}
