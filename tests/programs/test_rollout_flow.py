"""`rackwright rollout` and `resume` from the outside, on fake hosts that only say that they have switched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rackwright.processes import this_process
from rackwright.record.journal import append, new_record, read_record, records
from rackwright.record.quarantine import Quarantined, change_quarantine
from rackwright.record.record import Record, record_of
from tests import texts
from tests.programs.fake_site import make_site, started

HOSTS = ["@fake/h1", "@fake/h2", "@fake/h3"]
INVENTORY = f"""\
from rackwright.inventory import build
globals().update(build(__file__, {{"front": {HOSTS}}}))
"""
DEPLOY = """\
from pyinfra.api import operation
from rackwright.record.handover import received
from rackwright.record.journal import note
from rackwright.adapter.host import this_host

@operation()
def serve():
    host = this_host()
    if host.state.is_executing:
        note("host", host=host.name, state="switching", before={"llm": "old"})
        note("host", host=host.name, state="switched")
        note("order", order={"first": received().first, "last": received().last})
    yield from ()

serve(name="It serves")
"""
VETO = "rollout:\n  hooks: {plan: [{command: ./freeze, veto: true}], finish: [{command: [tee, finished]}]}\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Make a site of three hosts whose plan hook says no while there is a freeze."""
    (tmp_path / "freeze").write_text("#!/bin/sh\nif test -e frozen; then cat frozen; exit 1; fi\n")
    (tmp_path / "freeze").chmod(0o755)
    return make_site(tmp_path, DEPLOY, INVENTORY, VETO)


def last(site: Path) -> Record:
    return record_of("last", read_record(records(site)[-1]))


def cut_run(site: Path, purpose: str, **begun: Any) -> str:
    """Write the record of a run that was killed in the middle of the second host's switch; returns its name."""
    path = new_record(site, purpose)
    inventory, deploy = str(site / "inventory" / "fleet.py"), str(site / "deploy.py")
    gone = {**this_process(), "started": -1}
    fields = {"purpose": purpose, "what": purpose, "inventory": inventory, "deploy": deploy, "process": gone}
    append(path, "begin", hosts=HOSTS, **fields, **begun)
    append(path, "phase", name="rollout")
    append(path, "host", host=HOSTS[0], state="switched", before={"llm": "old"})
    append(path, "host", host=HOSTS[1], state="switching")
    return path.stem


def test_a_rollout_leaves_aside_who_is_quarantined_and_a_hook_can_stop_it(site: Path) -> None:
    change_quarantine(site, lambda _: {HOSTS[1]: Quarantined("today", "the connection", None, "connection")})
    why = "a freeze until Monday"
    (site / "frozen").write_text(f"{why}\n")
    status, output = started(site, "rackwright", "rollout", "inventory/fleet.py", "-y", "--skip-offline", "0")
    assert status == 1, output
    stopped = [row for row in output.splitlines() if "plan hook ./freeze" in row]
    assert any(row.endswith(f" 1: {why}; nothing was done") for row in stopped), output
    (site / "frozen").unlink()
    status, output = started(site, "rackwright", "rollout", "inventory/fleet.py", "-y", "--skip-offline", "0")
    assert status == 0, output
    assert texts.SKIPPED.format(host=HOSTS[1], why="quarantined since today (the connection)") in output
    assert last(site).states == {HOSTS[1]: "quarantined", HOSTS[0]: "switched", HOSTS[2]: "switched"}
    received = json.loads((site / "finished").read_text())
    assert (received["status"], received["text"]) == (0, "done: 2 switched, 0 unchanged")
    status, output = started(site, "rackwright", "resume", "-y")
    assert status == 0, output
    assert texts.WELL_AGAIN.format(host=HOSTS[1]) in output
    status, output = started(site, "rackwright", "resume", "-y")
    assert status == 1, output
    assert "nothing is left of run" in output


@pytest.mark.parametrize(("purpose", "fields"), [("rollout", {}), ("deploy", {"plain": True})])
def test_what_is_left_of_a_run_that_was_cut(site: Path, purpose: str, fields: dict[str, Any]) -> None:
    name = cut_run(site, purpose, data={"port": 8001}, **fields)
    status, output = started(site, "rackwright", "resume")
    assert status == 1, output
    assert "nothing was done" in output
    status, output = started(site, "rackwright", "resume", name, "-y")
    assert status == 0, output
    found = last(site)
    assert found.hosts == HOSTS[1:]
    assert found.states == dict.fromkeys(HOSTS[1:], "switched")
    assert found.begin["data"] == {"port": 8001}
    orders = [event["order"] for event in read_record(records(site)[-1]) if event["kind"] == "order"]
    assert orders == [{"first": [HOSTS[1]], "last": []}] * 2
    status, output = started(site, "rackwright", "resume", name, "-y")
    assert (status, f"was resumed as {records(site)[-1].stem} already" in output) == (1, True), output
    assert "was cut; continued as" in started(site, "rackwright", "runs")[1]
