"""A switch as one job that the host runs by itself: switch, wait, prove, then commit or roll back. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from rackwright.concerns.endpoint.switch.job import ROOM, halt_script, keep_log_script, switch_script
from rackwright.hostside import helper_script, host_script, job_script, trial_script
from rackwright.hostside.packed import packed
from rackwright.paths import (
    UNITS,
    endpoint_dir,
    endpoint_job,
    held_file,
    helper_container,
    job_folder,
    job_unit,
    trial_file,
    unit_name,
)
from rackwright.plan.asking import stranger_script
from rackwright.plan.binding import Binding
from rackwright.plan.change import Job
from rackwright.proof.basic import HARDWARE, Question
from rackwright.proof.full import COUNTERS
from rackwright.settings.model import EndpointSettings

ALONE = "the host finishes the switch by itself, or rolls back; the next run joins it, or reads how it ended"
JUDGING = 120
"""Seconds that the judge may take, most of them for its container's start."""


MEASURING = 120
"""Seconds that measuring a host's own faults may take, before and after."""

STAYS = """\
printf '%s\n' "it runs what was proven last, and is left to wait for the hosts that serve with it" | tee "$reason"
exit 1
"""
"""Instead of a stop, where what was proven comes back by itself once its other hosts do."""


@dataclass(frozen=True)
class Tried:
    """A release, what it is bound to on this host, and what it must answer."""

    release: str
    binding: Binding
    image: str
    """Where its judge runs: what serves the release is on the host, and has Python."""
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class SwitchScripts:
    """How a release is reached: scripts, and the seconds that they may take together."""

    prepare: str
    """Fails without having changed what serves."""
    forward: str
    commit: str
    seconds: int


def transaction(
    endpoint: str,
    own: EndpointSettings,
    way: SwitchScripts,
    new: Tried,
    previous: Tried | None,
    proven: str | None,
    stays: bool = False,
) -> Job:
    """The whole switch as a job.

    stays: whether it keeps waiting for other hosts when there is nothing to roll back to; otherwise it is stopped then.
    previous: what to roll back to, if there is anything else; the same release where only its binding is another.
    proven: the release that was proven last here.
    """
    home = endpoint_dir(endpoint)
    script = job_script(
        "transaction",
        release=new.release,
        home=home,
        gate=own.gate.level,
        deadline=own.gate.commit_deadline,
        previous=f"release {previous.release}" if previous else "",
        known="yes" if proven == new.release and not (previous and previous.release == new.release) else "no",
        mark=f"{home}/not-admitted" if own.ready_hook else "",
        prepare=way.prepare,
        forward=way.forward,
        prove=prove_script(endpoint, new),
        commit=way.commit,
        keep_log=keep_log_script(endpoint, new.release),
        back=switch_script(endpoint, previous.release, previous.binding, own.load_timeout) if previous else "",
        prove_back=prove_script(endpoint, previous) if previous else "",
        halt=STAYS if stays else halt_script(endpoint, forget=proven is None),
        faults=faults_script(home),
        ready=ready_script(endpoint, own, new.release),
        ready_back=ready_script(endpoint, own, previous.release if previous else new.release),
        trial=trial_file(home),
        trying=endpoint_trial(endpoint, new, previous),
        after="",
    )
    after = MEASURING + start_time(own) + 2 * own.hook_timeout + 2 * proving_time(new.questions)
    seconds = way.seconds + own.gate.commit_deadline + after
    aim = f"switch {endpoint} to {new.release}"
    return Job(
        endpoint_job("switch", endpoint),
        f"switch endpoint {endpoint}",
        script,
        seconds,
        aim=aim,
        alone=ALONE,
        trial=trial_file(home),
    )


def endpoint_trial(endpoint: str, new: Tried, previous: Tried | None) -> str:
    """What takes a release back when the switch that tries it is cut; without a previous one, nothing starts."""
    owner = job_unit(endpoint_job("switch", endpoint))
    return trial_script("endpoint", owner=owner, held=held_file(endpoint), **trial_values(endpoint, new, previous))


def trial_values(endpoint: str, new: Tried, previous: Tried | None, decided: str = "pointers") -> dict[str, str]:
    """What the trial of one endpoint goes by. decided: "pointers", or "trial" for one of several."""
    return {
        "decided": decided,
        "unit": unit_name(endpoint),
        "units": UNITS,
        "home": endpoint_dir(endpoint),
        "tried": new.release,
        "tried_binding": new.binding.text,
        "previous": previous.release if previous else "",
        "previous_binding": previous.binding.text if previous else "",
    }


def faults_script(home: str, asks: bool = True) -> str:
    """Measure whether the host itself is at fault.

    home: the folder of what is switched. asks: whether dockerd must answer; False where it is what changes.
    """
    words = {"hardware": HARDWARE, "counters": COUNTERS, "asks": "yes" if asks else "no"}
    return host_script("host_faults", home=home, room=ROOM, **words)


def prove_script(endpoint: str, tried: Tried) -> str:
    """Ask the basic questions on the host, and judge the answers there."""
    if not tried.questions:
        return ""
    asked = [
        shlex.join(["ask", str(number), str(row.timeout), _asking(row), row.stdin or ""])
        for number, row in enumerate(tried.questions)
    ]
    return stranger_script(endpoint) + helper_script(
        "prove",
        helper_container(endpoint, "judge"),
        questions="\n".join(asked),
        rows=json.dumps([{**row, "endpoint": endpoint} for row in rows_of(tried.questions)]),
        program=packed("proof/judge", "proof/basic", "proof/final_answer", "proof/sense"),
        image=tried.image,
        seconds=JUDGING,
    )


def _asking(row: Question) -> str:
    """Return a row's script as the host runs it: what stands before all of them lies in a file there."""
    return f'. "$JOB/known"\n{row.script}' if row.before else row.script


def rows_of(questions: Sequence[Question]) -> list[dict[str, object]]:
    """The questions as the host's judge builds them again. Raises ValueError for one that hosts do not know."""
    for row in questions:
        if row.rule is None:
            raise ValueError(f"hosts cannot judge the row {row.name!r}")
    return [{"rule": row.rule.name, "arguments": row.rule.arguments} for row in questions if row.rule]


def drain_hook_script(endpoint: str, own: EndpointSettings, release: str) -> str:
    """The site's hook before a stop, as a script; empty without one."""
    return _hook("drain_hook", own.drain_hook, endpoint, own, release)


def ready_script(endpoint: str, own: EndpointSettings, release: str) -> str:
    """The site's hook that lets clients in again, as a script; empty without one."""
    return _hook("ready_hook", own.ready_hook, endpoint, own, release)


def _hook(name: str, words: Sequence[str], endpoint: str, own: EndpointSettings, release: str) -> str:
    if not words:
        return ""
    return host_script(
        "hook",
        hook=name,
        words=shlex.join(words),
        program=words[0],
        seconds=own.hook_timeout,
        endpoint=endpoint,
        port=own.port,
        release=release,
    )


def word_script(endpoint: str, word: str) -> str:
    """Tell the waiting job a word.

    It is `commit`; `back` and why, of a release that was refused; `over` and why, of a trial that has ended; or `hold`,
    by which the commit deadline begins anew.
    """
    name = endpoint_job("switch", endpoint)
    return host_script("say_word", unit=job_unit(name), folder=job_folder(name), word=" ".join(word.split()))


def start_time(own: EndpointSettings) -> int:
    """Seconds that a stop and a start may take together."""
    return own.stop_timeout + own.load_timeout + 300


def proving_time(questions: Sequence[Question]) -> int:
    """Seconds that a proof on the host may take."""
    return sum(row.timeout for row in questions) + JUDGING + 30
