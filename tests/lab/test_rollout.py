"""A rollout on three hosts that serve: a good change goes through in waves, bad ones stop early and go back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rackwright.fleet.view.timeline import WAITING, wave_name
from rackwright.fleet.view.timeline_events import story_of
from rackwright.runs.progress import LOADING, PROVING
from rackwright_lab.lab import Lab
from tests.lab.conftest import BIN, Site
from tests.lab.fleets import assert_all_serve, begin, proven, rollout, switches, three_hosts
from tests.lab.running import Running

pytestmark = pytest.mark.lab

DROPS_TOOLS, REFUSED = 3, 4


@pytest.fixture(scope="module")
def fleet(worker_lab: Lab) -> Iterator[Site]:
    with three_hosts(worker_lab) as site:
        yield site


@pytest.fixture(autouse=True)
def _settled(fleet: Site, request: pytest.FixtureRequest) -> None:
    begin(fleet, request)


def test_a_good_change_goes_through_in_order(fleet: Site, tmp_path: Path) -> None:
    before = proven(fleet.lab.hosts)
    told = {
        event: [{"command": ["tee", "-a", str(tmp_path / event)]}] for event in ("plan", "wave", "switch", "finish")
    }
    run = rollout(fleet, "--data", f"rollout.hooks={json.dumps(told)}", stream_interval=2)
    assert run.status == 0, run.output
    assert "done: 3 switched" in run.output
    assert switches(run) == [host.name for host in fleet.lab.hosts]
    assert len(re.findall("proved: a tool call", run.output)) == 3
    assert len(re.findall("proved: speed: .* ms a token .before: ", run.output)) == 3
    assert re.findall(r"--> Wave (\d) is done", run.output) == ["0", "1"]
    after = proven(fleet.lab.hosts)
    assert not set(before) & set(after)
    assert_all_serve(fleet, after)
    hooked = {path.name: objects(path.read_text()) for path in tmp_path.iterdir()}
    assert [one["wave"] for one in hooked["wave"]] == [0, 1, 2]
    assert [one["host"] for one in hooked["switch"]] == [host.name for host in fleet.lab.hosts]
    assert [one["states"] for one in hooked["plan"]] == [dict.fromkeys(host.name for host in fleet.lab.hosts)]
    assert [one["status"] for one in hooked["finish"]] == [0]


def objects(text: str) -> list[dict[str, Any]]:
    """JSON objects one after the other, without anything between them."""
    found, decoder = [], json.JSONDecoder()
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:]
    return found


def test_a_bad_change_that_shows_in_the_first_wave_takes_the_canary_back(fleet: Site) -> None:
    canary, second, third = fleet.lab.hosts
    before = proven(fleet.lab.hosts)
    for host in fleet.lab.hosts:
        host.set_engine_faults()
    second.set_engine_faults({"fault": "drop_tool_calls", "when": {"option.stream_interval": DROPS_TOOLS}})
    run = rollout(fleet, stream_interval=DROPS_TOOLS)
    assert run.status == 3, run.output
    assert "refused: a tool call" in run.output
    assert f"the release is at fault: {canary.name} go back as well" in run.output
    assert third.name not in switches(run)
    assert_all_serve(fleet, before)


def test_drafts_that_are_never_accepted_go_back(fleet: Site) -> None:
    canary, before = fleet.lab.hosts[0], proven(fleet.lab.hosts)
    canary.set_engine_faults({"fault": "never_accepts", "when": {"option.stream_interval": REFUSED}})
    run = rollout(fleet, stream_interval=REFUSED)
    canary.set_engine_faults()
    assert run.status == 3, run.output
    assert "proved: accepted drafts" not in run.output
    assert re.search(r"refused: accepted drafts: 0 draft tokens accepted, 1.00 tokens a step", run.output), run.output
    assert set(switches(run)) == {canary.name}
    assert_all_serve(fleet, before)


def test_a_hang_is_seen_at_the_end_of_a_bake(fleet: Site) -> None:
    """Its unit is active, has not restarted, and /health answers 200 all the while."""
    canary, before = fleet.lab.hosts[0], proven(fleet.lab.hosts)
    words = ("-y", "--bake", "12", "--wave", "1", "--data", "engine=" + json.dumps({"stream_interval": REFUSED}))
    bad = Running(fleet, str(BIN / "rackwright"), "rollout", "inventory/lab.py", *words)
    try:
        assert bad.until(f"is done: watching {canary.name}") is not None, bad.output
        assert bad.output.count("proved: engine steps") == 1
        canary.set_engine_faults(
            {"fault": "hang_after_seconds", "value": 0, "when": {"option.stream_interval": REFUSED}}
        )
        assert bad.until("refused: engine steps: no token in 60 s") is not None, bad.output
        assert bad.end().status == 3, bad.output
    finally:
        bad.stop()
        canary.set_engine_faults()
    assert set(switches(bad.end())) == {canary.name}
    assert "proved: still serving: unit, restarts, release, health: active 0" in bad.output
    assert_all_serve(fleet, before)


def test_back_by_hand_without_a_download(fleet: Site) -> None:
    run = rollout(fleet, stream_interval=9)
    assert run.status == 0, run.output
    newer = proven(fleet.lab.hosts)
    run = fleet.rackwright("rollback", "inventory/lab.py", "-y")
    assert run.status == 0, run.output
    assert "done: 3 went back" in run.output
    older = proven(fleet.lab.hosts)
    assert not set(newer) & set(older)
    assert_all_serve(fleet, older)
    again = fleet.rackwright("rollback", "inventory/lab.py", "-y")
    assert again.status == 1
    assert "an earlier proven release is not on the host" in again.output
    assert_all_serve(fleet, older)


def test_every_run_has_its_record(fleet: Site) -> None:
    run = fleet.rackwright("runs", "--json")
    assert run.status == 0
    found = json.loads(run.output)
    assert found[0]["what"] == "deploy inventory/lab.py"
    assert set(found[0]["hosts"].values()) == {"switched"}
    assert (found[-1]["what"], found[-1]["status"]) == ("rollback inventory/lab.py", 1)
    shown = fleet.rackwright("runs", "last")
    assert "an earlier proven release is not on the host" in shown.output


def test_a_record_tells_what_a_view_and_a_report_need(fleet: Site) -> None:
    records = json.loads(fleet.rackwright("runs", "--json").output)
    name = next(one["run"] for one in records if one["what"] == "rollout inventory/lab.py" and one["status"] == 0)
    story = story_of(json.loads(fleet.rackwright("runs", name, "--json").output)["events"])
    canary = story.hosts[fleet.lab.hosts[0].name]
    assert [wave_name(number) for number in range(3)] == [mark for mark, _ in story.marks]
    assert {limit.most for limit in story.limits.values()} == {1}
    assert {WAITING, LOADING, PROVING} <= {span.phase for span in canary.spans}
    assert canary.rows["speed"].figure_before is not None
    assert any("stream_interval" in diff for diff in canary.diffs)
    path = Path(fleet.rackwright("report", name).output.strip())
    assert all(host.name in path.read_text() for host in fleet.lab.hosts)


def test_what_differs_in_the_unit_alone_is_adopted_when_asked(fleet: Site) -> None:
    first, *others = (host.name for host in fleet.lab.hosts)
    before = proven(fleet.lab.hosts)
    longer = ("--data", "stop_timeout=25")
    run = rollout(fleet, *longer, stream_interval=2)
    assert run.status == 0, run.output
    assert "done: 0 switched, 3 unchanged" in run.output
    run = rollout(fleet, *longer, "--adopt", "--limit", first, stream_interval=2)
    assert run.status == 0, run.output
    assert "proved: a tool call" in run.output
    assert "done: 1 switched, 0 unchanged" in run.output
    told = fleet.rackwright("status", "inventory/lab.py").output
    assert f"llm: release {proven(fleet.lab.hosts)[1]} on 2 hosts ({', '.join(others)})" in told
    assert proven(fleet.lab.hosts)[1:] == before[1:]


def test_killed_in_a_wave_and_resumed(fleet: Site) -> None:
    canary, second, third = fleet.lab.hosts
    before = proven(fleet.lab.hosts)
    words = ("-y", "--bake", "1", "--wave", "1", "--data", "engine=" + json.dumps({"stream_interval": 11}))
    running_rollout = Running(fleet, str(BIN / "rackwright"), "rollout", "inventory/lab.py", *words)
    try:
        assert running_rollout.until(f"[{second.name}]   switching to release") is not None, running_rollout.output
        early = fleet.rackwright("resume", "-y")
        assert early.status == 1
        assert "is still under way" in early.output
    finally:
        running_rollout.stop()
    assert "was cut; next: rackwright resume" in fleet.rackwright("runs").output
    run = fleet.rackwright("resume", "-y")
    assert run.status == 0, run.output
    assert "done: 2 switched" in run.output
    began = re.findall(r"^.*\[(\S+)\] .*switch endpoint llm to release", run.output, re.MULTILINE)
    assert canary.name not in began, "what has ended well is left alone"
    after = proven(fleet.lab.hosts)
    assert not set(before) & set(after)
    assert_all_serve(fleet, after)
    again = fleet.rackwright("resume", "-y")
    assert again.status == 1
    assert "nothing is left of run" in again.output
    assert third.name in fleet.rackwright("runs", "last").output


def test_killed_while_it_takes_a_release_back_and_resumed(fleet: Site) -> None:
    canary, second, _third = fleet.lab.hosts
    before = proven(fleet.lab.hosts)
    second.set_engine_faults({"fault": "drop_tool_calls", "when": {"option.stream_interval": DROPS_TOOLS}})
    words = ("-y", "--bake", "1", "--wave", "1", "--data", "engine=" + json.dumps({"stream_interval": DROPS_TOOLS}))
    bad = Running(fleet, str(BIN / "rackwright"), "rollout", "inventory/lab.py", *words)
    try:
        assert bad.until(f"the release is at fault: {canary.name} go back as well") is not None, bad.output
    finally:
        bad.stop()
        second.set_engine_faults()
    assert proven([canary]) != before[:1]
    run = fleet.rackwright("resume", "-y")
    assert run.status == 3, run.output
    assert f"the change failed on {second.name} and was rolled back" in run.output
    assert_all_serve(fleet, before)
    again = fleet.rackwright("resume", "-y")
    assert again.status == 1
    assert "nothing is left" in again.output


def test_a_dark_host_is_skipped_picked_up_and_quarantined_when_it_goes_dark_again(fleet: Site) -> None:
    *others, dark = fleet.lab.hosts
    before = proven(fleet.lab.hosts)
    dark.cut_network()
    try:
        refused = rollout(fleet, "--skip-offline", "10%", stream_interval=12)
        assert refused.status == 1, refused.output
        assert f"allows 0 of 3: {dark.name}; nothing was done" in refused.output
        assert proven(others) == before[:2]
        run = rollout(fleet, "--skip-offline", "34%", stream_interval=12)
    finally:
        dark.restore_network()
    assert run.status == 0, run.output
    assert f"{dark.name} is skipped" in run.output
    assert "done: 2 switched" in run.output
    assert proven([dark]) == before[2:]
    resumed = Running(fleet, str(BIN / "rackwright"), "resume", "-y")
    try:
        assert resumed.until(f"[{dark.name}]   switching to release") is not None, resumed.output
        dark.cut_network()
        lost = resumed.end()
    finally:
        resumed.stop()
        dark.restore_network()
    assert lost.status == 3, lost.output
    assert f"{dark.name} is quarantined (the connection)" in lost.output
    listed = fleet.rackwright("status", "inventory/lab.py", "--only", "failed@last")
    assert "(quarantined)" in listed.output
    assert others[0].name not in listed.output
    others_only = rollout(fleet, stream_interval=12)
    assert others_only.status == 0, others_only.output
    assert f"{dark.name} is left aside: quarantined since" in others_only.output
    assert "done: 0 switched, 2 unchanged" in others_only.output
    again = fleet.rackwright("resume", "-y")
    assert again.status == 0, again.output
    assert f"{dark.name} is well again, and no longer quarantined" in again.output
    after = proven(fleet.lab.hosts)
    assert not set(before) & set(after)
    assert_all_serve(fleet, after)
    assert "no host is quarantined" in fleet.rackwright("quarantine", "inventory/lab.py").output
