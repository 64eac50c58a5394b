"""A host's rest and its return: endpoints drained and stopped, then started again as they were, and asked. Pure.

Nothing is deployed: what comes back is what was proven last. Of several hosts that serve together the head is drained
and asked as any host; the others rest after it, wait for it again before it starts, and restart beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rackwright.concerns.drained import DRAINED, MARK, NO_BOOT, NO_BOOT_TEXT, Drained
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.container import url_of
from rackwright.concerns.endpoint.full_gate import compared_questions, full_questions
from rackwright.concerns.endpoint.group.members import follow_change
from rackwright.concerns.endpoint.proof.proof_row import Question
from rackwright.concerns.endpoint.questions import tried_of
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.endpoint.switch.balancer_hooks import drain_hook_script, ready_script
from rackwright.concerns.endpoint.switch.job import await_act_script, drain_script, drain_time, in_turn
from rackwright.concerns.endpoint.switch.marking import HEARD, mark_script, unmark_script
from rackwright.concerns.endpoint.switch.steps import HostRestart, HostReturn, Proved
from rackwright.concerns.endpoint.switch.transaction import Part, act_time, endpoints_switch, start_time, switch_job
from rackwright.concerns.gateway.answer import gateway_answers
from rackwright.hostside import durable_script, host_script, job_script
from rackwright.messages import coded
from rackwright.paths import STATE, WORD_NOTES, endpoint_dir, endpoint_job, job_unit, unit_name
from rackwright.plan.change import Change, Job, Owned, Shell, Step, WriteFile
from rackwright.plan.concern import HostReading
from rackwright.plan.reach import client_port_of
from rackwright.settings.host_settings import EndpointSettings, HostSettings

UNKNOWN_DRAIN = 60
"""Seconds for the clients of an endpoint that the settings no longer have."""
STOPPING = 120
"""Seconds that a stop may take beside its own time-out."""
UP = ("active", "activating", "reloading")
"""States of a unit that is not at rest."""
RESTART_JOB = "restart-host"
RESTARTS = "the host is restarted"
ALONE = "the host drains, restarts and starts its endpoints on its own"


def drain_changes(settings: HostSettings, reading: HostReading, mark: Drained) -> list[Change]:
    """Mark the host first, so that it stays out whatever happens next; then rest its endpoints.

    A host that follows another one is only marked: it rests when its head does.
    """
    steps = (WriteFile(NO_BOOT, NO_BOOT_TEXT), WriteFile(MARK, mark.text))
    rests = [] if settings.follows else _resting(settings, reading)
    return [Change("mark the host as drained", mark.reason, steps), *rests]


def _up(reading: HostReading) -> list[tuple[str, SeenEndpoint]]:
    """Return the endpoints that run, or are about to."""
    return [(name, now) for name, now in reading[ENDPOINT].endpoints.items() if now.active in UP]


def follow_to_rest(reading: HostReading) -> list[Change]:
    """Stop what waits for a head that rests."""
    return [
        Change(
            f"stop endpoint {name}",
            "its head is drained",
            (Job(endpoint_job("rest", name), f"stop endpoint {name}", _stop(name), STOPPING, code="RW2422"),),
            endpoint=name,
        )
        for name, _ in _up(reading)
    ]


def left_by_head(head: str) -> str:
    """Return why a host that serves with a head neither rests nor comes back, for people."""
    text = f"left as it is, because {head}, the head of its endpoint, failed before it; next: rackwright resume"
    return coded("RW2460", text)


def _stop(name: str) -> str:
    return job_script("rest", unit=unit_name(name), home=endpoint_dir(name), ready="no")


def _resting(settings: HostSettings, reading: HostReading) -> Iterator[Change]:
    for name, now in _up(reading):
        endpoint = settings.all_endpoints.get(name)
        job = Job(
                endpoint_job("rest", name), f"drain endpoint {name}",
                rest_script(name, endpoint, now), _seconds(endpoint), code="RW2422",
            )  # fmt: skip
        yield Change(f"drain and stop endpoint {name}", "the host is being drained", (job,), endpoint=name)


def rest_script(name: str, endpoint: EndpointSettings | None, now: SeenEndpoint, marks: str = "") -> str:
    """Take an endpoint's clients away, then stop it. When they cannot be, they are let in again and it serves on.

    marks: why the job marks it; empty where the host has an operator's mark already.
    """
    ready = "yes" if endpoint and endpoint.ready_hook else "no"
    waiting = host_script("wait_for_switch", job=job_unit(endpoint_job("switch", name)), seconds=_seconds(endpoint))
    act = await_act_script(act_time(endpoint) if endpoint else UNKNOWN_DRAIN)
    hook = drain_hook_script(name, endpoint, now.current or "") if endpoint else ""
    port = now.spec.get("port", endpoint.port if endpoint else 0)
    drain = drain_script(name, port, endpoint.drain_timeout if endpoint else UNKNOWN_DRAIN, hook)
    stop = job_script("rest", unit=unit_name(name), home=endpoint_dir(name), ready=ready)
    back = ready_script(name, endpoint, now.current or "") if endpoint else ""
    leaving = mark_script([name], "drain", marks) if marks else ""
    down = mark_script([name], "down", marks) if marks else ""
    again = unmark_script([name], undone=True) if marks else ""
    steps = in_turn([waiting, act, leaving, drain, down, stop])
    return f"(\n{steps}\n)\n[ $? = 0 ] && exit 0\n{in_turn([again, back])}exit 1\n"


def _seconds(endpoint: EndpointSettings | None) -> int:
    return (
        endpoint.hook_timeout + drain_time(endpoint) + start_time(endpoint) + act_time(endpoint) + STOPPING
        if endpoint
        else UNKNOWN_DRAIN + STOPPING
    )


def undrain_changes(settings: HostSettings, reading: HostReading) -> list[Change]:
    """Start what rests and ask it; the mark goes last, so that a return that breaks off leaves the host out."""
    if reading[DRAINED].drained is None:
        return []
    return [*(_returned(proof, "the host is no longer drained") for proof in proofs(settings, reading)), _unmark()]


def wait_changes(reading: HostReading) -> list[Change]:
    """Let a drained host wait for its head, before that starts."""
    if reading[DRAINED].drained is None:
        return []
    return [
        Change(f"let endpoint {name} wait for its head", "the hosts are no longer drained", (Shell(_waits(name)),))
        for name, now in reading[ENDPOINT].endpoints.items()
        if now.current and now.active not in UP
    ]


def _waits(name: str) -> str:
    unit = unit_name(name)
    return f"systemctl reset-failed {unit} 2>/dev/null\nsystemctl start --no-block {unit}\n"


def follow_changes(settings: HostSettings, reading: HostReading) -> list[Change]:
    """Wait until a host serves again with its head."""
    return [
        follow_change(settings.all_endpoints[name], name, now.proven, settings.group)
        for name, now in reading[ENDPOINT].endpoints.items()
        if name in settings.all_endpoints and now.proven and settings.group
    ]


def follower_undrain_changes(settings: HostSettings, reading: HostReading) -> list[Change]:
    """Wait until a host serves again with its head; then let runs take it."""
    return [*follow_changes(settings, reading), _unmark()] if reading[DRAINED].drained else []


def _unmark() -> Change:
    paths = {"mark": MARK, "no_boot": NO_BOOT, "homes": f"{STATE}/endpoints", "notes": WORD_NOTES}
    unmark = Shell(durable_script("unmark", **paths, askers_limit=HEARD))
    return Change("let runs take the host again", "it is no longer drained", (unmark,))


def _returned(proof: Proved, why: str) -> Change:
    what = f"start endpoint {proof.endpoint} at release {proof.release} and ask it"
    return Change(what, why, (proof,), endpoint=proof.endpoint)


def proofs(settings: HostSettings, reading: HostReading) -> list[Proved]:
    """Return how each endpoint that was ever proven comes back: started, unless it runs, and asked by its gate."""
    return [
        _proof(name, settings, now)
        for name, now in reading[ENDPOINT].endpoints.items()
        if name in settings.all_endpoints and now.proven and now.proven_spec and now.proven_binding
    ]


def _proof(name: str, settings: HostSettings, now: SeenEndpoint) -> Proved:
    endpoint, keep = settings.all_endpoints[name], settings.releases.keep
    assert now.proven is not None
    assert now.proven_binding is not None
    tried = tried_of(name, now.proven, now.proven_spec, now.proven_binding)
    part = Part(name, endpoint, tried, proven=now.proven)
    switch = endpoints_switch([part], keep, "start", stays=settings.group is not None)
    return Proved(
        endpoint=name,
        release=now.proven,
        job=switch_job(switch),
        serving=now.serving,
        questions=_asked(endpoint, now),
        questions_before=_compared(endpoint, now),
        client_port=client_port_of(endpoint, settings.direct_clients),
    )


def ask_again(settings: HostSettings, reading: HostReading) -> list[Change]:
    """Ask a head that has nothing to change itself, when hosts that serve with it rejoin."""
    why = "hosts that serve with it rejoin"
    return [
        Change(f"ask endpoint {proof.endpoint} at release {proof.release}", why, (proof,), endpoint=proof.endpoint)
        for proof in proofs(settings, reading)
    ]


def _asked(endpoint: EndpointSettings, now: SeenEndpoint) -> tuple[Question, ...]:
    if endpoint.gate.level == "basic":
        return ()
    return full_questions(_base(now), now.proven_spec["served_name"], endpoint)


def _compared(endpoint: EndpointSettings, now: SeenEndpoint) -> tuple[Question, ...]:
    if endpoint.gate.level == "basic" or not now.serving:
        return ()
    return compared_questions(_base(now), now.proven_spec["served_name"], endpoint, now.proven_spec)


def _base(now: SeenEndpoint) -> str:
    return url_of(now.proven_spec["address"], now.proven_spec["port"], now.proven_spec.get("network", "host"))


def reboot_changes(settings: HostSettings, reading: HostReading, seconds: int, before: str | None) -> list[Change]:
    """Rest, restart, return; or the return alone where the host was restarted since an earlier run began.

    seconds: within which it must be back. before: the boot in which that earlier run found it, if any.
    """
    if before is None or before == reading[DRAINED].boot:
        return restart_changes(settings, reading, seconds, RestartWork())
    last = follow_changes(settings, reading) if settings.follows else []
    ask = [Change("ask the gateway", "the host was restarted", steps)] if (steps := gateway_answers(settings)) else []
    return [*(_returned(proof, "the host was restarted") for proof in asked_on_return(settings, reading)), *ask, *last]


def asked_on_return(settings: HostSettings, reading: HostReading) -> list[Proved]:
    """Return what must answer once a host is back; a host that follows another one is asked through its head."""
    return [] if settings.follows else proofs(settings, reading)


@dataclass(frozen=True)
class RestartWork:
    """The reason for a restart of a host, and its scripts while the endpoints rest; empty for nothing."""

    what: str = "restart the host"
    why: str = "asked for"
    first: str = ""
    """Must succeed before anything is stopped."""
    at_rest: str = ""
    seconds: int = 0
    """Time limit of both together."""
    returned: Callable[[HostReturn], Step] = lambda back: back
    """Makes the step that waits for the host."""
    owns: tuple[Owned, ...] = ()
    """Its additions to the host."""


def restart_changes(settings: HostSettings, reading: HostReading, seconds: int, work: RestartWork) -> list[Change]:
    """Rest, work, restart, return. seconds: within which the host must be back."""
    boot, found = reading[DRAINED].boot, tuple(asked_on_return(settings, reading))
    serving = settings.is_gateway or any(now.serving for now in reading[ENDPOINT].endpoints.values())
    restart = HostRestart(_restart(settings, reading, work), found, serving, boot)
    back = work.returned(HostReturn(found, boot, seconds))
    if settings.group is None:
        return [Change(work.what, work.why, (restart, back, *gateway_answers(settings)), work.owns)]
    first = Change(work.what, work.why, (restart,), work.owns)
    last = follow_changes(settings, reading) if settings.follows else []
    return [first, Change("wait until the host is back", "it restarts", (back,)), *last]


def _restart(settings: HostSettings, reading: HostReading, work: RestartWork) -> Job:
    rests = [
        _stop(name) if settings.follows else rest_script(name, settings.all_endpoints.get(name), now, RESTARTS)
        for name, now in _up(reading)
    ]
    longest = sum(_seconds(settings.all_endpoints.get(name)) for name in reading[ENDPOINT].endpoints) + STOPPING
    script = in_turn([work.first, *rests, work.at_rest]) + job_script("restart_host")
    return Job(RESTART_JOB, f"drain and {work.what}", script, longest + work.seconds, alone=ALONE)


def stop_and_restart_job(title: str, reading: HostReading, at_rest: str, seconds: int) -> Job:
    """Return the job that stops all endpoints, proven or not, works, and restarts the host."""
    number = len(reading[ENDPOINT].endpoints)
    script = stop_all_script(reading) + in_turn([at_rest]) + job_script("restart_host")
    return Job(RESTART_JOB, title, script, number * STOPPING + STOPPING + seconds, alone=ALONE)


def stop_all_script(reading: HostReading) -> str:
    """Return the part of a job that stops all endpoints of the host at once, without a drain."""
    return in_turn(_stop(name) for name in reading[ENDPOINT].endpoints)


def wait_all_script(reading: HostReading) -> str:
    """Return the part of a job that lets all endpoints of a host that follows another one wait for their head."""
    return "".join(_waits(name) for name, now in reading[ENDPOINT].endpoints.items() if now.current)
