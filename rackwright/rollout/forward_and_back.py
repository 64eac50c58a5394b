"""A rollout from its control process: forward, back again where the release is at fault, and what it all came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from rackwright.record.ending import Result, end_of_rollout
from rackwright.record.record import BACKWARD, FORWARD
from rackwright.record.states import RunState
from rackwright.rollout.launch import Run, phase

Releases = Mapping[str, Mapping[str, str]]
"""Release by endpoint by host."""


def roll_out(
    run: Run, deploy: Path, data: Mapping[str, Any], earlier: Releases | None = None, **order: Sequence[str]
) -> tuple[int, str]:
    """Roll out on the run's hosts; returns the exit status and what to say.

    earlier: what hosts ran before that had the release already when this run began, so that they roll back as well.
    order: hosts that go `first` of their shape, and `last`.
    """
    run.note("phase", name=FORWARD)
    status = run.pyinfra(deploy, run.hosts, data, **order)
    forward = phase(run, FORWARD)
    before = releases_before(forward, earlier or {}) if forward.judgement.is_the_releases else {}
    leaving = of_all(before, run.peers)
    backward = take_back(run, leaving)
    return end_of_rollout(str(run.inventory), run.hosts, status, forward, backward, leaving, earlier or {})


def releases_before(forward: Result, earlier: Releases) -> Releases:
    """Return what each host that has the new release ran before it."""
    with_it = forward.named(RunState.SWITCHED, RunState.AFTERWARDS)
    return {**earlier, **{host: forward.before[host] for host in with_it if forward.before.get(host)}}


def of_all(releases: Releases, peers: Mapping[str, tuple[str, ...]]) -> Releases:
    """Return the same with all hosts that serve together with one of these: they follow their head in any case.

    peers: by host, all that serve its endpoint.
    """
    heads = {host: peers[host][0] for host in releases if host in peers}
    more = {peer: dict(releases.get(head, releases[host])) for host, head in heads.items() for peer in peers[host]}
    return {**more, **releases}


def take_back(run: Run, releases: Releases) -> Result | None:
    """Bring hosts back that have switched already, in waves under the same limits; None without such hosts."""
    if not releases:
        return None
    verb = "rolls" if len(releases) == 1 else "roll"
    print(f"rackwright: the release is at fault: {', '.join(releases)} {verb} back as well", flush=True)
    run.note("phase", name=BACKWARD)
    roll_back(run, releases, list(releases))
    return phase(run, BACKWARD)


def roll_back(run: Run, releases: Releases, hosts: Sequence[str]) -> int:
    """Run the rollback on hosts; `*` among the releases stands for any host or endpoint."""
    with as_file(files("rackwright.operations.deploys") / "rollback.py") as deploy:
        wanted = {host: dict(endpoints) for host, endpoints in releases.items()}
        return run.pyinfra(deploy, hosts, {"rollout.bake": 0, "rollout.wave": "100%"}, releases=wanted)
