"""Hosts that a rollout skips: those in quarantine, and unreachable ones within a quorum."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rackwright.cli.quarantine import added
from rackwright.messages import RackwrightError
from rackwright.record.cause import Cause
from rackwright.record.journal import Event
from rackwright.record.quarantine import (
    Quarantined,
    after_run,
    change_quarantine,
    load_quarantine,
    remarks,
    update_quarantine,
)
from rackwright.record.record import Record, record_of
from rackwright.rollout.participants import Participants, choose_participants
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
