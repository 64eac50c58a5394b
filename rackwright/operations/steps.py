"""The pyinfra operations that apply one concern or look at the whole: apply, converged, hash, try, tear down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from rackwright.adapter.command_output import tail
from rackwright.adapter.host import Host, State, say, this_host
from rackwright.adapter.operation import operation
from rackwright.adapter.run.declaring import counts, declared_of, noted, ours
from rackwright.adapter.run.inventories import settings_of
from rackwright.adapter.run.options import is_dry, is_verbose
from rackwright.adapter.run_context import part_of
from rackwright.concerns.catalog import by_name, managed
from rackwright.concerns.deploy_steps import Declared
from rackwright.concerns.driver import DRIVER
from rackwright.concerns.gateway.concern import GATEWAY, without_hosts
from rackwright.concerns.gpus import GPUS
from rackwright.concerns.handed_images import handed_on
from rackwright.concerns.image import IMAGE
from rackwright.concerns.lease import LEASED
from rackwright.concerns.lease.own_leases import forget, hold_of
from rackwright.concerns.lease.take_lease import clear_dead
from rackwright.concerns.models import MODELS, hash_changes
from rackwright.concerns.preflight.concern import PREFLIGHT
from rackwright.concerns.registry import try_key
from rackwright.concerns.teardown.marks import Marks, parse, read_script
from rackwright.concerns.teardown.teardown import NOTHING, Teardown, plan_left_behind, plan_teardown, remains
from rackwright.messages import RackwrightError, ReadingError, coded
from rackwright.operations.diagnosis import note_diagnosis
from rackwright.operations.hand_on import among_others, images_among_others
from rackwright.operations.hostrun import (
    Commands,
    announce_changes,
    begun,
    collected,
    commands,
    decide_and_carry_out,
    fail,
    leased_changes,
    mark_begun,
    mark_changed,
    reading_of,
    unreadable,
    was_changed,
)
from rackwright.plan.change import Change, Owned, Refuse, Shell
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.ownership import RECORD
from rackwright.record.journal import note
from rackwright.record.masked_changes import change_fields
from rackwright.remote.commands import command_of, complain, remote
from rackwright.remote.downloads import under_way
from rackwright.remote.errors import StepFailedError


def apply_concern(concern: str, name: str, wait: bool = True) -> None:
    """Declare one concern, and make a host match its settings in it.

    concern: name of the concern, for example `docker`. name: the operation's, a sentence.
    wait: False when its downloads are only begun, where `release()` collects them.
    """
    if counts(concern):
        with noted(concern):
            match_settings(name=name, concern=concern, wait=wait)


@operation()
def match_settings(concern: str, wait: bool = True) -> Commands:
    """Make a host match its settings in one concern; yields nothing when it does.

    + concern: name of the concern, for example `docker`
    + wait: whether its downloads have ended when it ends, also where `release` is called later
    """
    host = this_host()
    yield from _apply(host, by_name(concern), begins=not wait and "release" in declared_of(host))


def _apply(host: Host, concern: Concern[Any, Any], begins: bool) -> Commands:
    settings = settings_of(host)
    wanted: Any = None
    missing: Sequence[str] = ()

    def decide(reading: HostReading) -> Sequence[Change]:
        nonlocal wanted, missing
        reading = among_others(host, reading) if concern is MODELS else reading
        wanted, missing = concern.wanted(settings, reading), list(reading.names_of(concern).absent.values())
        changes = concern.changes(wanted, reading[concern])
        if concern is not IMAGE:
            return changes
        return handed_on(changes, settings, images_among_others(host, settings.downloads.hand_on, reading))

    if lacks(host.state, host.name):
        return
    changes = yield from leased_changes(host, decide)
    if changes and begins and _must_wait(host, changes):
        yield from collected(host)
        changes = yield from leased_changes(host, decide)
    if changes is None:
        return
    if missing and is_dry(host.state) and not host.state.is_executing:
        _leave_out(host, missing)
        return
    _report(host, concern, wanted)
    announce_changes(host, changes)
    if changes and host.state.is_executing:
        note("stage", host=host.name, concern=concern.name, **change_fields(changes, settings))
    _give_up_early(host, changes)
    for change in changes:
        if begins:
            mark_begun(host)
            yield from begun(concern, change)
        else:
            mark_changed(host, concern.alone)
            yield from commands(change)
    if concern.looks and changes and host.state.is_executing:
        yield from _refused_by_look(host, decide)
        _report(host, concern, wanted)


def _refused_by_look(host: Host, decide: Callable[[HostReading], Sequence[Change]]) -> Commands:
    """Decide again after a look at a host: a refusal by what was found fails it."""
    reading = reading_of(host)
    if reading is None:
        yield from unreadable(host)
        return
    note_diagnosis(host, reading[GPUS].diagnosis.last)
    # The lease is this run's: nothing that stops the host passes with its end.
    ours = replace(reading[LEASED], lease=None)
    for change in decide(replace(reading, by_concern={**reading.by_concern, LEASED.name: ours})):
        if any(isinstance(step, Refuse) for step in change.steps):
            yield from commands(change)


def _must_wait(host: Host, changes: Sequence[Change]) -> bool:
    """Return whether what an image is must be known first, which its download tells."""
    refuses = any(isinstance(step, Refuse) for change in changes for step in change.steps)
    return refuses and bool(under_way(host))


def collect(name: str) -> None:
    """Declare that what was begun must have ended by now. name: the operation's, a sentence."""
    if counts("release"):
        with ours():
            collect_downloads(name=name)


def collect_images(name: str) -> None:
    """Declare that images have arrived, where hosts hand models on: all of them begin together, each in its image."""
    if counts("models") and settings_of(this_host()).downloads.hand_on is not None:
        with ours():
            collect_downloads(name=name)


def judge_first_driver(name: str) -> None:
    """Declare preflight once more, where a deploy may install a first driver. name: the operation's, a sentence."""
    if counts(DRIVER.name) and settings_of(this_host()).driver.first_by_deploy:
        with ours():
            check_first_driver(name=name)


@operation()
def check_first_driver() -> Commands:
    """Check a host again once it has its first driver; yields nothing where it had one."""
    host = this_host()
    if host.state.is_executing and PREFLIGHT.name in declared_of(host).steps:
        yield from _apply(host, PREFLIGHT, begins=False)


@operation()
def collect_downloads() -> Commands:
    """Wait for the downloads that were begun; a failed one fails its host here, under its own name."""
    host = this_host()
    if host.state.is_executing:
        yield from collected(host)


def _report(host: Host, concern: Concern[Any, Any], wanted: Any) -> None:
    reading = reading_of(host)
    tell = (concern.details if is_verbose(host.state) else None) or concern.report
    if reading is not None and tell is not None:
        for row in _news(host, concern.name, tell(wanted, reading[concern])):
            say(host, row)


@dataclass(frozen=True)
class Reported:
    """Lines that a run has printed of its hosts' concerns."""

    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    """By host and concern."""
    first: dict[str, str] = field(default_factory=dict)
    """By the rows below a concern's first one, the host of which they were printed."""


def _news(host: Host, concern: str, text: str) -> Sequence[str]:
    """Return a report's rows that were not printed already: before pyinfra's question, or of a host that is alike."""
    reported = part_of(host.state, Reported)
    if reported.texts.get((host.name, concern)) == text:
        return ()
    reported.texts[host.name, concern] = text
    head, _, rows = text.partition("\n")
    alike = reported.first.setdefault(rows, host.name) if rows else host.name
    return text.splitlines() if alike == host.name or is_verbose(host.state) else [f"{head}, the same as on {alike}"]


def _give_up_early(host: Host, changes: Sequence[Change]) -> None:
    """Take a host out of the run on a refusal while looking ahead, so that nothing is written to it later."""
    steps = [step for change in changes for step in change.steps]
    refusals = list(dict.fromkeys(step.message for step in steps if isinstance(step, Refuse) and step.final))
    if refusals and not host.state.is_executing:
        _take_out(host, refusals)


def _take_out(host: Host, refusals: Sequence[str]) -> None:
    for refusal in refusals:
        complain(host, refusal)
    host.state.failed_hosts.add(host)
    host.state.active_hosts.discard(host)


@dataclass(frozen=True)
class Lacking:
    """Hosts of a --dry whose settings name what registry or hub do not have."""

    hosts: set[str] = field(default_factory=set)


def lacks(state: State, host: str) -> bool:
    """Return whether a host is out of a --dry: no later step of its could happen, so none is announced."""
    return host in part_of(state, Lacking).hosts


def _leave_out(host: Host, missing: Sequence[str]) -> None:
    """End a --dry for this host with what registry and hub do not have, as a plan ends; a deploy asks from the host."""
    part_of(host.state, Lacking).hosts.add(host.name)
    _take_out(host, missing)


def converge(name: str) -> None:
    """Declare that hosts must have converged at the end. name: the operation's, a sentence."""
    with noted("converged"):
        converged(name=name)


@operation()
def converged() -> Commands:
    """Read a changed host once more: whatever is still pending did not converge, and is an error."""
    host = this_host()
    if not host.state.is_executing:
        return
    if not was_changed(host):
        if (read := reading_of(host)) is not None and hold_of(host) is None:
            clear_dead(host, read[LEASED])
        return
    reading = reading_of(host, whole=True)
    if reading is None:
        yield from unreadable(host)
        return
    for concern in managed(declared_of(host).steps):
        for change in concern.pending(settings_of(host), reading):
            text = f"did not converge: still pending in {concern.name}: {change.sentence}"
            yield fail(coded("RW1104", text))
    if GATEWAY in managed(declared_of(host).steps) and (warning := without_hosts(settings_of(host), reading[GATEWAY])):
        say(host, coded("RW3615", warning), "yellow")


def refuse_alone(step: str, instead: str) -> NoReturn:
    """Raise RackwrightError where the file of a step that is nothing on its own is run as a deploy.

    instead: the command that does what was meant.
    """
    raise RackwrightError(
        f"{step}() goes by what other steps of the same deploy do, and does nothing alone; next: {instead}",
        code="RW1107",
    )


def hash_models(name: str) -> None:
    """Hash every model file again when `models.verify_deep` is set. name: the operation's, a sentence."""
    if counts("models"):
        with ours():
            hash_model_files(name=name)


@operation()
def hash_model_files() -> Commands:
    """Hash every model file again when `models.verify_deep` is set; yields nothing otherwise."""
    host = this_host()
    settings = settings_of(host)
    if settings.models.verify_deep:
        yield from decide_and_carry_out(host, lambda reading: hash_changes(settings, reading[MODELS]))


def try_keys(name: str) -> None:
    """Try the registry's key when `registry.check_key` is set. name: the operation's, a sentence."""
    if counts("registry"):
        with ours():
            try_registry_keys(name=name)


@operation()
def try_registry_keys() -> Commands:
    """Try the registry's key when `registry.check_key` is set; yields nothing otherwise."""
    host = this_host()
    settings = settings_of(host)
    if settings.registry.check_key and (change := try_key(settings.registry)):
        yield from decide_and_carry_out(host, lambda _: [change])


@operation()
def remove_left_behind(steps: Mapping[str, Sequence[str]], purge: bool = False) -> Commands:
    """Remove what steps that deploy.py no longer calls have left on a host.

    + steps: by host, the steps that deploy.py calls
    + purge: models and images too
    """
    host = this_host()
    if host.name in steps:
        declared = Declared(tuple(steps[host.name]))
        yield from decide_and_carry_out(host, lambda reading: plan_left_behind(reading, declared, purge))


@operation()
def tear_down(purge: bool = False) -> Commands:
    """Remove what the host's ownership record names and what carries a Rackwright mark; then look again.

    + purge: models and images too
    """
    host = this_host()
    plans: list[Teardown] = []

    def decide(reading: HostReading) -> Sequence[Change]:
        record: frozenset[Owned] = reading[RECORD]
        plans.append(plan_teardown(reading, _read_marks(host, record), purge))
        return plans[-1].changes

    changes = yield from leased_changes(host, decide)
    if changes is None:
        return
    announce_changes(host, changes)
    for change in changes:
        yield from commands(change)
    if host.state.is_executing:
        forget(host)
        yield from _check_gone(host, plans[-1])


def _read_marks(host: Host, record: Iterable[Owned]) -> Marks:
    script = read_script(record, settings_of(host).models.folder)
    ok, output = remote(host, command_of(Shell(script)))
    try:
        if ok:
            return parse(output.stdout_lines)
    except (ReadingError, ValueError):
        pass
    raise StepFailedError(f"what Rackwright has put on this host could not be read: {tail(output)}", code="RW1103")


def _check_gone(host: Host, plan: Teardown) -> Commands:
    """Say what is left, on purpose or not, and fail the host when anything else is, or may be."""
    try:
        still = remains(_read_marks(host, ()), plan.record_stays)
    except StepFailedError as error:
        yield fail(coded(error.code, f"whether everything is gone is not known: {error.text}"))
        return
    note("left", host=host.name, kept=plan.retained or None, unknown=plan.unknown or None, still=still or None)
    for text in plan.retained:
        say(host, f"left on the host: {text}")
    for text in plan.foreign:
        say(host, f"not Rackwright's, left as it is: {text}")
    if not plan.changes:
        say(host, NOTHING)
    if still:
        text = f"still there after the teardown: {', '.join(still)}; next: run the same command again"
        yield fail(coded("RW1105", text))
    for text in plan.unknown:
        yield fail(coded("RW1106", text))
