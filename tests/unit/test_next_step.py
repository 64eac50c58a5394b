"""`next:` is never wrong: what a run says is what its resume, or the verb that it names, then does."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.adapter.terminal import _Harmless, rebuilt
from rackwright.exit_codes import ExitCode
from rackwright.messages import RackwrightError
from rackwright.record.cause import Cause
from rackwright.record.ending import end_of_rollout, result
from rackwright.record.journal import Event
from rackwright.record.record import FORWARD, Record, record_of
from rackwright.record.states import RunState
from rackwright.rollout.deploy_record import sentence
from rackwright.rollout.forward_and_back import releases_before
from rackwright.rollout.resuming import rest_of
from tests.unit.test_resuming import GONE, HOSTS, begin, event, host, run

NEEDS_HANDS = "RW0812"
"""What a resume says of hosts that must be repaired first: which, and how to look at them."""
LAST = st.sampled_from(
    [
        (RunState.SWITCHED, None),
        (RunState.UNCHANGED, None),
        (RunState.ROLLED_BACK, Cause.CHECK),
        (RunState.NOTHING_SERVES, Cause.CHECK),
        (RunState.AFTERWARDS, Cause.GPU),
        (RunState.FAILED, Cause.DISK),
        (RunState.NOT_SWITCHED, None),
        (RunState.NOT_STAGED, None),
        (RunState.UNREACHABLE, None),
        (RunState.SWITCHING, None),
    ]
)
STORY = st.lists(st.tuples(LAST, st.booleans(), st.integers(0, 2)), min_size=1, max_size=len(HOSTS))


def rollout_events(story: list[tuple[tuple[RunState, Cause | None], bool, int]]) -> Iterator[Event]:
    """Make the events of a rollout whose hosts end so. served: whether a release was proven before."""
    yield event("phase", name=FORWARD)
    for name, ((state, cause), served, wave) in zip(HOSTS, story, strict=False):
        if state not in (RunState.UNCHANGED, RunState.NOT_SWITCHED, RunState.NOT_STAGED, RunState.UNREACHABLE):
            yield event("host", host=name, state="switching", before={"llm": "old"} if served else {})
        yield host(name, state)
        if cause:
            yield event("failure", host=name, cause=cause, check="speed", wave=wave)


def resumed(record: Record) -> str:
    """Return the hosts that a resume takes on, or the code of its refusal."""
    try:
        return " ".join(rest_of(record).hosts)
    except RackwrightError as error:
        return error.code


@pytest.mark.parametrize("state", [RunState.SWITCHED, RunState.NOT_CONVERGED])
def test_a_host_that_committed_and_did_not_converge_has_the_change(state: RunState) -> None:
    """As one whose firewall rules another tool takes away after its switch."""
    events = [event("phase", name=FORWARD), host(HOSTS[0], state), host(HOSTS[1], RunState.FAILED)]
    events.append(event("failure", host=HOSTS[1], cause=Cause.DOCKER, check="what a start needs", wave=1))
    status, _ = end_of_rollout("/s/i.py", HOSTS[:2], 1, result(events, FORWARD), None)
    assert status is ExitCode.MIXED


@settings(max_examples=400, deadline=None)
@given(STORY)
def test_where_a_rollout_says_resume_there_is_something_to_resume(story: list[Any]) -> None:
    events = list(rollout_events(story))
    names = HOSTS[: len(story)]
    forward = result(events, FORWARD)
    leaving = releases_before(forward, {}) if forward.judgement.is_the_releases else {}
    status, text = end_of_rollout("/s/i.py", names, 1, forward, None, leaving)
    record = record_of("r", [begin(hosts=names), *events, event("end", status=status, text=text)])
    if status != 4 and "rackwright resume" not in text:
        return
    answer = resumed(record)
    assert answer
    assert answer == NEEDS_HANDS or not answer.startswith("RW"), (text, answer)


@pytest.mark.parametrize("mistaken", [True, False])
def test_what_only_other_settings_help_is_not_resumed_text(mistaken: bool) -> None:
    mistakes = [event("settings", host="h1", text="pull x")] if mistaken else []
    events = [event("phase", name=FORWARD), *mistakes, host("h1", "failed before its switch")]
    _, text = end_of_rollout("/s/i.py", ["h1"], 1, result(events, FORWARD), None)
    plain = sentence(run(*mistakes, host("h1", "failed before its switch"), plain=True, process=GONE), 1, executed=True)
    if mistaken:
        assert text.endswith("next: fix the settings as the errors above say, then rackwright rollout /s/i.py")
        assert plain.endswith("next: fix the settings as the errors above say, then the same command again")
    else:
        assert text.endswith("next: rackwright resume")
        assert plain.endswith("next: rackwright resume r")


def ended(*events: Event, state: str = "failed before its switch") -> str:
    """Return the sentence of a plain deploy on two hosts that ended so."""
    hosts = [host("h1", state), host("h2", state)]
    return sentence(run(*events, *hosts, plain=True, process=GONE), 1, executed=True)


def test_what_its_refusal_says_helps_stands_in_place_of_a_resume_text() -> None:
    fix = "give the host a profile that fits it, as b200 (rackwright profiles list --gpu B200)"
    refusals = [event("settings", host=name, text="RW3101: not this machine", fix=fix) for name in ("h1", "h2")]
    assert ended(*refusals).endswith(f"; next: {fix}, then the same command again")
    events = [event("phase", name=FORWARD), *refusals, host("h1", "failed before its switch")]
    _, text = end_of_rollout("/s/i.py", ["h1"], 1, result(events, FORWARD), None)
    assert text.endswith(f"; next: {fix}, then rackwright rollout /s/i.py")


def test_hosts_that_need_different_things_are_named_by_their_errors_text() -> None:
    refusals = [event("settings", host=name, text="x", fix=f"fix {name}") for name in ("h1", "h2")]
    assert ended(*refusals).endswith("; next: fix the settings as the errors above say, then the same command again")


def test_a_host_that_preflight_stops_is_repaired_before_a_resume_text() -> None:
    stops = [event("error", host=name, text="RW3101: this host cannot run its endpoints") for name in ("h1", "h2")]
    assert ended(*stops).endswith("; next: fix what the errors above say, then rackwright resume r")
    taken = "RW2405: rackwright-llm.service was made by hand, and would be replaced; next: systemctl cat rackwright-llm"
    assert ended(event("error", host="h2", text=taken)).endswith("above say, then rackwright resume r")
    for text in ("RW2110: install docker.io: ended with status 1", "RW0704: no lease; next: the same command again"):
        assert ended(event("error", host="h1", text=text)).endswith("; next: rackwright resume r")


def test_hosts_without_a_connection_are_reached_before_a_resume_text() -> None:
    assert ended(state="unreachable").endswith("; next: make SSH reach them, then rackwright resume r")


def test_a_reinstalled_host_is_rebuilt_and_its_key_is_not_thrown_away_text() -> None:
    def shown(text: str) -> str | None:
        record = logging.LogRecord("pyinfra", logging.WARNING, "", 0, text, (), None)
        return record.getMessage() if _Harmless().filter(record) else None

    assert shown("    ssh-keygen -R gpu01") is None
    assert "rackwright rebuild INVENTORY --limit HOST" in str(
        shown("If this is expected, you can remove the bad key using:")
    )
    assert (
        shown("WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!") == "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!"
    )
    error = "SSH host key error (Host key for 192.0.2.1 does not match.)"
    page = "docs/how-to/host-keys.md"
    assert rebuilt(error, "gpu01") == (
        f"; next, if it was reinstalled: rackwright rebuild INVENTORY --limit gpu01; see {page}"
    )
    assert page in str(shown("If this is expected, you can remove the bad key using:"))
    assert (Path(__file__).parents[2] / page).exists()
    assert rebuilt("timed out", "gpu01") == ""
