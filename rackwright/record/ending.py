"""The end of a run: its exit status and its sentence, from what its record says of each host. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from rackwright.exit_codes import ExitCode
from rackwright.messages import coded, counted
from rackwright.record.cause import READY_HOOK
from rackwright.record.fault import Failure, Fault, Judgement, failures_in, judged
from rackwright.record.journal import Event
from rackwright.record.states import ENDED_WELL, NOT_REACHED, UNRECOVERED, UNTOUCHED, WELL, RunState, state_named

FIX = "fix the settings as the errors above say"
REPAIR = "fix what the errors above say"


def remedy(fixes: Sequence[str]) -> str:
    """Return what helps hosts that no resume helps: what their refusals say, if they all say the same."""
    return fixes[0] if len(fixes) == 1 else FIX


@dataclass(frozen=True)
class Result:
    """A record's summary of one phase."""

    states: Mapping[str, RunState]
    before: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The releases that were proven before the switch, by host and endpoint."""
    failures: tuple[Failure, ...] = ()
    held: str = ""
    """The reason for which a hook held the next wave back."""
    unseen: frozenset[str] = frozenset()
    """Hosts that roll back on their own: the job of their switch was ended from outside."""
    mistaken: bool = False
    """True where a host failed by what only other settings help against."""
    fixes: tuple[str, ...] = ()
    """Remedies where a host is mistaken, as far as its refusal says it."""

    def named(self, *states: RunState) -> list[str]:
        """Return the hosts in one of these states."""
        return [host for host, state in self.states.items() if state in states]

    @property
    def failed(self) -> list[str]:
        """Hosts whose switch went wrong; a gateway without endpoints has none."""
        return [host for host, state in self.states.items() if state not in ENDED_WELL | NOT_REACHED | UNTOUCHED]

    @property
    def not_let_in(self) -> list[str]:
        """Hosts that failed and have the change: it is proven there, and only the site's ready hook failed after it."""
        reasons = {host: {(one.cause, one.check) for one in self.failures if one.host == host} for host in self.failed}
        ready = {(READY_HOOK.cause, READY_HOOK.check)}
        return [host for host in self.failed if reasons[host] == ready and self.states[host] is RunState.FAILED]

    @property
    def bare(self) -> list[str]:
        """Hosts that failed and had no proven release to roll back to."""
        return [host for host in self.failed if self.before.get(host) == {}]

    @property
    def judgement(self) -> Judgement:
        """Return what its failures mean together."""
        return judged(self.failures)


def result(events: Iterable[Event], phase: str) -> Result:
    """Return what the record says of a phase: each host's last state in it."""
    states: dict[str, RunState] = {}
    before: dict[str, Mapping[str, str]] = {}
    inside, held, mistaken, unseen, fixes = list[Event](), "", False, set[str](), dict[str, None]()
    for event in _phase(events, phase):
        inside.append(event)
        if event["kind"] == "host" and (state := state_named(event["state"])):
            states[event["host"]] = state
            before.setdefault(event["host"], event.get("before", {}))
            unseen |= {event["host"]} if event.get("unseen") else set()
        elif event["kind"] == "held":
            held = event["text"]
        mistaken = mistaken or event["kind"] == "settings"
        fixes |= dict.fromkeys([event["fix"]] if event.get("fix") else [])
    return Result(states, before, tuple(failures_in(inside)), held, frozenset(unseen), mistaken, tuple(fixes))


def _phase(events: Iterable[Event], phase: str) -> Iterable[Event]:
    inside = False
    for event in events:
        if event["kind"] == "phase":
            inside = event["name"] == phase
        elif inside:
            yield event


def end_of_rollout(
    inventory: str,
    hosts: Sequence[str],
    status: int,
    forward: Result,
    backward: Result | None,
    leaving: Collection[str] = (),
    earlier: Collection[str] = (),
) -> tuple[ExitCode, str]:
    """Exit status and sentence of a rollout from its record; pyinfra's own status only adds doubt.

    leaving: hosts that were to leave the release again. earlier: hosts that had the change when this run began,
    from the run that it resumes.
    """
    # One that did not converge committed its release before.
    changed = {*forward.named(*WELL, RunState.NOT_CONVERGED), *forward.not_let_in, *earlier}
    spread = f"the change is on {counted(len(changed), 'host')}"
    if not forward.failed and forward.held:
        text = f"stopped: {forward.held}; {spread}; next: rackwright resume to continue"
        return stopped(changed), coded("RW0610", text)
    if not forward.failed and not leaving:
        return _untroubled(inventory, hosts, status, forward, changed)
    if down := _unrecovered(forward, backward, leaving):
        return ExitCode.MANUAL_ACTION, _possibly_down(inventory, down, forward, backward)
    failed = ", ".join(forward.failed)
    judgement = forward.judgement
    if judgement.is_the_releases:
        return ExitCode.ROLLED_BACK, rolled_back(forward.failed, forward.bare)
    if not forward.named(RunState.NOT_SWITCHED) and judgement.fault is Fault.HOST:
        text = f"{failed} failed by a fault of its own, {spread}; next: "
        return _with_failures(forward, changed), coded("RW0613", f"{text}rackwright resume, when it is repaired")
    text = f"stopped and held: {failed} failed, {spread}; next: "
    return _with_failures(forward, changed), coded(
        "RW0614", f"{text}rackwright resume to continue{_or_back(inventory, forward)}"
    )


def stopped(changed: Collection[str]) -> ExitCode:
    """Return how a run ended that stopped. changed: hosts that have the change and keep it."""
    return ExitCode.MIXED if changed else ExitCode.ERROR


def _with_failures(forward: Result, changed: Set[str]) -> ExitCode:
    """Return how a rollout ended that stopped because hosts failed, while the others keep what they have."""
    if not changed and set(forward.failed) == set(forward.named(RunState.ROLLED_BACK)):
        return ExitCode.ROLLED_BACK
    return ExitCode.ERROR if changed >= set(forward.states) else stopped(changed)


def _or_back(inventory: str, forward: Result) -> str:
    switched = forward.named(RunState.SWITCHED)
    return f", or rackwright rollback {inventory} --only switched@last to roll back" if switched else ""


def _unrecovered(forward: Result, backward: Result | None, leaving: Collection[str]) -> list[str]:
    """Return the hosts that may not serve the previous release."""
    back = backward.states if backward else {}
    not_back = [host for host in leaving if back.get(host) not in WELL]
    not_back_after = [host for host in forward.named(RunState.AFTERWARDS) if back.get(host) not in WELL]
    return list(dict.fromkeys([*forward.named(*UNRECOVERED), *not_back, *not_back_after]))


def _possibly_down(inventory: str, hosts: Sequence[str], forward: Result, backward: Result | None) -> str:
    """Return the sentence on hosts whose endpoint is possibly down."""
    if backward is None and all(forward.states.get(host) is RunState.SWITCHING for host in hosts):
        return unfinished_end(inventory, hosts)
    if backward is None and forward.unseen.issuperset(hosts):
        return unseen_end(inventory, hosts)
    return hands_needed(hosts)


def hands_needed(hosts: Collection[str]) -> str:
    """Return the sentence on hosts where rolling back failed."""
    names = ", ".join(hosts)
    return coded(
        "RW0611",
        f"manual action needed on {names}: rollback failed, the previous release may be down; next: fix the errors "
        "above, then rackwright resume",
    )


def unfinished_end(inventory: str, hosts: Collection[str]) -> str:
    """Return the sentence on hosts in the middle of their switch when the run here was ended."""
    limits = "".join(f" --limit {host}" for host in hosts)
    return coded(
        "RW0622",
        f"unknown on {', '.join(hosts)}: the run ended during the switch, which the host finishes on its own; "
        f"next: rackwright status {inventory}{limits}, then rackwright resume",
    )


def unseen_end(inventory: str, hosts: Collection[str]) -> str:
    """Return the sentence on hosts that roll back on their own: the job of their switch was ended from outside."""
    limits = "".join(f" --limit {host}" for host in hosts)
    return coded(
        "RW0629",
        f"unknown on {', '.join(hosts)}: the switch's job was ended from outside, and the host rolls back on its own; "
        f"next: rackwright status {inventory}{limits}, then the same command again",
    )


def rolled_back(failed: Collection[str], bare: Collection[str] = ()) -> str:
    """Return the sentence on a release that every host has left again. bare: hosts where nothing served before it."""
    names = ", ".join(failed) or "a host"
    if bare:
        bare_names = ", ".join(bare)
        text = f"nothing serves on {bare_names}, where no release was ever proven; next: rackwright status INVENTORY"
        return coded("RW0617", f"the change failed on {names} and was taken back: {text}")
    return coded(
        "RW0612", f"the change failed on {names} and was rolled back: what served serves its last good release"
    )


def end_of_way_back(
    wanted: Collection[str], back: Result | None, failed: Collection[str], unrecovered: Collection[str] = ()
) -> tuple[ExitCode, str]:
    """Exit status and sentence of taking a release back that an earlier run found at fault.

    wanted: hosts that were to leave it. failed: those on which it failed. unrecovered: others, that have needed
    hands since then.
    """
    states = back.states if back else {}
    bad = [*(host for host in wanted if states.get(host) not in WELL), *unrecovered]
    if bad:
        return ExitCode.MANUAL_ACTION, hands_needed(bad)
    return ExitCode.ROLLED_BACK, rolled_back(failed)


def _untroubled(
    inventory: str, hosts: Sequence[str], status: int, forward: Result, changed: Collection[str]
) -> tuple[ExitCode, str]:
    """Return the end where no switch went wrong."""
    pending = forward.named(RunState.NOT_CONVERGED)
    absent = {None, RunState.NOT_SWITCHED, *NOT_REACHED}
    missing = [host for host in hosts if forward.states.get(host) in absent and host not in pending]
    done = f"{len(forward.named(RunState.SWITCHED))} switched, {len(forward.named(RunState.UNCHANGED))} unchanged"
    if not missing and not pending and status == ExitCode.DONE:
        return ExitCode.DONE, f"done: {done}"
    parts = [
        *([f"{', '.join(missing)} did not reach the switch"] if missing else []),
        *([f"{', '.join(pending)} did not converge"] if pending else []),
    ]
    what = "; ".join(parts) or "not everything was done"
    rollout = f"rackwright rollout {inventory}"
    fixed = f"{remedy(forward.fixes)}, then {rollout}"
    again = fixed if forward.mistaken else "rackwright resume" if parts else rollout
    code = stopped(changed) if parts else ExitCode.ERROR
    return code, coded("RW0615", f"{what}, see above; {done}; what served keeps serving; next: {again}")


def end_of_reboot(hosts: Sequence[str], status: int, found: Result) -> tuple[ExitCode, str]:
    """Exit status and sentence of restarting hosts in turn, from its record."""
    done = f"{counted(len(found.named(RunState.SWITCHED)), 'host')} restarted and proven"
    if unrecovered := found.named(*UNRECOVERED):
        text = f"manual action needed on {', '.join(unrecovered)}: not back, or it does not answer, see above; {done}"
        return ExitCode.MANUAL_ACTION, coded("RW0618", f"{text}; next: repair it, then rackwright resume")
    if found.held:
        return stopped(found.named(*WELL)), coded(
            "RW0610", f"stopped: {found.held}; {done}; next: rackwright resume to continue"
        )
    if found.failed:
        text = f"stopped and held: {', '.join(found.failed)} failed, see above; {done}"
        return stopped(found.named(*WELL)), coded("RW0619", f"{text}; next: rackwright resume, when that is repaired")
    missing = [host for host in hosts if found.states.get(host) in {None, *NOT_REACHED}]
    if missing or found.named(RunState.NOT_SWITCHED) or status != ExitCode.DONE:
        which = ", ".join([*missing, *found.named(RunState.NOT_SWITCHED)]) or "some hosts"
        text = f"{which} did not come to the restart, see above; {done}"
        return stopped(found.named(*WELL)), coded("RW0619", f"{text}; next: rackwright resume")
    return ExitCode.DONE, f"done: {done}"


def end_of_drivers(hosts: Sequence[str], status: int, found: Result) -> tuple[ExitCode, str]:
    """Exit status and sentence of switching drivers in turn, from its record."""
    done = f"{counted(len(found.named(RunState.SWITCHED)), 'host')} switched and proven"
    same = f"{len(found.named(RunState.UNCHANGED))} had the driver already"
    if unrecovered := found.named(*UNRECOVERED):
        text = f"manual action needed on {', '.join(unrecovered)}: not back, or without a driver, see above; {done}"
        return ExitCode.MANUAL_ACTION, coded("RW0636", f"{text}; next: its console, then rackwright resume")
    if found.held:
        text = f"stopped: {found.held}; {done}; next: rackwright resume to continue"
        return stopped(found.named(*WELL)), coded("RW0610", text)
    switched = found.named(RunState.SWITCHED)
    if back := found.named(RunState.ROLLED_BACK):
        text = f"the driver failed on {', '.join(back)}, which went back and serves with the one before; {done}"
        code = ExitCode.MIXED if switched else ExitCode.ROLLED_BACK
        return code, coded("RW0646", f"{text}; the other hosts keep what they have; next: the errors above")
    if found.failed or found.named(RunState.NOT_SWITCHED) or status != ExitCode.DONE:
        bad = [*found.failed, *(host for host in hosts if found.states.get(host) in {None, *NOT_REACHED})]
        text = f"the driver was not switched on {', '.join(dict.fromkeys(bad)) or 'some hosts'}, see above; {done}"
        return stopped(switched), coded("RW0656", f"{text}; next: rackwright resume")
    return ExitCode.DONE, f"done: {done}, {same}"


def end_of_drain(hosts: Sequence[str], status: int, found: Result, undrain: str) -> tuple[ExitCode, str]:
    """Exit status and sentence of draining hosts from its record. undrain: rackwright's words to take them in again."""
    bad = [host for host in hosts if found.states.get(host) != RunState.DONE]
    names = ", ".join(hosts)
    if bad and set(bad) <= {*found.named(RunState.BUSY)}:
        text = f"{', '.join(bad)} was not drained and has no mark: another run has its lease, see above"
        again = "the same command again, when the other run has ended"
        return stopped(found.named(RunState.DONE)), coded("RW0626", f"{text}; next: {again}")
    if bad or status != ExitCode.DONE:
        text = f"{', '.join(bad) or names} could not be drained wholly, see above; runs skip a host that has its mark"
        return stopped(found.named(RunState.DONE)), coded("RW0620", f"{text}; next: rackwright resume, or {undrain}")
    return (
        ExitCode.DONE,
        f"done: {names}: drained and stopped, and runs skip it; to take it into service again: {undrain}",
    )


def end_of_undrain(hosts: Sequence[str], status: int, found: Result) -> tuple[ExitCode, str]:
    """Exit status and sentence of taking drained hosts into service again, from its record."""
    idle = found.named(RunState.UNCHANGED)
    bad = [host for host in hosts if host not in idle and found.states.get(host) != RunState.DONE]
    if bad or status != ExitCode.DONE:
        text = f"{', '.join(bad) or ', '.join(hosts)} could not be taken into service, see above, and stays drained"
        return stopped(found.named(RunState.DONE)), coded("RW0621", f"{text}; next: repair it, then rackwright resume")
    back = ", ".join(host for host in hosts if host not in idle)
    parts = [f"{back}: no longer drained; what served there before serves again"] if back else []
    parts += [f"{', '.join(idle)}: was not drained, so nothing was done there"] if idle else []
    return ExitCode.DONE, f"done: {'; '.join(parts)}"


def end_of_rollback(
    hosts: Sequence[str], status: int, found: Result, targets: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[ExitCode, str]:
    """Exit status and sentence of a rollback by hand from its record.

    targets: the release by endpoint by host to which it went.
    """
    missing = [host for host in hosts if host not in found.states or found.states[host] in NOT_REACHED]
    refused = found.named(RunState.REFUSED)
    bad = [host for host in [*found.failed, *found.named(RunState.NOT_SWITCHED)] if host not in refused]
    if bad:
        return ExitCode.MANUAL_ACTION, coded(
            "RW0611", f"manual action needed on {', '.join(bad)}: rollback failed, see above"
        )
    if refused or missing or status != ExitCode.DONE:
        which = ", ".join([*refused, *missing]) or "some hosts"
        return stopped(found.named(*WELL)), coded(
            "RW0616", f"{which} did not roll back, and serve the same release as before; see above"
        )
    switched = found.named(RunState.SWITCHED)
    names = dict.fromkeys(release for host in switched for release in (targets or {}).get(host, {}).values())
    to = f" to release {', '.join(names)}" if names else ""
    same = len(found.named(RunState.UNCHANGED))
    text = f"done: {len(switched)} rolled back{to}, {same} ran it already"
    return ExitCode.DONE, f"{text}; the settings still ask for the newer one"
