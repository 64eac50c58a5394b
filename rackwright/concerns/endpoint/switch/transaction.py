"""A switch as one job that the host runs without its control machine. Pure.

It stops what serves, starts what is to serve, proves it, and commits or rolls back: one endpoint, several that take
each other's GPUs or port, or all endpoints of a host around a step of the host itself, such as a restart of dockerd.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rackwright.concerns.endpoint.switch.balancer_hooks import drain_hook_script, not_admitted_mark, ready_script
from rackwright.concerns.endpoint.switch.job import (
    await_act_script,
    can_start_script,
    commit_script,
    drain_script,
    drain_time,
    gpus_kept_script,
    halt_script,
    in_turn,
    keep_log_script,
    named,
    point_script,
    pointed_at_script,
    start_script,
    started_script,
    wait_script,
)
from rackwright.concerns.endpoint.switch.marking import HEARD, mark_files, mark_script, unmark_script
from rackwright.concerns.endpoint.switch.proving import MEASURING, Tried, faults_script, prove_script, proving_time
from rackwright.hostside import durable_script, host_script, job_script, trial_of_several
from rackwright.paths import (
    ENDPOINT_LABEL,
    TARGET,
    UNITS,
    container_name,
    endpoint_dir,
    endpoint_job,
    held_file,
    job_folder,
    job_unit,
    release_dir,
    trial_file,
    unit_name,
)
from rackwright.plan.change import Job
from rackwright.settings.host_settings import EndpointSettings

ALONE = "the host finishes the switch on its own, or rolls back; the next run joins it, or reads how it ended"
STAYS = """\
printf '%s\\n' "it runs what was proven last, and is left to wait for the hosts that serve with it" | tee "$reason"
exit 1
"""
"""Runs instead of a stop, where the proven release comes back automatically once its other hosts do."""
POINTED = """cut -d' ' -f1 /proc/uptime >"$JOB/pointed\""""
"""From then on the previous release loads: the clock of a rollback."""

Kind = Literal["restart", "start", "prove", "window"]
"""The way of a switch to its release.

`restart` drains and stops what serves, `start` starts what rests, `prove` asks what runs already, and a `window` drains
what serves, leaves it running without clients until the message that closes it, and commits nothing.
"""


@dataclass(frozen=True)
class Part:
    """An endpoint's part in a switch."""

    name: str
    settings: EndpointSettings
    """Settings for its drain, start and questions."""
    new: Tried | None
    """The release that it is to serve; None for an endpoint that steps down for the others."""
    old: Tried | None = None
    """The release that it serves again when the switch fails; without one it is stopped then."""
    port: int | None = None
    """Its port until then, if it is not its settings' port."""
    proven: str | None = None
    """The release that was proven here last."""
    prepare: str = ""
    """A script before the drain; it fails without having changed what serves."""
    first: str = ""
    """A script before the commit."""
    bridge: bool = False
    """True where its old or new release publishes its port."""

    @property
    def serves_again(self) -> Tried:
        """The release that serves when the switch has failed."""
        found = self.old or self.new
        assert found is not None
        return found


@dataclass(frozen=True)
class HostStep:
    """A step of the host itself, between the stop of its endpoints and their start."""

    valid: str
    """A script that fails without having changed anything."""
    forward: str
    back: str
    trial: str
    """A script that takes it back when the job is cut."""
    seconds: int
    """For both ways."""
    logs: str
    """A script that keeps the logs of a failed try."""
    others: tuple[str, ...] = ()
    """Endpoints that run without serving: stopped with it, started again and not asked."""
    again: str = ""
    """A script that fails after the drains, with all still running, where the step could no longer succeed."""


@dataclass(frozen=True)
class Switch:
    """Endpoints of one host that switch together, with one commit for all of them."""

    name: str
    """Of its job."""
    title: str
    aim: str
    home: str
    """Folder in which its end is written down."""
    label: str
    """The release or configuration that it leads to."""
    before: str
    """The release that it rolls back to, as text; empty for nothing."""
    parts: tuple[Part, ...]
    keep: int = 0
    """Proven releases that stay on the host."""
    kind: Kind = "restart"
    stays: bool = False
    """True where it keeps waiting for other hosts when there is nothing to roll back to; otherwise it is stopped."""
    step: HostStep | None = None

    @property
    def coming(self) -> list[tuple[Part, Tried]]:
        """Endpoints with the release that they are to serve."""
        return [(part, part.new) for part in self.parts if part.new]

    @property
    def returning(self) -> list[tuple[Part, Tried]]:
        """Endpoints with the release that they serve again when the switch fails."""
        return [(part, part.old) for part in self.parts if part.old]

    @property
    def leaving(self) -> list[Part]:
        """Endpoints that step down."""
        return [part for part in self.parts if not part.new]

    @property
    def is_alone(self) -> bool:
        """True for one endpoint, of which no reason to fail must be named."""
        return len(self.parts) == 1 and self.step is None

    @property
    def gate(self) -> tuple[str, int]:
        """The gate before the commit, and the seconds within which the control machine must approve."""
        settings = self.parts[0].settings.gate if self.step is None else None
        return (settings.level, settings.commit_deadline) if settings else ("basic", 0)


def endpoints_switch(parts: Sequence[Part], keep: int, kind: Kind = "restart", stays: bool = False) -> Switch:
    """Return the switch of endpoints to their releases, named after the first. Arguments as in Switch."""
    coming = [(part.name, part.new.release) for part in parts if part.new]
    old = [(part.name, part.old.release) for part in parts if part.old]
    before = (f"release {release}{f' of endpoint {name}' if len(parts) > 1 else ''}" for name, release in old)
    return Switch(
        name=endpoint_job("switch", coming[0][0]),
        title=f"switch endpoint {', '.join(name for name, _ in coming)}",
        aim=f"switch {', '.join(f'{name} to {release}' for name, release in coming)}",
        home=endpoint_dir(coming[0][0]),
        label=coming[0][1],
        before=" and ".join(before),
        parts=tuple(parts),
        keep=keep,
        kind=kind,
        stays=stays,
    )


def switch_job(switch: Switch) -> Job:
    """Return the whole switch as one job of the host."""
    gate, deadline = switch.gate
    trial = trial_file(switch.home)
    script = job_script(
        "transaction",
        release=switch.label,
        home=switch.home,
        gate=gate,
        deadline=deadline,
        previous=switch.before,
        known="yes" if _is_proven(switch) else "no",
        prepare=_prepare(switch),
        forward=_forward(switch),
        prove=_each(switch, ((part, prove_script(part.name, new)) for part, new in switch.coming)),
        commit=_commit(switch),
        keep_log=_keep_logs(switch),
        back=_back(switch),
        prove_back=_each(switch, ((part, prove_script(part.name, old)) for part, old in switch.returning)),
        halt=STAYS if switch.stays else in_turn(_halts(switch)),
        faults=faults_script(switch.home, asks=switch.step is None),
        ready=_ready((part, new.release) for part, new in switch.coming),
        ready_back=_ready((part, part.serves_again.release) for part in switch.parts),
        trial=trial,
        trying=_trial_marks(switch) + (switch.step.trial if switch.step else _trial(switch)),
        marking=_marking(switch),
        admit=mark_script(_names(switch), "up", _why(switch)) if gate == "full" else "",
        leave=_leave(switch) if gate == "full" else "",
        unmark=unmark_script(_names(switch)),
        undone=unmark_script(_names(switch), undone=True),
        after=in_turn(_retire(part) for part in switch.leaving),
    )
    return Job(switch.name, switch.title, script, _seconds(switch), aim=switch.aim, alone=ALONE, trial=trial)


def _each(switch: Switch, scripts: Iterable[tuple[Part, str]]) -> str:
    """Chain scripts one after the other, whose reasons to fail name their endpoint where there are several."""
    return in_turn(script if switch.is_alone else named(part.name, script) for part, script in scripts)


def _is_proven(switch: Switch) -> bool:
    """Return True if the release was proven here before, so that it stays without the control machine's approval."""
    first = switch.parts[0] if switch.is_alone else None
    if first is None or first.new is None or first.proven != first.new.release:
        return False
    return first.old is None or first.old.release != first.new.release


def _prepare(switch: Switch) -> str:
    return in_turn([await_act_script(_act_seconds(switch)), _prepare_parts(switch)])


def _prepare_parts(switch: Switch) -> str:
    marks = _not_admitted(switch)
    prepared = _each(switch, ((part, part.prepare) for part in switch.parts))
    drained = mark_script(_names(switch), "drain", _why(switch))
    drains = in_turn([drained, _each(switch, ((part, _drain(part)) for part in switch.parts))])
    match switch.kind:
        case "start":
            return in_turn(marks)
        case "prove":
            return in_turn([_pointed_at(switch), *marks])
        case "window":
            return in_turn([_pointed_at(switch), *marks, drains])
        case "restart":
            valid = [f"mkdir -p {switch.home}", switch.step.valid] if switch.step else []
            unchanged = [host_script("stood_on", endpoint=part.name, unit=unit_name(part.name),
                                 file=_unit_file(part, old)) for part, old in switch.returning]  # fmt: skip
            # Chains are what a restart of dockerd makes; all else must be there before anything is stopped.
            again = switch.step.again if switch.step else _able(switch, again=True)
            return in_turn([*valid, *unchanged, _able(switch), *marks, prepared, drains, again])


def _names(switch: Switch) -> list[str]:
    return [part.name for part in switch.parts]


def _why(switch: Switch) -> str:
    return switch.title if switch.kind == "window" or switch.step else f"on trial: {switch.aim}"


def _marking(switch: Switch) -> str:
    """Mark the endpoints as down from before anything moves; what serves as proven without clients stays drained."""
    if switch.kind == "window" or (switch.kind == "prove" and _is_proven(switch)):
        return ""
    return mark_script(_names(switch), "down", _why(switch))


def _leave(switch: Switch) -> str:
    """Take away the clients that came before the commit, as a switch does it before a stop."""
    drained = mark_script(_names(switch), "drain", _why(switch))
    # The port is the new release's own by now.
    drains = _each(switch, ((part, _drain(replace(part, port=None))) for part, _ in switch.coming))
    return in_turn([*_not_admitted(switch), drained, drains, _marking(switch)])


def _not_admitted(switch: Switch) -> list[str]:
    return [f": >{shlex.quote(not_admitted_mark(part.name))}" for part in switch.parts if part.settings.ready_hook]


def _trial_marks(switch: Switch) -> str:
    return f"trial_marks={shlex.quote(mark_files(_names(switch)))}\n"


def _pointed_at(switch: Switch) -> str:
    scripts = ((part, pointed_at_script(part.name, new.release)) for part, new in switch.coming)
    return _each(switch, scripts)


def _able(switch: Switch, again: bool = False) -> str:
    """Fail before anything that serves is stopped, where something of all that is to start could not."""
    publishes = switch.step is None and any(part.bridge for part in switch.parts)
    new = [(part.name, tried.release) for part, tried in switch.coming]
    old = [(part.name, tried.release) for part, tried in switch.returning]
    return _each(switch, ((part, can_start_script(part.name, [*new, *old], publishes, again)) for part in switch.parts))


def _unit_file(part: Part, tried: Tried) -> str:
    return f"{release_dir(part.name, tried.release)}/{unit_name(part.name)}"


def _drain(part: Part) -> str:
    hook = drain_hook_script(part.name, part.settings, (part.new or part.serves_again).release)
    return drain_script(part.name, part.port or part.settings.port, part.settings.drain_timeout, hook)


def _forward(switch: Switch) -> str:
    match switch.kind:
        case "start":
            return _each(switch, ((part, _start_and_wait(part, new)) for part, new in switch.coming))
        case "prove" | "window":
            return _each(switch, ((part, wait_script(part.name, part.settings.load_timeout)) for part in switch.parts))
        case "restart":
            return _around(switch, switch.coming, switch.step.forward if switch.step else "")


def _start_and_wait(part: Part, tried: Tried) -> str:
    """In one shell: a head that had begun to start before its members is started again."""
    return start_script(part.name, tried.release) + started_script(part.name, part.settings.load_timeout)


def _around(switch: Switch, served: Sequence[tuple[Part, Tried]], step: str, halts: Iterable[str] = ()) -> str:
    """Stop all, take the step, then start what is to serve; loads run side by side."""
    names, others = [part.name for part in switch.parts], switch.step.others if switch.step else ()
    points = (point_script(part.name, tried.release, tried.binding) for part, tried in served)
    starts = (start_script(part.name, tried.release) for part, tried in served)
    again = (f"systemctl start --no-block {unit_name(name)}" for name in others)
    waits = ((part, _wait(part, mends=switch.step is None)) for part, _ in served)
    keep_gpus = gpus_kept_script(*names)
    return in_turn(
        [_stop([*names, *others]), *halts, step, *points, keep_gpus, *starts, *again, POINTED, _each(switch, waits)]
    )


def _stop(names: Iterable[str]) -> str:
    units = " ".join(map(unit_name, names))
    # One that was never here has no unit yet.
    return f"""systemctl stop {units} 2>/dev/null || for unit in {units}; do
  ! systemctl is-active --quiet "$unit" || exit 1
done"""


def _wait(part: Part, mends: bool) -> str:
    """Limit the last lines of a dying one to those since its start. mends: whether dockerd may be restarted for it."""
    since = f"since=$(cat {endpoint_dir(part.name)}/switched)\n"
    return since + (started_script if mends else wait_script)(part.name, part.settings.load_timeout)


def _commit(switch: Switch) -> str:
    """Nothing is committed where nothing is proven that was not before."""
    if switch.kind == "window" or switch.step:
        return ""
    commits = (
        part.first + commit_script(part.name, new.release, new.binding, switch.keep) for part, new in switch.coming
    )
    by, wants = "\n".join(part.name for part, _ in switch.coming), f"{UNITS}/{TARGET}.wants"
    downs = (
        durable_script("step_down", unit=unit_name(part.name), home=endpoint_dir(part.name), by=by, wants=wants)
        for part in switch.leaving
    )
    return in_turn([*commits, *downs])


def _keep_logs(switch: Switch) -> str:
    if switch.step:
        return switch.step.logs
    return in_turn(keep_log_script(part.name, new.release) for part, new in switch.coming)


def _back(switch: Switch) -> str:
    if not switch.returning:
        return ""
    halts = _halts(switch)
    return _around(switch, switch.returning, switch.step.back if switch.step else "", halts)


def _halts(switch: Switch) -> list[str]:
    """Stop what has nothing to roll back to; beside others it would be in their way at the next boot, too."""
    several = len(switch.parts) > 1
    return [halt_script(part.name, forget=several or part.proven is None) for part in switch.parts if part.old is None]


def _retire(part: Part) -> str:
    helper = job_script("remove_helper", container=container_name(part.name), label=ENDPOINT_LABEL)
    return helper + host_script("retire", unit=unit_name(part.name), units=UNITS)


def _trial(switch: Switch) -> str:
    """Return what takes the releases back when the switch is cut; without previous ones, nothing starts."""
    decided = "pointers" if switch.is_alone else "trial"
    tried = [host_script("trial_endpoint", **_trial_values(part, new), decided=decided) for part, new in switch.coming]
    leaving = [
        host_script("trial_leaving", unit=unit_name(part.name), home=endpoint_dir(part.name)) for part in switch.leaving
    ]
    held = [held_file(part.name) for part, _ in switch.coming]
    return trial_of_several(job_unit(switch.name), held, [*tried, *leaving])


def _trial_values(part: Part, new: Tried) -> dict[str, str]:
    return {
        "unit": unit_name(part.name),
        "units": UNITS,
        "home": endpoint_dir(part.name),
        "tried": new.release,
        "tried_binding": new.binding.text,
        "previous": part.old.release if part.old else "",
        "previous_binding": part.old.binding.text if part.old else "",
    }


def _ready(served: Iterable[tuple[Part, str]]) -> str:
    """Let clients in again. A hook that fails keeps no other endpoint's clients out; the next run tries it again."""
    hooks = [_admit(part, release) for part, release in served if part.settings.ready_hook]
    return "".join(["failed=0\n", *hooks, "exit $failed\n"]) if hooks else ""


def _admit(part: Part, release: str) -> str:
    mark = shlex.quote(not_admitted_mark(part.name))
    return f"(\n{ready_script(part.name, part.settings, release)}\n) && rm -f {mark} || failed=1\n"


ACTING = 900
"""Seconds of a restart by the watch beside the stop and the start, with its evidence and its proof."""


def act_time(endpoint: EndpointSettings) -> int:
    """Return the seconds that a restart by the host's watch may take."""
    return start_time(endpoint) + ACTING


def _act_seconds(switch: Switch) -> int:
    # A restart of dockerd alone asks no endpoint anything.
    return max((act_time(part.settings) for part in switch.parts), default=ACTING)


def start_time(endpoint: EndpointSettings) -> int:
    """Return the seconds that a stop and a start may take together."""
    return endpoint.stop_timeout + endpoint.load_timeout + 300


def _seconds(switch: Switch) -> int:
    """Return the longest time of the job: what each part takes, forward and back, and the wait for an approval."""
    step = switch.step.seconds if switch.step else 0
    return MEASURING + step + switch.gate[1] + _act_seconds(switch) + sum(map(_part_seconds, switch.parts))


def _part_seconds(part: Part) -> int:
    proof = max(proving_time(tried.questions) for tried in (part.new, part.old) if tried)
    return 2 * part.settings.hook_timeout + drain_time(part.settings) + 2 * (start_time(part.settings) + proof) + HEARD


def word_script(endpoint: str, message: str) -> str:
    """Send the waiting job a message.

    It is `commit`; `back` and why, of a release that was refused; `over` and why, of a trial that has ended; or `hold`,
    by which the commit deadline begins again. `admit` lets clients in before the commit, and is a `hold` too.
    """
    name = endpoint_job("switch", endpoint)
    return host_script("say_word", unit=job_unit(name), folder=job_folder(name), word=" ".join(message.split()))
