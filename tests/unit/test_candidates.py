"""Which run a resume means, among all of a site's."""

from __future__ import annotations

from typing import Any

import pytest

from rackwright.messages import RackwrightError
from rackwright.processes import this_process
from rackwright.record.journal import Event
from rackwright.record.record import Record, record_of
from rackwright.rollout.resumable_runs import candidates, chosen

HOSTS = ["h1", "h2", "h3"]
GONE = {**this_process(), "started": -1}
END = {"kind": "end", "status": 1, "text": "x"}
SWITCHING = {"kind": "host", "host": "h2", "state": "switching", "before": {"llm": "old"}}


def run(name: str, purpose: str, *events: Event, **fields: Any) -> Record:
    begun = {"purpose": purpose, "what": f"{purpose} i.py", "hosts": HOSTS, "inventory": "/s/i.py", "process": GONE}
    begin = {"kind": "begin", "time": "2026-01-31T10:15:00.000+00:00", "deploy": "/s/deploy.py", **begun, **fields}
    phase = [{"kind": "phase", "name": purpose}] if purpose != "deploy" else []
    return record_of(name, [begin, *phase, *events])


def ended(**states: str) -> list[Event]:
    return [*({"kind": "host", "host": host, "state": state} for host, state in states.items()), END]


CUT = run("cut", "rollout", {"kind": "host", "host": "h1", "state": "switched"}, SWITCHING)
BUSY = run("refused", "deploy", *ended(h1="busy", h2="busy", h3="unchanged"), plain=True)
FAILED = run("failed", "deploy", *ended(h1="unchanged", h2="failed before its switch", h3="switched"), plain=True)
WELL = run("well", "deploy", *ended(h1="unchanged", h2="switched", h3="switched"), plain=True)
VETOED = run("vetoed", "rollout", END)


def names(*found: Record) -> list[str]:
    return [one.record.id for one in candidates(found)]


def test_a_deploy_that_the_lease_refused_is_nothing_to_resume() -> None:
    assert names(CUT, BUSY) == ["cut"]
    assert chosen([CUT, BUSY]).id == "cut"
    assert chosen([BUSY, CUT]).id == "cut"
    with pytest.raises(RackwrightError, match=r"run refused .*: 2 busy"):
        chosen([BUSY])


def test_a_run_that_a_hook_refused_and_a_rollback_with_nothing_kept_are_nothing_to_resume() -> None:
    refused = run("kept", "rollback", *ended(h1="refused", h2="refused", h3="refused"))
    assert names(CUT, VETOED) == ["cut"]
    assert names(refused) == []


def test_what_was_stopped_from_outside_was_not_refused() -> None:
    stopped = {**END, "status": 130}
    assert names(run("stopped", "rollout", stopped)) == ["stopped"]
    assert names(run("torn down", "teardown", END)) == ["torn down"]


def test_when_in_doubt_the_candidates_are_listed_with_their_commands_text() -> None:
    with pytest.raises(RackwrightError, match="which run is meant") as listed:
        chosen([CUT, FAILED])
    assert str(listed.value).splitlines()[1:] == [
        "  rackwright resume failed",
        "    deploy i.py, begun 2026-01-31 10:15:00 UTC; left: h2",
        "  rackwright resume cut",
        "    rollout i.py, begun 2026-01-31 10:15:00 UTC; left: h2, h3",
        "    later runs have worked on h3",
    ]


def test_a_rollout_that_a_later_deploy_has_done_in_part_is_a_doubt_too() -> None:
    part = run("part", "deploy", *ended(h3="switched"), plain=True, hosts=["h3"])
    with pytest.raises(RackwrightError, match="later runs have worked on h3"):
        chosen([CUT, part])


def test_what_later_runs_have_done_or_taken_on_is_no_longer_left() -> None:
    assert names(CUT, WELL) == []
    assert names(CUT, run("newer", "rollout", SWITCHING)) == ["newer"]
    assert names(CUT, run("by hand", "rollback", *ended(h1="switched", h2="switched", h3="unchanged"))) == []
    with pytest.raises(RackwrightError, match="nothing is left of run well"):
        chosen([CUT, WELL])


def test_a_resume_that_was_refused_has_resumed_nothing() -> None:
    first = run("cut", "rollout", SWITCHING, {"kind": "resumed", "by": "again"})
    again = run("again", "rollout", END, resumes="cut")
    killed = run("again", "rollout", resumes="cut")
    begun = run("again", "rollout", SWITCHING, resumes="cut")
    assert chosen([first, again]).resumed_by is None
    assert [names(first, later) for later in (again, killed, begun)] == [["cut"], ["again"], ["again"]]


def test_a_run_under_way_is_waited_for() -> None:
    alive = run("alive", "rollout", SWITCHING, process=this_process())
    other = run("rebuild", "rebuild", SWITCHING, process=this_process())
    with pytest.raises(RackwrightError, match="run alive is still under way"):
        chosen([CUT, alive])
    assert chosen([CUT, other]).id == "cut"


def test_without_any_run_that_is_said() -> None:
    with pytest.raises(RackwrightError, match="no run has left a record"):
        chosen([])
