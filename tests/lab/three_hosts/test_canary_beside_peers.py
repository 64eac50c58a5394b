"""A canary beside two peers without clients: Rackwright's own requests to each in turn find one that is slower."""

from __future__ import annotations

import json

import pytest

from tests.lab.conftest import Site
from tests.lab.fleets import assert_all_serve, begin, engine_of, proven, rollout
from tests.lab.products import in_proof
from tests.refused import refusal, row_of

pytestmark = pytest.mark.lab

ROW = "beside its peers"
SLOW, EQUAL = 73, 74
GATE = f"gate={json.dumps({'slower_by': 10, 'beside_peers': 42})}"


@pytest.fixture
def served(fleet: Site, request: pytest.FixtureRequest) -> Site:
    """All three serve."""
    begin(fleet, request)
    return fleet


def test_a_release_that_is_slower_than_its_peers_rolls_back_from_the_canary(served: Site) -> None:
    canary = served.lab.hosts[0]
    before = proven(served.lab.hosts)
    # All are slow, so that a crowded machine matters less; the row `speed` lets 1.75 times as long pass.
    usual, slow = {"fault": "slow_factor", "value": 2}, {"fault": "slow_factor", "value": 3.2}
    for host in served.lab.hosts:
        host.set_engine_faults(usual)
    canary.set_engine_faults(usual, {**slow, "when": {"option.stream_interval": SLOW}})
    try:
        run = rollout(served, "--data", GATE, stream_interval=SLOW)
    finally:
        for host in served.lab.hosts:
            host.set_engine_faults()
    assert run.status == 3, run.output
    refusal(run.output, "RW0424", ROW)
    row_of(run.output, "refused", ROW, "fewer tokens a second", "pairs of")
    assert_all_serve(served, before)


@in_proof("the one above is refused; tests/unit/test_beside_peers.py replays equal releases")
def test_an_equal_release_is_kept_and_a_host_alone_has_no_peer(served: Site) -> None:
    canary, *others = served.lab.hosts
    run = rollout(served, "--data", GATE, stream_interval=EQUAL)
    assert run.status == 0, run.output
    row_of(run.output, "proved", ROW, "pairs of")
    assert len(set(proven(others))) == 1
    run = rollout(served, "--data", GATE, "--limit", canary.name, stream_interval=EQUAL + 1)
    assert run.status == 0, run.output
    row_of(run.output, "not measured", ROW)
    assert engine_of(canary) == {"stream_interval": EQUAL + 1}
