"""What hosts keep of a run, and the run that it is again on another machine."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.messages import RackwrightError
from rackwright.processes import this_process
from rackwright.record.journal import Event
from rackwright.record.on_hosts.merging import merged
from rackwright.record.on_hosts.slices import MOST, Slice, parse_slice, slice_of
from rackwright.record.record import BACKWARD, BY_HAND, FORWARD, Record, record_of
from rackwright.rollout.resuming import rest_of

RUN = "20260131-235959-rollout"
SITE = Path("/site")
HOSTS = [f"h{number}" for number in range(6)]
GONE = {**this_process(), "started": -1}
STATES = ("switching", "switched", "unchanged", "rolled back", "failed after its switch", "not switched")
TIME = "2026-01-31T23:59:59.000+00:00"


def event(kind: str, **fields: Any) -> Event:
    return {"time": TIME, "kind": kind, **fields}


def begin(**fields: Any) -> Event:
    usual = {
        "who": "ann@laptop",
        "what": "rollout inventory/b200.py",
        "purpose": FORWARD,
        "inventory": "/site/inventory/b200.py",
        "deploy": "/site/deploy.py",
        "hosts": HOSTS,
        "process": GONE,
        "data": {"rollout.wave": "1"},
    }
    return event("begin", **{**usual, **fields})


def slices(events: list[Event], hosts: list[str]) -> dict[str, Slice]:
    found = {host: parse_slice(slice_of(RUN, SITE, events, host) or "", host) for host in hosts}
    return {host: one for host, one in found.items() if one is not None}


def adopted(slices: dict[str, Slice]) -> Record:
    return record_of(RUN, merged(slices)[RUN])


hosts = st.sampled_from(HOSTS)
happened = st.one_of(
    st.builds(
        lambda name, state: event("host", host=name, state=state, text="secret words"), hosts, st.sampled_from(STATES)
    ),
    st.builds(lambda name: event("host", host=name, state="switching", before={"llm": f"old-{name}"}), hosts),
    st.builds(lambda name: event("failure", host=name, cause="check", check="speed", wave=1, fault="host"), hosts),
    st.builds(lambda name: event("target", host=name, to={"llm": "older"}), hosts),
    st.builds(lambda name: event("progress", host=name, text="12 %"), hosts),
)
phase = st.lists(happened, max_size=12)


@st.composite
def runs(draw: st.DrawFn) -> list[Event]:
    found = [begin(), event("phase", name=FORWARD), *draw(phase)]
    return [*found, event("phase", name=BACKWARD), *draw(phase)] if draw(st.booleans()) else found


@given(runs(), st.randoms(use_true_random=False))
def test_the_slices_of_all_hosts_are_the_run_again_in_any_order(events: list[Event], chance: random.Random) -> None:
    order = HOSTS[:]
    chance.shuffle(order)
    found, whole = adopted(slices(events, order)), record_of(RUN, events)
    assert (found.states, found.before, found.targets) == (whole.states, whole.before, whole.targets)
    assert list(found.phases) == list(whole.phases)
    assert found.judgement == whole.judgement
    assert found.hosts == HOSTS
    assert _rest(found) == _rest(whole)


def _rest(record: Record) -> object:
    try:
        remaining = rest_of(record)
    except RackwrightError as error:
        return error.code
    return (remaining.kind, set(remaining.hosts), remaining.releases, set(remaining.first), set(remaining.last))


@given(runs(), st.sets(hosts, min_size=1))
def test_of_a_host_that_is_missing_nothing_is_known_and_of_the_others_all(
    events: list[Event], present: set[str]
) -> None:
    found, whole = adopted(slices(events, sorted(present))), record_of(RUN, events)
    assert found.states == {host: state for host, state in whole.states.items() if host in present}
    assert found.before == {host: before for host, before in whole.before.items() if host in present}
    assert found.hosts == HOSTS, "what is left is of the run's hosts, and not of those that were read"


@given(runs(), hosts, st.data())
def test_a_torn_slice_says_less_and_nothing_else(events: list[Event], host: str, data: st.DataObject) -> None:
    text = slice_of(RUN, SITE, events, host) or ""
    cut = parse_slice(text[: data.draw(st.integers(0, len(text)))], host)
    whole = parse_slice(text, host)
    assert whole is not None
    assert cut is None or (cut.begin == whole.begin and cut.events == whole.events[: len(cut.events)])


@given(st.text() | st.binary().map(lambda raw: raw.decode(errors="replace")), hosts)
def test_whatever_a_host_says_is_a_slice_or_none(text: str, host: str) -> None:
    assert parse_slice(text, host) is None


def test_a_host_speaks_of_itself_alone_and_of_no_path_as_a_name() -> None:
    events = [begin(), event("phase", name=FORWARD), event("host", host="h1", state="switched")]
    text = slice_of(RUN, SITE, events, "h1") or ""
    found = parse_slice(text, "h2")
    assert found is not None
    assert [one["kind"] for one in found.events] == ["phase"]
    assert parse_slice(text.replace(RUN, "../../etc/20260131-235959-x"), "h1") is None
    assert parse_slice(text.replace('"switched"', '{"a": 1}'), "h1") is not None
    assert parse_slice("[" * 100_000, "h1") is None


def test_a_slice_has_no_text_of_others_and_names_files_from_the_site() -> None:
    events = [begin(), event("host", host="h1", state="rolled back", text="sk-secret", diff="- a", code="RW0901")]
    text = slice_of(RUN, SITE, events, "h1") or ""
    assert "secret" not in text
    first = json.loads(text.split("\n")[0])
    assert (first["inventory"], first["deploy"]) == ("inventory/b200.py", "deploy.py")


def test_one_that_would_be_too_large_is_empty_and_other_kinds_leave_the_last_alone() -> None:
    assert slice_of(RUN, SITE, [begin(hosts=["x" * 100] * (MOST // 100))], "h1") == ""
    assert slice_of(RUN, SITE, [begin(purpose="drain", what="drain")], "h1") is None
    assert slice_of(RUN, SITE, [], "h1") is None
    assert slice_of(RUN, SITE, [begin(purpose="deploy", plain=True)], "h1")
    assert slice_of(RUN, SITE, [begin(purpose=BY_HAND, to="last")], "h1")


def test_hosts_that_disagree_on_how_a_run_began_are_named() -> None:
    one = slices([begin()], ["h1", "h2"])
    other = slices([begin(data={"image": "evil"})], ["h3"])
    with pytest.raises(RackwrightError, match=r"h1 and h3 .* 20260131-235959-rollout ") as error:
        merged({**one, **other})
    assert error.value.code == "RW0660"


def test_each_run_that_hosts_know_of_is_one_of_its_own() -> None:
    later = "20260201-000000-deploy"
    old = slices([begin()], ["h1"])
    new = parse_slice(slice_of(later, SITE, [begin(plain=True)], "h2") or "", "h2")
    assert new is not None
    assert list(merged({"h2": new, **old})) == [RUN, later]
