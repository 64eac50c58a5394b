"""The looks at a canary and its peers as a run takes them: hosts that answer, are lost, or get too few requests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackwright.adapter.run_context import part_of
from rackwright.concerns.endpoint.peers import beside_peers
from rackwright.concerns.endpoint.peers.beside_peers import Peer, PeerFinders, refused_beside_peers
from rackwright.concerns.endpoint.peers.engine_sums import TOKENS
from rackwright.concerns.endpoint.peers.peer_check import PAIRS, PeerCheck
from rackwright.concerns.endpoint.quality.canaries import Canaries
from rackwright.remote.errors import ConnectionLostError
from tests.unit.test_engine_sums import check, release

ROW = "beside its peers"


@dataclass
class Fleet:
    """Hosts with engines whose sums grow with each look, and what a run says and notes."""

    token: dict[str, float]
    """Seconds a token, by host."""
    requests: dict[str, int] = field(default_factory=dict)
    """Requests a window; ten where it is not said."""
    lost: frozenset[str] = frozenset()
    looks: dict[str, int] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def host(self, name: str) -> Any:
        return SimpleNamespace(name=name, state=self.state)

    def __post_init__(self) -> None:
        self.state = SimpleNamespace()
        names = list(self.token)
        part_of(cast(Any, self.state), Canaries).names.add(names[0])
        peers = [Peer(self.host(name), release("old")) for name in names[1:]]
        part_of(cast(Any, self.state), PeerFinders).by_host[names[0]] = lambda _: peers

    def remote(self, host: Any, command: Any, **_: Any) -> tuple[bool, Any]:
        if host.name in self.lost:
            raise ConnectionLostError("gone")
        printed = self._answers(host.name) if "/v1/completions" in str(command) else self._sums(host.name)
        return True, SimpleNamespace(stdout_lines=printed, stderr_lines=[])

    def _sums(self, name: str) -> list[str]:
        count = self.looks[name] = self.looks.get(name, 0) + 1
        requests = count * self.requests.get(name, 10)
        sums = {
            "time_to_first_token_seconds_count": requests,
            "time_to_first_token_seconds_sum": requests * 0.1,
            "request_decode_time_seconds_sum": requests * 50 * self.token[name],
            "request_generation_tokens_sum": requests * 50,
        }
        return [f'vllm:{key}{{engine="0"}} {value}' for key, value in sums.items()]

    def _answers(self, name: str) -> list[str]:
        self.sent.append(name)
        rows = list[str]()
        for tokens in (1, TOKENS):
            body = {"usage": {"completion_tokens": tokens}, "choices": [{"avg_decoded_tokens_per_iter": 1.0}]}
            rows += [json.dumps(body), f"200 {0.1 + (tokens - 1) * self.token[name]}"]
        return [*rows, "200 0"]

    def refused(self, *checks: PeerCheck) -> dict[str, str]:
        name = next(iter(self.token))
        return refused_beside_peers(self.host(name), checks or (check(seconds=0),), self.messages.append)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside_peers, "sleep", lambda _: None)
    monkeypatch.setattr(beside_peers, "say", lambda *_: None)
    monkeypatch.setattr(beside_peers, "side_by_side", lambda work, items, _: [work(item) for item in items])


def played(monkeypatch: pytest.MonkeyPatch, token: dict[str, float], **more: Any) -> Fleet:
    fleet = Fleet(token, **more)
    monkeypatch.setattr(beside_peers, "remote", fleet.remote)
    monkeypatch.setattr(beside_peers, "note", lambda _, **fields: fleet.rows.append(fields))
    return fleet


def marks(fleet: Fleet) -> Sequence[tuple[str, str]]:
    return [(row["row"], row["mark"]) for row in fleet.rows]


def test_a_slow_canary_is_refused_under_its_clients_load(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = played(monkeypatch, {"h1": 0.02, "h2": 0.01, "h3": 0.01})
    assert list(fleet.refused()) == [ROW]
    [row] = fleet.rows
    assert (row["mark"], row["figure"], row["figure_before"]) == ("refused", pytest.approx(0.02), pytest.approx(0.01))
    assert len(row["pairs"]) == PAIRS
    peer = pytest.approx([0.1, 0.01])
    assert row["pairs"][0] == {"": pytest.approx([0.1, 0.02]), "h2": peer, "h3": peer}
    assert fleet.messages == ["admit", *["hold"] * (PAIRS + 2)]
    assert fleet.sent == []


def test_an_equal_one_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = played(monkeypatch, {"h1": 0.01, "h2": 0.01})
    assert fleet.refused() == {}
    assert marks(fleet) == [(ROW, "proved")]


def test_a_host_that_is_no_canary_and_an_endpoint_without_the_setting_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fleet = played(monkeypatch, {"h1": 0.02, "h2": 0.01})
    assert refused_beside_peers(fleet.host("h2"), [check()], fleet.messages.append) == {}
    assert refused_beside_peers(fleet.host("h1"), [], fleet.messages.append) == {}
    assert not fleet.messages
    assert not fleet.rows


def test_without_a_peer_no_client_is_let_in_and_nothing_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = played(monkeypatch, {"h1": 0.02})
    assert fleet.refused() == {}
    assert marks(fleet) == [(ROW, "not measured")]
    assert fleet.messages == []


@pytest.mark.parametrize("idle", ["h1", "h2"])
def test_with_too_few_requests_it_sends_its_own_to_each_in_turn(monkeypatch: pytest.MonkeyPatch, idle: str) -> None:
    fleet = played(monkeypatch, {"h1": 0.02, "h2": 0.01}, requests={idle: 1})
    assert list(fleet.refused(check(seconds=0, drafting="eagle3"))) == [ROW]
    assert fleet.looks["h1"] == 5, "four windows are enough to see that"
    assert fleet.sent == ["h2", "h1", "h1", "h2"] * (PAIRS // 2)
    assert "never wins: 1.00" in fleet.rows[0]["seen"]


def test_an_engine_without_metrics_is_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = played(monkeypatch, {"h1": 0.01, "h2": 0.01, "h3": 0.01})
    assert fleet.refused(check(metrics="", why_no_metrics="no")) == {}
    assert fleet.looks == {}
    assert [fleet.sent.count(name) for name in ("h1", "h2", "h3")] == [PAIRS, PAIRS // 2, PAIRS // 2]


def test_a_lost_peer_is_left_out_and_lost_peers_refuse_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = played(monkeypatch, {"h1": 0.02, "h2": 0.01, "h3": 0.01}, lost=frozenset({"h3"}))
    assert list(fleet.refused()) == [ROW]
    assert "h3" not in fleet.rows[0]["pairs"][0]
    fleet = played(monkeypatch, {"h1": 0.02, "h2": 0.01}, lost=frozenset({"h2"}))
    assert fleet.refused() == {}
    assert marks(fleet) == [(ROW, "not measured")]


def test_a_lost_canary_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = played(monkeypatch, {"h1": 0.02, "h2": 0.01}, lost=frozenset({"h1"}))
    with pytest.raises(ConnectionLostError):
        fleet.refused()


def test_of_two_endpoints_each_has_a_row_and_clients_are_let_in_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = played(monkeypatch, {"h1": 0.02, "h2": 0.01})
    other = check(seconds=0, now=release("new", endpoint="b"))
    assert list(fleet.refused(check(seconds=0), other)) == [f"llm: {ROW}", f"b: {ROW}"]
    assert fleet.messages.count("admit") == 1
