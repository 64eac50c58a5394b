"""A --dry of what registry or hub do not have ends as a plan does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rackwright.operations import steps
from rackwright.sources.names import missing_of

GONE = "RW0914: nvcr.io has no r:9.9.9 (404)"


@pytest.mark.parametrize(("missing", "failed"), [([GONE], True), ([], False)])
def test_what_is_missing_takes_the_host_out(missing: list[str], failed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(steps, "complain", lambda _, text: told.append(text))
    state = SimpleNamespace(is_executing=False, failed_hosts=set(), active_hosts=set())
    host: Any = type("Host", (), {"name": "h1", "state": state})()
    state.active_hosts.add(host)
    steps._give_up_early(host, [], missing)
    assert (host in state.failed_hosts, host in state.active_hosts) == (failed, not failed)
    assert told == missing


def test_a_reading_says_what_is_missing() -> None:
    assert missing_of(SimpleNamespace(absent={"r:9.9.9": GONE})) == [GONE]
    assert missing_of(None) == missing_of(SimpleNamespace()) == []
