"""A plain run's last lines say where its endpoints are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rackwright.record.record import Record
from rackwright.record.states import RunState
from rackwright.rollout.deploy_record import closing_lines, url_for

HOSTS = [f"h{number}" for number in range(7)]


def record(status: int) -> Record:
    begin = {"inventory": "/site/inventory/lab.py", "hosts": HOSTS}
    return Record("1", begin, {"status": status}, {"": dict.fromkeys(HOSTS, RunState.SWITCHED)})


@pytest.mark.parametrize(
    ("address", "bound", "url"),
    [
        ("10.1.0.7", "0.0.0.0", "http://10.1.0.7:8000"),
        ("fd00::7", "::", "http://[fd00::7]:8000"),
        ("10.1.0.7", "127.0.0.1", "http://127.0.0.1:8000"),
        ("gpu01.example", "fd00::9", "http://[fd00::9]:8000"),
    ],
)
def test_a_url_has_the_address_that_answers(address: str, bound: str, url: str) -> None:
    endpoint: Any = SimpleNamespace(address=bound, port=8000)
    assert url_for(endpoint, address) == url


def test_the_text_of_the_endpoints_stands_below_the_last_line_and_many_are_counted() -> None:
    lines = closing_lines(record(0), "done: 7 switched", [f"http://{host}:8000/v1, model m" for host in HOSTS])
    assert lines[0] == "rackwright: done: 7 switched; ask it: rackwright chat /site/inventory/lab.py"
    assert lines[1] == "  http://h0:8000/v1, model m"
    assert lines[-1] == "  and 2 more: rackwright status /site/inventory/lab.py"
    assert len(lines) == 7


def test_a_failed_run_names_no_endpoint() -> None:
    assert closing_lines(record(1), "RW0823: failed", ["http://h1:8000/v1, model m"]) == ["rackwright: RW0823: failed"]
