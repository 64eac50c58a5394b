"""A host out of service and in again: the mark, what is done in which order, what else leaves it alone, how it ends."""

from __future__ import annotations

import base64
from argparse import Namespace
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from rackwright.cli import undrain
from rackwright.cli.drain import new_mark
from rackwright.cli.main import main
from rackwright.cli.rebuild import refuse_drained
from rackwright.cli.undrain import refuse_quarantined
from rackwright.concerns.drained import DRAINED, MARK, NO_BOOT, Drained, SeenDrained, parse_mark
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.group.members import Stage, stage_of
from rackwright.concerns.endpoint.switch.rest_and_return import (
    drain_changes,
    follow_to_rest,
    follower_undrain_changes,
    reboot_changes,
    undrain_changes,
    wait_changes,
)
from rackwright.concerns.endpoint.switch.steps import HostRestart, HostReturn, Proved
from rackwright.exit_codes import ExitCode
from rackwright.messages import RackwrightError
from rackwright.plan.change import Job, Shell, WriteFile
from rackwright.plan.concern import HostReading
from rackwright.record.ending import Result, end_of_drain, end_of_reboot, end_of_undrain
from rackwright.record.quarantine import Quarantined
from rackwright.record.states import RunState
from rackwright.rollout.maintenance.capacity import HostCapacity, too_many_down
from rackwright.rollout.maintenance.host_marks import marks_in
from rackwright.rollout.participants import choose_participants
from rackwright.rollout.resumable_runs import candidates, chosen
from rackwright.rollout.resuming import rest_of
from rackwright.settings.group import Group, GroupMember
from rackwright.settings.host_settings import HostSettings
from tests import texts
from tests.refused import refused
from tests.unit.machines import settings
from tests.unit.test_candidates import run
from tests.unit.test_plan import recorded

MARKED = Drained("GPU 3 is swapped", "ops@desk", "2026-11-23 09:12")


def serving(mark: Drained | None = None, boot: str = "one") -> HostReading:
    """Return a converged host, drained or not."""
    reading = recorded("converged")
    return replace(reading, by_concern={**reading.by_concern, DRAINED.name: SeenDrained(mark, boot)})


def test_the_mark_comes_first_and_the_stop_last() -> None:
    mark, remaining = drain_changes(settings(), serving(), MARKED)
    files = [step for step in mark.steps if isinstance(step, WriteFile)]
    assert [file.path for file in files] == [NO_BOOT, MARK]
    assert parse_mark(str(files[1].content)) == MARKED
    [job] = remaining.steps
    assert isinstance(job, Job)
    assert job.script.index("waiting up to") < job.script.index('systemctl stop "$unit"')


def test_a_return_unmarks_last_and_only_what_is_marked() -> None:
    *starts, last = undrain_changes(settings(), serving(MARKED))
    [proof] = starts[0].steps
    assert isinstance(proof, Proved)
    assert proof.release == serving()[ENDPOINT].endpoints["llm"].proven
    [unmark] = last.steps
    assert isinstance(unmark, Shell)
    assert MARK in unmark.script
    assert NO_BOOT in unmark.script
    assert undrain_changes(settings(), serving()) == []


def test_a_restart_drains_on_the_host_itself_and_is_not_asked_for_twice() -> None:
    [change] = reboot_changes(settings(), serving(boot="one"), 600, None)
    step, back = change.steps
    assert isinstance(step, HostRestart)
    assert isinstance(back, HostReturn)
    assert step.serving
    assert [proof.endpoint for proof in back.proofs] == ["llm"]
    assert step.job.script.index('systemctl stop "$unit"') < step.job.script.index("systemctl reboot")
    assert isinstance(reboot_changes(settings(), serving(boot="one"), 600, "one")[0].steps[0], HostRestart)
    again = reboot_changes(settings(), serving(boot="two"), 600, "one")
    assert [type(step) for change in again for step in change.steps] == [Proved]


def together(rank: int) -> HostSettings:
    """Return the settings of a host that serves with another one."""
    members = (GroupMember("h1", "10.9.0.1"), GroupMember("h2", "10.9.0.2"))
    return settings().in_group(Group("llm", members, rank))


def test_hosts_that_serve_together_rest_after_their_head_and_wait_before_it() -> None:
    assert len(drain_changes(together(0), serving(), MARKED)) == 2, "the head is marked, and rests"
    [marked] = drain_changes(together(1), serving(), MARKED)
    assert "mark" in marked.what
    [stop] = follow_to_rest(serving())
    assert isinstance(stop.steps[0], Job)
    assert "waiting up to" not in stop.steps[0].script, "its head has no clients left"
    assert wait_changes(serving()) == []
    *follow, unmark = follower_undrain_changes(together(1), serving(MARKED))
    assert [stage_of(change) for change in follow] == [Stage.AFTER]
    assert isinstance(unmark.steps[0], Shell)
    assert follower_undrain_changes(together(1), serving()) == []


def test_hosts_that_serve_together_restart_beside_each_other_and_the_head_alone_is_asked() -> None:
    head = reboot_changes(together(0), serving(), 600, None)
    assert [[type(step) for step in change.steps] for change in head] == [[HostRestart], [HostReturn]]
    member = reboot_changes(together(1), serving(), 600, None)
    assert [stage_of(change) for change in member] == [Stage.BEFORE, Stage.BACK, Stage.AFTER]
    assert not any(isinstance(step, Proved) for change in member for step in change.steps)
    [back] = member[1].steps
    assert isinstance(back, HostReturn)
    assert back.proofs == ()
    again = reboot_changes(together(1), serving(boot="two"), 600, "one")
    assert [stage_of(change) for change in again] == [Stage.AFTER], "not restarted a second time"


def test_no_run_switches_an_endpoint_of_a_drained_host() -> None:
    other = settings(engine={"max_batch_size": 12})
    assert ENDPOINT.pending(other, serving()) != []
    assert ENDPOINT.pending(other, serving(MARKED)) == []


@given(some.text(), some.text(), some.text())
def test_any_mark_is_a_mark_and_one_line_a_value(reason: str, who: str, since: str) -> None:
    text = Drained(reason, who, since).text
    assert text.count("\n") == 3
    found = parse_mark(text)
    assert found is not None
    assert str(found).isprintable()


@pytest.mark.parametrize("text", ["", "\x00", "reason", "reason=\x1b[2J"])
def test_a_broken_mark_counts(text: str) -> None:
    found = marks_in([f"drained={base64.b64encode(text.encode()).decode()}"]).drained
    assert found is not None
    assert found.who == "an unknown user"
    assert marks_in([""]).drained is None


def test_a_reason_must_say_something() -> None:
    now = datetime(2026, 11, 23, 9, 12, tzinfo=UTC)
    assert new_mark(" a\n b ", now).reason == "a b"
    with pytest.raises(RackwrightError, match="RW1030"):
        new_mark("  ", now)


# -- who stays


def places(*serve: bool, most: str = "1") -> dict[str, HostCapacity]:
    return {f"h{number}": HostCapacity(("b200",), one, most) for number, one in enumerate(serve)}


def test_no_more_hosts_leave_than_the_limit_says_text() -> None:
    assert too_many_down(places(True, True, True), ["h0"]) == []
    assert "b200: 2 hosts more would be down; rollout.max_unavailable is 1" in too_many_down(
        places(True, True, True), ["h0", "h1"]
    )
    [text] = too_many_down(places(True, False, True), ["h0"])
    assert "beside h1, which does not serve now" in text
    assert too_many_down(places(True, False, True), ["h1"]) == [], "it takes nothing away"
    assert too_many_down(places(True, True, True, True, most="50%"), ["h0", "h1"]) == []


@given(some.lists(some.booleans(), min_size=1, max_size=8), some.integers(1, 8), some.data())
def test_capacity_never_sinks_below_the_limit_unsaid(serve: list[bool], most: int, data: some.DataObject) -> None:
    hosts = places(*serve, most=str(most))
    leaving = data.draw(some.lists(some.sampled_from(sorted(hosts)), unique=True))
    down = sum(not host.serves or name in leaving for name, host in hosts.items())
    takes = any(hosts[name].serves for name in leaving)
    assert bool(too_many_down(hosts, leaving)) == (takes and down > most)


def test_a_rollout_leaves_drained_hosts_aside_and_says_whose_they_are(tmp_path: object) -> None:
    from pathlib import Path  # noqa: PLC0415

    found = choose_participants(Path("i.py"), ["h1", "h2"], Path(), {}, drained={"h2": MARKED, "h9": MARKED})
    assert found.hosts == ("h1",)
    [reason] = found.reasons
    assert reason.startswith(texts.SKIPPED.format(host="h2", why=MARKED))
    assert reason.endswith("rackwright undrain INVENTORY --limit h2")
    assert [one for one in ("2026-11-23 09:12 UTC", "ops@desk", "GPU 3 is swapped") if one not in str(MARKED)] == []
    assert found.events == [{"host": "h2", "state": RunState.DRAINED, "text": str(MARKED)}]
    with refused("RW0840") as caught:
        choose_participants(Path("i.py"), ["h2"], Path(), {}, drained={"h2": MARKED})
    assert " --limit h2" in str(caught.value)


def test_a_drained_host_is_not_rebuilt() -> None:
    refuse_drained("h1", {"h2": MARKED})
    with refused("RW1032", "h1 ", "rackwright undrain INVENTORY --limit h1"):
        refuse_drained("h1", {"h1": MARKED})


def test_a_host_in_quarantine_gets_no_clients_before_an_operator_releases_it() -> None:
    broken = {"h2": Quarantined("2026-11-28 03:14:49 UTC", "GPU 3: memory"), "h9": Quarantined("then", "RMA")}
    refuse_quarantined(["h1"], broken)
    with refused("RW0836", "h2 is quarantined since", "GPU 3: memory", "--release --limit h2, then") as caught:
        refuse_quarantined(["h1", "h2"], broken)
    assert "h9" not in str(caught.value)


def test_undrain_looks_at_the_quarantine_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = {"h2": Quarantined("then", "RMA")}
    found = {"chosen": lambda _: ([], [SimpleNamespace(name="h2")]), "refuse_halves": lambda *_: None}
    for name, stands_in in {**found, "marks_of": lambda _: {}, "quarantined_by": lambda *_: listed}.items():
        monkeypatch.setattr(undrain, name, stands_in)
    with refused("RW0836", "h2"):
        undrain.run(Namespace(inventory="i.py", yes=True))


# -- what is left of it


def host(name: str, state: str, **fields: str) -> dict[str, object]:
    return {"kind": "host", "host": name, "state": state, **fields}


def test_a_cut_reboot_goes_on_with_the_host_that_was_down_and_knows_its_boot() -> None:
    cut = run("cut", "reboot", host("h1", "switched", boot="a"), host("h2", "switching", boot="b"))
    remaining = rest_of(cut)
    assert (remaining.kind, remaining.hosts, remaining.first) == ("reboot", ("h2", "h3"), ("h2",))
    assert cut.boots == {"h1": "a", "h2": "b"}


def test_a_reboot_takes_over_nothing_of_a_rollout_nor_the_other_way() -> None:
    roll = run("roll", "rollout", host("h1", "switched"))
    reboot = run("reboot", "reboot", *(host(name, "switched") for name in ("h1", "h2", "h3")))
    assert [one.record.id for one in candidates([roll, reboot])] == ["roll"]
    cut = run("cut", "reboot", host("h1", "switched"))
    assert {one.record.id for one in candidates([cut, roll])} == {"cut", "roll"}
    back = run("undrain", "undrain", *(host(name, "done") for name in ("h1", "h2", "h3")))
    assert candidates([run("drain", "drain", host("h1", "done")), back]) == []


def test_what_was_drained_at_the_time_is_no_doubt_about_a_resume() -> None:
    skipped = run("skipped", "rollout", host("h1", "switched"), host("h2", "switched"), host("h3", "drained"))
    cut = run("cut", "reboot", host("h1", "switched"))
    assert chosen([skipped, cut]).id == "cut"
    assert chosen([skipped]).id == "skipped"


# -- how it ends


@pytest.mark.parametrize(
    ("states", "status", "code"),
    [
        ({"h1": RunState.SWITCHED, "h2": RunState.SWITCHED}, 0, ExitCode.DONE),
        ({"h1": RunState.SWITCHED, "h2": RunState.NOTHING_SERVES}, 1, ExitCode.MANUAL_ACTION),
        ({"h1": RunState.SWITCHED, "h2": RunState.SWITCHING}, 1, ExitCode.MANUAL_ACTION),
        ({"h1": RunState.FAILED, "h2": RunState.NOT_SWITCHED}, 1, ExitCode.ERROR),
        ({"h1": RunState.SWITCHED, "h2": RunState.FAILED}, 1, ExitCode.MIXED),
        ({"h1": RunState.SWITCHED, "h2": RunState.UNREACHABLE}, 1, ExitCode.MIXED),
        ({"h1": RunState.SWITCHED}, 0, ExitCode.MIXED),
        ({}, 0, ExitCode.ERROR),
    ],
)
def test_the_end_of_a_reboot(states: dict[str, RunState], status: int, code: int) -> None:
    found, text = end_of_reboot(["h1", "h2"], status, Result(states))
    assert found == code
    assert code == ExitCode.DONE or "next: " in text


def test_the_end_of_a_drain_names_the_way_back() -> None:
    done = end_of_drain(["h1"], 0, Result({"h1": RunState.DONE}), "rackwright undrain i.py --limit h1")
    assert done[0] == ExitCode.DONE
    assert done[1].endswith("rackwright undrain i.py --limit h1")
    bad = end_of_drain(["h1"], 1, Result({"h1": RunState.NOT_STAGED}), "rackwright undrain i.py --limit h1")
    assert bad[0] == ExitCode.ERROR
    assert bad[1].startswith("RW0620: h1 ")


def test_a_host_that_was_not_drained_is_not_said_to_serve_again_text() -> None:
    both = end_of_undrain(["h1", "h2"], 0, Result({"h1": RunState.DONE, "h2": RunState.UNCHANGED}))
    assert both == (
        0,
        "done: h1: no longer drained; what served there before serves again; h2: was not drained, so nothing was done "
        "there",
    )
    none = end_of_undrain(["h2"], 0, Result({"h2": RunState.UNCHANGED}))
    assert none == (0, "done: h2: was not drained, so nothing was done there")


def test_an_inventory_among_the_hosts_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lab.py").touch()
    words = ["drain", "--limit", str(tmp_path / "lab.py"), "--reason", "x"]
    assert main(words) == 1
    assert "RW1079" in capsys.readouterr().err
