"""Three hosts in turn, in a plain deploy and in rollouts: good changes go through, bad ones stop early."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rackwright.record.progress import LOADING, PROVING
from rackwright.record.view.timeline import WAITING, wave_name
from rackwright.record.view.timeline_events import timeline_of
from rackwright_lab.hosts.host import Host
from tests import texts
from tests.lab.calm import settle
from tests.lab.conftest import BIN, Run, Site
from tests.lab.fleet.watching import assert_nobody_noticed, loading
from tests.lab.fleets import assert_all_serve, begin, engine_of, proven, rollout, switches
from tests.lab.products import in_proof
from tests.lab.running import Running
from tests.refused import refusal, row_of

pytestmark = pytest.mark.lab

DROPS_TOOLS, REFUSED = 3, 7
UNIT = "rackwright-llm"


@pytest.fixture(autouse=True)
def _settled(fleet: Site) -> None:
    settle(fleet.lab)


@pytest.fixture
def served(fleet: Site, request: pytest.FixtureRequest) -> Site:
    """All three serve."""
    begin(fleet, request)
    return fleet


# -- the turns of a plain deploy


def deploy(site: Site, *options: str, **data: Any) -> Run:
    given = [argument for key, value in data.items() for argument in ("--data", f"{key}={json.dumps(value)}")]
    return site.deploy("-y", *given, *options)


def times(host: Host, message: str) -> list[float]:
    """When systemd said something of the endpoint: seconds since the epoch."""
    journal = host.run(f"journalctl --sync; journalctl -u {UNIT} --no-pager -o short-unix").stdout
    return [float(row.split(" ")[0]) for row in journal.splitlines() if re.search(rf": {message} ", row)]


def starts(host: Host) -> list[float]:
    return times(host, "Starting")


def ready(host: Host) -> list[float]:
    return times(host, "Started")


def logins(host: Host) -> int:
    """Return the number of SSH logins since the boot."""
    journal = host.run("journalctl --sync; journalctl --boot --unit ssh --no-pager --output cat").stdout
    return journal.count("Accepted publickey")


@in_proof("waves are pure, and a bad change stops at the canary on hosts")
def test_the_first_host_of_the_inventory_goes_first_and_the_rest_together(fleet: Site) -> None:
    for host in fleet.lab.hosts:
        host.reset()
        host.set_engine_faults({"fault": "load_seconds", "value": 8})
    run = deploy(fleet)
    assert run.status == 0, run.output
    canary, *others = fleet.lab.hosts
    assert max(ready(canary)) < min(starts(host)[-1] for host in others), "no host starts before the canary is ready"
    assert max(starts(host)[-1] for host in others) < min(ready(host)[-1] for host in others), "the rest load together"
    assert len(re.findall("proved: a chat answer", run.output)) == 3


@in_proof("tests/unit/test_waves.py has order and limits of any fleet")
def test_a_limit_leaves_the_others_and_those_switch_one_at_a_time_in_inventory_order(served: Site) -> None:
    *others, last = served.lab.hosts
    before = [starts(host) for host in others]
    run = deploy(served, "--limit", last.name, engine={"stream_interval": 2})
    assert run.status == 0, run.output
    assert [starts(host) for host in others] == before
    assert "stream_interval: 2" in last.run("cat /var/lib/rackwright/endpoints/llm/current/eagle.yaml").stdout
    alone = starts(last)
    run = deploy(served, engine={"stream_interval": 2})
    assert run.status == 0, run.output
    assert starts(last) == alone
    spans = [(times(host, "Stopping")[-1], ready(host)[-1]) for host in others]
    for (_, done), (begun, _) in pairwise(spans):
        assert done < begun


def test_a_bad_change_stops_at_the_canary(served: Site) -> None:
    canary, *others = served.lab.hosts
    before = [starts(host) for host in others]
    for host in served.lab.hosts:
        host.set_engine_faults({"fault": "repeat_bang", "when": {"option.stream_interval": 4}})
    run = deploy(served, engine={"stream_interval": 4})
    assert run.status != 0
    assert f"[{canary.name}] {texts.ROLLED_BACK.format(endpoint='llm')}" in run.output
    skipped = texts.NOT_SWITCHED.format(why=texts.FAILED_BEFORE.format(host=canary.name))
    assert run.output.count(skipped) == len(others)
    assert [starts(host) for host in others] == before
    for host in served.lab.hosts:
        assert host.run("curl -fs http://127.0.0.1:8000/health").returncode == 0


# -- rollouts


def test_a_good_change_rolls_through_unnoticed_and_back_without_a_download(served: Site, tmp_path: Path) -> None:
    before = proven(served.lab.hosts)
    hooked = tmp_path / "hooked"
    hooked.mkdir()
    hooks = {event: [{"command": ["tee", "-a", str(hooked / event)]}] for event in ("plan", "wave", "switch", "finish")}
    with loading(served.lab.hosts, 1.0, tmp_path / "load.jsonl") as load:
        logged_in = [logins(host) for host in served.lab.hosts]
        run = rollout(served, "--data", f"rollout.hooks={json.dumps(hooks)}", stream_interval=5)
        assert [logins(host) - before for host, before in zip(served.lab.hosts, logged_in, strict=True)] == [2, 2, 2]
        assert_nobody_noticed(load, run, 1)
    assert run.status == 0, run.output
    assert "done: 3 switched" in run.output
    assert switches(run) == [host.name for host in served.lab.hosts]
    assert len(re.findall("proved: a tool call", run.output)) == 3
    assert len(re.findall("proved: speed: .* ms a token .before: ", run.output)) == 3
    assert re.findall(r"--> Wave (\d) is done", run.output) == ["0", "1"]
    newer = proven(served.lab.hosts)
    assert not set(before) & set(newer)
    assert_all_serve(served, newer)
    assert_hooks_ran(served, hooked)

    together = ("--data", "rollout.bake=1", "--data", "rollout.wave=2", "--data", "rollout.max_unavailable=2")
    back = served.rackwright("rollback", "inventory/lab.py", "-y", *together)
    assert back.status == 0, back.output
    assert "done: 3 rolled back" in back.output
    older = proven(served.lab.hosts)
    assert not set(newer) & set(older)
    assert_all_serve(served, older)
    again = served.rackwright("rollback", "inventory/lab.py", "-y")
    assert again.status == 1
    refusal(again.output, "RW2406", "an earlier proven release")
    assert_all_serve(served, older)
    assert_each_run_has_its_record(served)
    assert_a_record_tells_what_a_view_and_a_report_need(served)


def assert_hooks_ran(served: Site, folder: Path) -> None:
    hooked = {path.name: objects(path.read_text()) for path in folder.iterdir()}
    names = [host.name for host in served.lab.hosts]
    assert [one["wave"] for one in hooked["wave"]] == [0, 1, 2]
    assert [one["host"] for one in hooked["switch"]] == names
    assert [one["states"] for one in hooked["plan"]] == [dict.fromkeys(names)]
    assert [one["status"] for one in hooked["finish"]] == [0]


def objects(text: str) -> list[dict[str, Any]]:
    """JSON objects one after the other, without anything between them."""
    found, decoder = [], json.JSONDecoder()
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:]
    return found


def assert_each_run_has_its_record(served: Site) -> None:
    found = json.loads(served.rackwright("runs", "--json").output)
    assert found[0]["what"] == "deploy inventory/lab.py"
    assert set(found[0]["hosts"].values()) == {"switched"}
    assert (found[-1]["what"], found[-1]["status"]) == ("rollback inventory/lab.py", 1)
    assert "an earlier proven release" in served.rackwright("runs", "last").output


def assert_a_record_tells_what_a_view_and_a_report_need(served: Site) -> None:
    records = json.loads(served.rackwright("runs", "--json").output)
    name = next(one["run"] for one in records if one["what"] == "rollout inventory/lab.py" and one["status"] == 0)
    timeline = timeline_of(json.loads(served.rackwright("runs", name, "--json").output)["events"])
    canary = timeline.hosts[served.lab.hosts[0].name]
    assert [wave_name(number) for number in range(3)] == [mark for mark, _ in timeline.marks]
    assert {limit.most for limit in timeline.limits.values()} == {1}
    assert {WAITING, LOADING, PROVING} <= {span.phase for span in canary.spans}
    assert canary.rows["llm", "speed"].figure_before is not None
    assert any("stream_interval" in diff for diff in canary.diffs)
    path = Path(served.rackwright("report", name).output.strip())
    assert all(host.name in path.read_text() for host in served.lab.hosts)


@in_proof("a bad change stops at the canary above; tests/unit/test_waves.py goes the way back of any wave")
def test_a_bad_change_that_shows_in_the_first_wave_takes_the_canary_back(served: Site) -> None:
    canary, second, third = served.lab.hosts
    before = proven(served.lab.hosts)
    for host in served.lab.hosts:
        host.set_engine_faults()
    second.set_engine_faults({"fault": "drop_tool_calls", "when": {"option.stream_interval": DROPS_TOOLS}})
    run = rollout(served, stream_interval=DROPS_TOOLS)
    assert run.status == 3, run.output
    assert "refused: a tool call" in run.output
    assert f"the release is at fault: {canary.name} rolls back as well" in run.output
    assert third.name not in switches(run)
    assert_all_serve(served, before)


@in_proof(
    "tests/programs asks this row of the three stand-ins, and other refused rows roll back here and in test_blame.py"
)
def test_drafts_that_are_never_accepted_roll_back(served: Site) -> None:
    canary, before = served.lab.hosts[0], proven(served.lab.hosts)
    canary.set_engine_faults({"fault": "never_accepts", "when": {"option.stream_interval": REFUSED}})
    run = rollout(served, stream_interval=REFUSED)
    canary.set_engine_faults()
    assert run.status == 3, run.output
    assert "proved: accepted drafts" not in run.output
    row_of(run.output, "refused", "accepted drafts", " 0 draft tokens accepted", "1.00 tokens a step")
    assert set(switches(run)) == {canary.name}
    assert_all_serve(served, before)


@in_proof("tests/unit/test_questions_steps.py judges the counters of one that hangs, as a real vLLM's stood still")
def test_a_hang_is_seen_at_the_end_of_a_bake(served: Site) -> None:
    """Its unit is active, has not restarted, and /health answers 200 all the while."""
    canary, before = served.lab.hosts[0], proven(served.lab.hosts)
    words = ("-y", "--bake", "12", "--wave", "1", "--data", "engine=" + json.dumps({"stream_interval": REFUSED}))
    bad = Running(served, str(BIN / "rackwright"), "rollout", "inventory/lab.py", *words)
    try:
        assert bad.until(f"is done: watching {canary.name}") is not None, bad.output
        assert bad.output.count("proved: engine steps") == 1
        canary.set_engine_faults(
            {"fault": "hang_after_seconds", "value": 0, "when": {"option.stream_interval": REFUSED}}
        )
        hung = bad.until(lambda row: "refused: engine steps: " in row and "60 s" in row)
        assert hung is not None, bad.output
        assert bad.end().status == 3, bad.output
    finally:
        bad.stop()
        canary.set_engine_faults()
    assert set(switches(bad.end())) == {canary.name}
    row_of(bad.output, "proved", "still serving", "active 0")
    assert_all_serve(served, before)


@in_proof("test_endpoint.py adopts in a plain run, by the same setting")
def test_what_differs_in_the_unit_alone_is_adopted_when_asked(served: Site) -> None:
    first, *others = (host.name for host in served.lab.hosts)
    before, engine = proven(served.lab.hosts), engine_of(served.lab.hosts[0])
    longer = ("--data", "stop_timeout=25")
    run = rollout(served, *longer, **engine)
    assert run.status == 0, run.output
    assert "done: 0 switched, 3 unchanged" in run.output
    run = rollout(served, *longer, "--adopt", "--limit", first, **engine)
    assert run.status == 0, run.output
    assert "proved: a tool call" in run.output
    assert "done: 1 switched, 0 unchanged" in run.output
    status = served.rackwright("status", "inventory/lab.py").output
    assert f"llm: release {proven(served.lab.hosts)[1]} on 2 hosts ({', '.join(others)})" in status
    assert proven(served.lab.hosts)[1:] == before[1:]
