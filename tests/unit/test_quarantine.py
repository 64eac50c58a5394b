"""Hosts that a rollout skips: those in quarantine, and unreachable ones within a quorum."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rackwright.adapter.run.poll import Reply
from rackwright.cli.quarantine import added
from rackwright.concerns.marks import Mark
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError
from rackwright.record.cause import Cause
from rackwright.record.journal import Event
from rackwright.record.quarantine import (
    Quarantined,
    SiteList,
    after_run,
    change_quarantine,
    load_quarantine,
    load_site_list,
    remarks,
    update_quarantine,
)
from rackwright.record.record import Record, record_of
from rackwright.rollout.maintenance import host_marks, quarantine_marks
from rackwright.rollout.maintenance.host_marks import HostMarks
from rackwright.rollout.maintenance.quarantine_marks import merged, quarantined_hosts
from rackwright.rollout.participants import Participants, choose_participants
from rackwright.settings.host_settings import HostSettings
from tests import texts
from tests.refused import refused

CABLE, ECC = Quarantined("before", "the connection", "r0", Cause.CONNECTION), Quarantined("before", "GPU errors", "r0")


def run(states: dict[str, str], causes: dict[str, Cause] | None = None) -> Record:
    events: list[Event] = [{"kind": "host", "host": host, "state": state} for host, state in states.items()]
    for host, cause in (causes or {}).items():
        events.append({"kind": "failure", "host": host, "check": "the disk", "wave": 1, "cause": cause})
    return record_of("r1", events)


@pytest.mark.parametrize(
    ("before", "record", "after"),
    [
        ({}, run({"h1": "failed"}, {"h1": Cause.DISK}), {"h1": Quarantined("now", "the disk", "r1", Cause.DISK)}),
        ({}, run({"h1": "rolled back"}, {"h1": Cause.CHECK}), {}),
        (
            {},
            run({"h1": "failed", "h2": "rolled back"}, {"h1": Cause.DISK, "h2": Cause.CHECK}),
            {"h1": Quarantined("now", "the disk", "r1", Cause.DISK)},
        ),
        ({}, run({"h1": "failed"}, {"h1": Cause.HOOK}), {}),
        ({"h1": CABLE}, run({"h1": "failed"}, {"h1": Cause.DISK}), {"h1": CABLE}),
        ({"h1": CABLE, "h2": ECC}, run({"h1": "switched", "h2": "switched"}), {}),
        ({"h1": CABLE, "h2": ECC}, run({"h1": "unchanged", "h2": "unchanged"}), {"h2": ECC}),
        ({"h1": CABLE, "h2": ECC}, run({"h1": "quarantined", "h3": "switched"}), {"h1": CABLE, "h2": ECC}),
    ],
)
def test_a_run_changes_the_list(before: dict[str, Any], record: Record, after: dict[str, Any]) -> None:
    assert after_run(before, record, "now") == after


def test_the_list_is_kept_beside_the_records(tmp_path: Path) -> None:
    assert load_quarantine(tmp_path) == {}
    message = update_quarantine(tmp_path, run({"h1": "failed", "h2": "switched"}, {"h1": Cause.DISK}))
    assert [one.startswith(texts.QUARANTINED.format(host="h1", why="the disk")) for one in message] == [True]
    assert (tmp_path / "runs" / "quarantine.json").stat().st_mode & 0o777 == 0o600
    assert load_quarantine(tmp_path)["h1"].run == "r1"
    assert update_quarantine(tmp_path, run({"h2": "unchanged"})) == []
    assert update_quarantine(tmp_path, run({"h1": "switched"})) == [texts.WELL_AGAIN.format(host="h1")]
    change_quarantine(tmp_path, lambda before: added(before, ["h3"], "RMA", "today"))
    assert load_quarantine(tmp_path) == {"h3": Quarantined("today", "RMA")}
    assert remarks(tmp_path, ["h1", "h3"]) == [texts.INCLUDED.format(host="h3", mark="quarantined since today (RMA)")]


def test_a_list_that_is_none_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "quarantine.json").write_text("{}")
    with pytest.raises(RackwrightError, match=r"quarantine\.json cannot be "):
        load_quarantine(tmp_path)


HOSTS = [f"h{number}" for number in range(1, 11)]


def called(*away: str, quorum: str | None, quarantine: dict[str, Quarantined] | None = None) -> Participants:
    def probe(inventory: Path, hosts: Sequence[str], root: Path) -> list[str]:
        return [host for host in hosts if host in away]

    return choose_participants(Path("i.py"), HOSTS, Path(), quarantine or {}, quorum, probe=probe)


def test_who_takes_part() -> None:
    found = called("h2", "h4", quorum="20%", quarantine={"h4": CABLE, "h99": ECC})
    assert found.hosts == ("h1", "h3", "h5", "h6", "h7", "h8", "h9", "h10")
    assert found.skipped == ("h2",)
    assert found.events == [
        {"host": "h4", "state": "quarantined", "text": f"quarantined since {CABLE.since} ({CABLE.why})"},
        {"host": "h2", "state": "skipped", "text": "it cannot be reached"},
    ]
    assert "h2 is skipped" in found.reasons[1]


def test_nobody_is_asked_without_the_option() -> None:
    assert called("h2", quorum=None).hosts == tuple(HOSTS)


@pytest.mark.parametrize(
    ("away", "quorum", "message"),
    [
        (("h2", "h7"), "10%", "2 hosts cannot be reached, and --skip-offline 10% allows 1 of 10: h2, h7; nothing"),
        (("h2",), "0", "allows 0 of 10: h2; nothing was done"),
        (("h2",), "5%", "allows 0 of 10"),
        (tuple(HOSTS), "100%", "no host can be reached"),
    ],
)
def test_too_many_unreachable_hosts_stop_the_run(away: tuple[str, ...], quorum: str, message: str) -> None:
    with pytest.raises(RackwrightError, match=message):
        called(*away, quorum=quorum)


def test_a_run_of_nobody_is_an_error() -> None:
    with refused("RW0807", "; next: ", "rackwright quarantine i.py"):
        called(quorum=None, quarantine=dict.fromkeys(HOSTS, CABLE))


# -- the hosts' own marks


def shown(reason: str = "", since: str = "2026-11-27 04:00:00", keeps_marks: bool = True) -> HostMarks:
    mark = Mark("quarantine", "up", since, "ann@desk", reason) if reason else None
    return HostMarks(quarantine=mark, keeps_marks=keeps_marks)


LISTED = SiteList({"h1": ECC}, frozenset({"h1"}))


@pytest.mark.parametrize(
    ("listed", "on_host", "hosts"),
    [
        (SiteList({}), {"h1": shown("fan")}, ["h1"]),  # another machine has found it
        (LISTED, {"h1": shown("GPU errors")}, ["h1"]),
        (LISTED, {"h1": shown()}, []),  # another machine has released it
        (LISTED, {"h1": shown(keeps_marks=False)}, ["h1"]),  # it was installed again
        (LISTED, {}, ["h1"]),  # it cannot be reached
        (SiteList({"h1": ECC}), {"h1": shown()}, ["h1"]),  # of an earlier version, or not reached until now
        (SiteList({}, released={"h1": "2026-11-27 04:00:01"}), {"h1": shown("fan")}, []),
        (SiteList({}, released={"h1": "2026-11-27 03:59:59"}), {"h1": shown("fan")}, ["h1"]),
    ],
)
def test_the_hosts_marks_decide(listed: SiteList, on_host: dict[str, HostMarks], hosts: list[str]) -> None:
    assert list(merged(listed, on_host).hosts) == hosts


def test_marks_follow_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks: dict[str, str] = {}
    away: set[str] = set()

    def poll(entries: Sequence[InventoryHost], script: Callable[[InventoryHost], str]) -> dict[str, Reply]:
        return {one.name: Reply(trouble="away") if one.name in away else answer(one, script(one)) for one in entries}

    def answer(one: InventoryHost, script: str) -> Reply:
        if "mark quarantine up" in script:
            marks[one.name] = "reason=fan\nsince=2026-11-27 04:00:00"
        elif "unmark quarantine" in script:
            del marks[one.name]
        else:
            text = base64.b64encode(marks.get(one.name, "").encode()).decode()
            return Reply(("marks", *([f"quarantine={text}"] if text else [])))
        return Reply()

    monkeypatch.setattr(quarantine_marks, "poll", poll)
    monkeypatch.setattr(host_marks, "poll", poll)
    entries = [InventoryHost(name, (), {}, HostSettings.model_construct(), {}) for name in ("h1", "h2")]
    change_quarantine(tmp_path, lambda _: {"h1": ECC, "h2": ECC})
    away.add("h2")
    assert set(quarantined_hosts(tmp_path, entries)) == {"h1", "h2"}
    assert (set(marks), load_site_list(tmp_path).marked) == ({"h1"}, frozenset({"h1"}))
    away.clear()
    quarantined_hosts(tmp_path, entries)
    assert (set(marks), load_site_list(tmp_path).marked) == ({"h1", "h2"}, frozenset({"h1", "h2"}))
    del marks["h2"]
    assert set(quarantined_hosts(tmp_path, entries)) == {"h1"}
    change_quarantine(tmp_path, lambda _: {})
    assert quarantined_hosts(tmp_path, entries) == {}
    assert (marks, load_site_list(tmp_path)) == ({}, SiteList({}))
    marks["h1"] = "reason=fan\nsince=2999-11-27 04:00:00"
    other = tmp_path / "other"
    assert quarantined_hosts(other, entries)["h1"].why == "fan, by an unknown user"
