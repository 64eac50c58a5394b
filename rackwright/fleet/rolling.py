"""A rollout from its control process: forward, back again where the release is at fault, and what it all came to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from rackwright.fleet.journal import ORDER
from rackwright.fleet.record import (
    AFTERWARDS,
    BACKWARD,
    FORWARD,
    NOT_CONVERGED,
    NOT_REACHED,
    NOT_SWITCHED,
    NOTHING_SERVES,
    SWITCHED,
    SWITCHING,
    UNCHANGED,
    WELL,
)
from rackwright.fleet.running import DONE, ERROR, HANDS_NEEDED, WENT_BACK, Result, Run, phase
from rackwright.fleet.waves import Fault
from rackwright.rollback import BACK

Releases = Mapping[str, Mapping[str, str]]
"""Release by endpoint by host."""


def roll_out(
    run: Run, deploy: Path, data: Mapping[str, Any], earlier: Releases | None = None, **order: Sequence[str]
) -> tuple[int, str]:
    """Roll out on the run's hosts; returns the exit status and what to say.

    earlier: what hosts ran before that had the release already when this run began, so that they go back as well.
    order: hosts that go `first` of their shape, and `last`.
    """
    run.note("phase", name=FORWARD)
    status = run.pyinfra(deploy, run.hosts, data, **{ORDER: json.dumps(order)})
    forward = phase(run, FORWARD)
    backward = take_back(run, releases_before(forward, earlier or {})) if forward.is_the_releases else None
    return verdict(str(run.inventory), run.hosts, status, forward, backward)


def releases_before(forward: Result, earlier: Releases) -> Releases:
    """What each host that has the new release ran before it."""
    with_it = forward.named(SWITCHED, AFTERWARDS)
    return {**earlier, **{host: forward.before[host] for host in with_it if forward.before.get(host)}}


def take_back(run: Run, releases: Releases) -> Result | None:
    """Bring hosts back that have switched already, in waves under the same limits; None when there are none."""
    if not releases:
        return None
    print(f"rackwright: the release is at fault: {', '.join(releases)} go back as well", flush=True)
    run.note("phase", name=BACKWARD)
    go_back(run, releases, list(releases))
    return phase(run, BACKWARD)


def go_back(run: Run, releases: Releases, hosts: Sequence[str]) -> int:
    """Run the rollback on hosts; `*` among the releases stands for any host or endpoint."""
    with as_file(files("rackwright.deploys") / "rollback.py") as deploy:
        asked = {BACK: json.dumps({host: dict(endpoints) for host, endpoints in releases.items()})}
        return run.pyinfra(deploy, hosts, {"bake": 0, "wave": "100%"}, **asked)


def verdict(
    inventory: str, hosts: Sequence[str], status: int, forward: Result, backward: Result | None
) -> tuple[int, str]:
    """Exit status and sentence of a rollout from its record; pyinfra's own status only adds doubt."""
    if not forward.failed and forward.held:
        well = len(forward.named(*WELL))
        return ERROR, f"stopped: {forward.held}; {well} hosts have the change; next: rackwright resume to go on"
    if not forward.failed and not forward.named(NOT_SWITCHED):
        return _untroubled(hosts, status, forward)
    hurt = forward.named(NOTHING_SERVES, SWITCHING)
    if backward:
        hurt += backward.not_well
    back = backward.named(*WELL) if backward else []
    hurt += [host for host in forward.named(AFTERWARDS) if host not in [*back, *hurt]]
    if hurt:
        return HANDS_NEEDED, f"hands needed on {', '.join(hurt)}: they may not serve what they served; see above"
    failed = ", ".join(forward.failed)
    if forward.is_the_releases:
        return WENT_BACK, f"the change failed on {failed} and was rolled back: what served serves its last good release"
    well = len(forward.named(*WELL))
    if not forward.named(NOT_SWITCHED) and set(forward.faults) == {Fault.HOST.value}:
        return WENT_BACK, (
            f"{failed} failed by a fault of its own, {well} hosts have the change; next: "
            f"rackwright resume, when it is mended"
        )
    return WENT_BACK, (
        f"stopped and held: {failed} failed, {well} hosts have the change; next: "
        f"rackwright resume to go on, or rackwright rollback {inventory} to go back"
    )


def _untroubled(hosts: Sequence[str], status: int, forward: Result) -> tuple[int, str]:
    """The verdict where no switch went wrong."""
    pending = forward.named(NOT_CONVERGED)
    missing = [host for host in hosts if forward.states.get(host) in {None, *NOT_REACHED} and host not in pending]
    done = f"{len(forward.named(SWITCHED))} switched, {len(forward.named(UNCHANGED))} unchanged"
    if not missing and not pending and status == DONE:
        return DONE, f"done: {done}"
    parts = [
        *([f"{', '.join(missing)} did not come to their switch"] if missing else []),
        *([f"{', '.join(pending)} did not converge"] if pending else []),
    ]
    what = "; ".join(parts) or "not everything was done"
    return ERROR, f"{what}, see above; {done}; what served goes on serving; next: rackwright resume"
