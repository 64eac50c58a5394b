"""What is left of a run: forward past those that are done, further back where the release is at fault, or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from rackwright.cli.resume import asked_again
from rackwright.messages import RackwrightError
from rackwright.processes import this_process
from rackwright.record.cause import Cause
from rackwright.record.journal import Event
from rackwright.record.record import Record, record_of
from rackwright.rollout.resuming import Rest, rest_of, unrecovered_hosts
from tests import texts
from tests.refused import refused

HOSTS = ["h1", "h2", "h3", "h4", "h5"]
GONE = {**this_process(), "started": -1}
OLD = {"llm": "old"}


def event(kind: str, **fields: Any) -> Event:
    return {"time": "2026-01-01T00:00:00.000+00:00", "kind": kind, **fields}


def begin(purpose: str = "rollout", **fields: Any) -> Event:
    begun = {
        "purpose": purpose,
        "what": purpose,
        "hosts": HOSTS,
        "inventory": "/s/i.py",
        "deploy": "/s/deploy.py",
        "process": GONE,
    }
    return event("begin", **{**begun, **fields})


def switching(host: str) -> Event:
    return event("host", host=host, state="switching", before=OLD)


def host(name: str, state: str) -> Event:
    return event("host", host=name, state=state)


def failed(name: str, cause: Cause, wave: int = 1) -> Event:
    return event("failure", host=name, cause=cause, check="speed", wave=wave)


def run(*events: Event, **fields: Any) -> Record:
    return record_of("r", [begin(**fields), *events])


FORWARD = (
    event("phase", name="rollout"),
    switching("h1"),
    host("h1", "switched"),
    host("h5", "unchanged"),
    switching("h2"),
)


def test_a_run_cut_in_a_wave_goes_on_with_those_that_were_switching_first() -> None:
    remaining = rest_of(run(*FORWARD, host("h3", "skipped")))
    assert remaining == Rest("rollout", ("h2", "h3", "h4"), {"h1": OLD}, first=("h2",))


def test_a_host_with_a_fault_of_its_own_comes_last() -> None:
    events = (host("h2", "failed"), failed("h2", Cause.DISK), host("h3", "not switched"), host("h4", "quarantined"))
    remaining = rest_of(run(*FORWARD, *events, event("end", status=3, text="held")))
    assert (remaining.hosts, remaining.first, remaining.last) == (("h2", "h3", "h4"), (), ("h2", "h4"))


def test_a_run_cut_while_the_release_was_found_at_fault_goes_further_back() -> None:
    found_out = (switching("h3"), host("h3", "rolled back"), failed("h3", Cause.CHECK))
    remaining = rest_of(run(*FORWARD, *found_out))
    assert remaining == Rest("rolling back", ("h1", "h2"), {"h1": OLD, "h2": OLD})
    back = (event("phase", name="rolling back"), switching("h1"), host("h1", "switched"), switching("h2"))
    assert rest_of(run(*FORWARD, *found_out, *back)).hosts == ("h2",)
    with pytest.raises(RackwrightError, match="nothing is left of run r"):
        rest_of(run(*FORWARD, *found_out, *back, host("h2", "switched")))
    with pytest.raises(RackwrightError, match=texts.pattern(texts.NOTHING_TO_RESUME) + "; next: fix"):
        rest_of(run(*FORWARD, *found_out, *back, event("end", status=3, text="rolled back")))
    assert rest_of(run(*FORWARD, *found_out, *back, event("end", status=4, text="manual action needed"))).hosts == (
        "h2",
    )


def test_a_resumed_run_can_be_resumed_and_knows_who_had_the_release_before() -> None:
    first = run(*FORWARD)
    remaining = rest_of(first)
    again = asked_again(first, remaining)
    assert again["resumes"] == "r"
    fields = {**again, "hosts": list(remaining.hosts)}
    assert rest_of(run(event("phase", name="rollout"), switching("h3"), **fields)).first == ("h3", "h2")
    second = run(event("phase", name="rollout"), switching("h2"), host("h2", "switched"), **fields)
    assert rest_of(second) == Rest("rollout", ("h3", "h4"), {"h1": OLD, "h2": OLD})
    bad = run(event("phase", name="rollout"), switching("h2"), failed("h2", Cause.CHECK), **fields)
    assert rest_of(bad) == Rest("rolling back", ("h1", "h2"), {"h1": OLD, "h2": OLD})


def test_a_resumed_way_back_can_be_resumed() -> None:
    first = run(*FORWARD, failed("h2", Cause.CHECK))
    fields = {**asked_again(first, rest_of(first)), "hosts": ["h1", "h2"]}
    second = run(event("phase", name="rolling back"), switching("h1"), host("h1", "switched"), **fields)
    assert rest_of(second) == Rest("rolling back", ("h2",), {"h2": OLD})


def test_a_rollback_asks_hosts_for_the_release_that_they_were_going_to() -> None:
    events = (
        event("phase", name="rollback"),
        event("target", host="h2", to={"llm": "older"}),
        host("h1", "switched"),
        switching("h2"),
        host("h3", "unchanged"),
    )
    remaining = rest_of(run(*events, purpose="rollback", to="last"))
    assert remaining.hosts == ("h2", "h4", "h5")
    assert remaining.releases == {"h2": {"llm": "older"}, "h4": {"*": "last"}, "h5": {"*": "last"}}
    again = asked_again(run(*events, purpose="rollback", to="last"), remaining)
    assert rest_of(run(events[0], purpose="rollback", **again)).releases["h2"] == {"llm": "older"}


def test_a_teardown_and_a_plain_deploy_go_on_with_the_others() -> None:
    done = (host("h1", "done"), host("h2", "unreachable"), switching("h3"), host("h4", "unchanged"))
    assert rest_of(run(event("phase", name="teardown"), *done, purpose="teardown")).hosts == ("h2", "h3", "h5")
    assert rest_of(run(*done, purpose="deploy", plain=True)) == Rest("", ("h2", "h3", "h5"), first=("h3",))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (record_of("r", []), "does not say what was asked for"),
        (run(purpose="rebuild", what="rebuild h1"), r"run r \(rebuild h1\) cannot be resumed"),
        (run(process=this_process()), r"run r is still under way \(process \d+\); next: wait"),
        (run(event("process", process=this_process())), "is still under way"),
        (run(event("resumed", by="r2")), "was resumed as r2 already; next: rackwright runs r2"),
        (run(*(host(name, "switched") for name in HOSTS)), "nothing is left of run r: 5 switched"),
        (run(data={"environment": {"A_TOKEN": "*MASKED*"}}), "had --data environment with a secret"),
    ],
)
def test_what_cannot_be_gone_on_with_is_refused(record: Record, message: str) -> None:
    with pytest.raises(RackwrightError, match=message):
        rest_of(record)


def test_a_releases_fault_is_not_forgotten_beside_a_hosts() -> None:
    both = (host("h2", "rolled back"), failed("h2", Cause.CHECK), host("h3", "failed"), failed("h3", Cause.CONNECTION))
    remaining = rest_of(run(*FORWARD[:-1], switching("h2"), *both))
    assert (remaining.kind, remaining.hosts) == ("rolling back", ("h1",))


def test_a_plain_deploy_whose_release_is_at_fault_is_not_pushed_on() -> None:
    events = (host("h1", "switched"), switching("h2"), host("h2", "rolled back"), failed("h2", Cause.CHECK))
    with refused("RW0818", "run r ", "pyinfra /s/i.py /s/deploy.py", "rackwright rollback /s/i.py --only switched@r"):
        rest_of(run(*events, purpose="deploy", plain=True))


def lost(before: dict[str, str] | None) -> Record:
    """Make a rollout whose canary failed, and could not be rolled back."""
    begun = event("host", host="h1", state="switching", before=before or {})
    events = (event("phase", name="rollout"), begun, host("h1", "nothing serves"), failed("h1", Cause.CHECK, 0))
    others = (host(name, "not switched") for name in HOSTS[1:])
    return run(*events, *others, event("end", status=4, text="manual action needed on h1"))


def test_where_rolling_back_failed_a_resume_names_the_host_and_what_to_do() -> None:
    with refused("RW0812", "on h1: ", "rackwright status /s/i.py --limit h1"):
        rest_of(lost(None))
    served = lost(OLD)
    assert unrecovered_hosts(served) == ["h1"]
    assert rest_of(served) == Rest("rolling back", ("h1",), {"h1": OLD})


def test_a_host_that_needs_hands_is_not_forgotten_by_the_resume_of_the_others() -> None:
    bare = (event("host", host="h2", state="switching"), host("h2", "nothing serves"), failed("h2", Cause.CHECK, 0))
    switched = (event("phase", name="rollout"), switching("h3"), host("h3", "switched"))
    first = run(*switched, *bare, event("end", status=4, text="manual action needed"))
    again = asked_again(first, rest_of(first))
    assert again["hurt"] == ["h2"]
    back = (
        event("phase", name="rolling back"),
        host("h3", "switched"),
        event("end", status=4, text="manual action needed"),
    )
    with pytest.raises(RackwrightError, match="manual action needed on h2"):
        rest_of(run(*back, **{**again, "hosts": ["h3"]}))
