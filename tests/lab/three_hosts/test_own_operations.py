"""A site's own operations around the turns of hosts that serve."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab.conftest import Run, Site
from tests.lab.fleets import begin
from tests.lab.test_declared import own_site

pytestmark = pytest.mark.lab
__all__ = ["own_site"]

TURN = "date --date \"$(docker inspect --format '{{.State.StartedAt}}' rackwright-llm)\" +%s%N"
"""Prints when the container of the turn began, in nanoseconds: all lab hosts have one clock."""


@pytest.fixture
def site(fleet: Site, request: pytest.FixtureRequest) -> Site:
    """Return the site whose hosts take the turns."""
    begin(fleet, request)
    return fleet


def test_own_operations_run_on_all_hosts_before_the_first_turn_and_after_the_last(
    site: Site, own_site: Callable[..., Run]
) -> None:
    hosts = site.lab.hosts[:2]
    limits = [text for host in hosts for text in ("--limit", host.name)]
    for host in hosts:
        host.run("rm -f /run/before-turns /run/after-turns")
    changed = ("--data", 'engine={"stream_interval": 32}')
    run = own_site("pyinfra", "inventory/lab.py", "deploy.py", "-y", *limits, *changed)
    assert run.status == 0, run.output
    before, turns, after = (
        [int(host.run(command).stdout) for host in hosts]
        for command in ("cat /run/before-turns", TURN, "cat /run/after-turns")
    )
    assert max(turns) - min(turns) > 10**9, "one host after the other, or the order says nothing"
    assert max(before) < min(turns)
    assert max(turns) < min(after)
