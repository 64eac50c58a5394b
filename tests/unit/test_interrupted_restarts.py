"""Hosts that were restarting when a run was cut: which ones are waited for, and for how long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import pytest

from rackwright.adapter.run.poll import Reply
from rackwright.loading.host import InventoryHost
from rackwright.rollout.maintenance import interrupted_restarts
from rackwright.rollout.maintenance.interrupted_restarts import await_restarts, under_way

AWAY = Reply(trouble="cannot be reached: connection refused", reached=False)
BOOTS = {"b1": "before", "b2": "before"}


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(("before yes",)), "still drains"),
        (AWAY, "is not back: cannot be reached"),
        (Reply(trouble="the connection was lost (EOFError)"), "is not back"),
        (Reply(("before no",)), ""),
        (Reply(("after no",)), ""),
        (Reply(("after yes",)), ""),
        (Reply(()), ""),
    ],
)
def test_a_host_is_waited_for_while_its_boot_may_end_at_any_moment(reply: Reply, says: str) -> None:
    found = under_way(reply, "before")
    assert says in found if says else not found


def waited(monkeypatch: pytest.MonkeyPatch, *rounds: Mapping[str, Reply], seconds: float = 60) -> list[list[str]]:
    """Who is looked at in each round."""
    monkeypatch.setattr(interrupted_restarts, "PAUSE", 0)
    calls, answers = list[list[str]](), iter(rounds)

    def look(entries: Sequence[InventoryHost]) -> Mapping[str, Reply]:
        calls.append([entry.name for entry in entries])
        return next(answers)

    hosts = [SimpleNamespace(name=name) for name in ("b1", "b2", "b3")]
    await_restarts(hosts, BOOTS, seconds, look)  # type: ignore[arg-type]
    return calls


def test_each_is_asked_until_it_has_come_back_or_was_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = (
        {"b1": Reply(("before yes",)), "b2": Reply(("before no",))},
        {"b1": AWAY},
        {"b1": Reply(("after no",))},
    )
    assert waited(monkeypatch, *rounds) == [["b1", "b2"], ["b1"], ["b1"]]


def test_nobody_is_waited_for_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, seconds=-5) == []


def test_the_text_says_why_it_waits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    waited(monkeypatch, {"b1": AWAY, "b2": Reply(("after no",))}, {"b1": Reply(("after no",))})
    output = capsys.readouterr().out
    assert "b1 got the order to restart, and is not back: cannot be reached: connection refused; waiting" in output
    assert "b2" not in output
