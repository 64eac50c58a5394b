"""What hosts say while a canary serves beside its peers, the verdict on it, and its settings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from rackwright.concerns.endpoint.peers.engine_sums import (
    TOKENS,
    AnsweredPair,
    EngineSums,
    drafts_between,
    drafts_by_rate,
    pace_between,
    parse_own,
    parse_sums,
)
from rackwright.concerns.endpoint.peers.peer_check import PeerCheck
from rackwright.concerns.endpoint.peers.peer_verdict import Watched, peer_verdict
from rackwright.concerns.endpoint.quality.quality_check import AskedRelease
from rackwright.loading.notes import notes
from rackwright.quality.beside import HostPace, PacePair
from rackwright.settings.peer_host import PeerHost
from rackwright.settings.sections import BESIDE_LEAST, Gate
from rackwright_engines.metrics import series
from rackwright_engines.pace_counters import PACE
from tests.unit.machines import settings

VERSIONS = {"vllm": "0.33.0", "sglang": "0.5.23", "tensorrt-llm": "1.4.0rc1"}


def release(hash_: str, engine: str = "vllm", serves: bool = True, endpoint: str = "llm") -> AskedRelease:
    return AskedRelease(endpoint, hash_, "http://127.0.0.1:8000", "m", False, engine, serves)


def check(**more: Any) -> PeerCheck:
    values: dict[str, Any] = {
        "now": release("new"),
        "before": "old",
        "slower_by": 20.0,
        "seconds": 300,
        "metrics": "/metrics",
        "why_no_metrics": "",
        "drafting": "",
        "leaving": 0,
    }
    return PeerCheck(**{**values, **more})


@pytest.mark.parametrize("engine", PACE)
def test_the_sums_are_series_that_the_engine_s_newest_known_version_has(engine: str) -> None:
    shown, names = series(engine, VERSIONS[engine]), PACE[engine]
    for alternatives in (names.token_seconds, names.tokens, [f"{name}_sum" for name in names.first]):
        assert shown & set(alternatives), alternatives
    assert not names.drafted or shown & set(names.drafted)


def vllm(requests: float, first: float, decode: float, tokens: float, **more: float) -> EngineSums:
    rows = {
        "time_to_first_token_seconds_count": requests,
        "time_to_first_token_seconds_sum": first,
        "request_decode_time_seconds_sum": decode,
        "request_generation_tokens_sum": tokens,
        **{f"spec_decode_num_{name}_tokens_total": value for name, value in more.items()},
    }
    return EngineSums({f"vllm:{name}": value for name, value in rows.items()})


def test_figures_of_a_window_are_differences() -> None:
    assert pace_between("vllm", vllm(10, 1, 100, 4000), vllm(20, 3, 110, 5000)) == HostPace(0.2, 0.01)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, vllm(20, 3, 110, 5000)),
        (vllm(10, 1, 100, 4000), None),
        (vllm(10, 1, 100, 4000), vllm(5, 0.5, 5, 50)),
        (vllm(10, 1, 100, 4000), vllm(12, 3, 110, 5000)),
        (vllm(10, 1, 100, 4000), EngineSums({})),
    ],
    ids=["no look before", "no look after", "began again", "too few requests", "nothing shown"],
)
def test_a_window_that_shows_nothing_is_none(before: EngineSums | None, after: EngineSums | None) -> None:
    assert pace_between("vllm", before, after) == HostPace()


def test_a_window_in_which_no_request_ended_has_a_first_token_alone() -> None:
    assert pace_between("vllm", vllm(10, 1, 100, 4000), vllm(20, 3, 100, 4000)) == HostPace(0.2, None)


def test_sums_are_added_over_all_labels_and_anything_else_is_left_out() -> None:
    rows = [
        'a_sum{engine="0",x="a b"} 1.5',
        'a_sum{engine="1"} 2e0',
        "b_total 3",
        "# TYPE a_sum counter",
        "stranger: x",
    ]
    assert parse_sums(rows) == EngineSums({"a_sum": 3.5, "b_total": 3.0})
    assert parse_sums(["stranger: port 8000 is taken", "a_sum 1e"]) is None


def test_text_of_drafts_and_of_one_that_never_wins() -> None:
    before, after = vllm(0, 0, 0, 0, draft=0, accepted=0), vllm(9, 1, 1, 90, draft=4812, accepted=0)
    assert drafts_between("vllm", before, after) == "its draft never wins: none of 4,812 drafted tokens was accepted"
    some = vllm(9, 1, 1, 90, draft=4812, accepted=1200)
    assert drafts_between("vllm", before, some) == "its draft: 1,200 of 4,812 tokens accepted"
    assert drafts_between("sglang", before, after) == drafts_between("vllm", before, vllm(9, 1, 1, 9)) == ""
    assert drafts_by_rate([1.0, 1.0]) == "its draft never wins: 1.00 tokens a step"
    assert drafts_by_rate([2.0, 3.0]) == "its draft: 2.50 tokens a step"
    assert drafts_by_rate([]) == ""


def printed(first: float, whole: float, tokens: int = TOKENS, status: int = 200, **more: Any) -> list[str]:
    """Return what a host prints of the two requests of a pair."""
    rows = list[str]()
    for number, seconds in ((1, first), (tokens, whole)):
        body = {"usage": {"completion_tokens": number}, "choices": [{"text": "x", **more}]}
        rows += [json.dumps(body), f"{status} {seconds}"]
    return [*rows, "200 0"]


def test_an_own_pair_gives_the_first_token_and_the_rest() -> None:
    found = parse_own(printed(0.1, 0.1 + 0.02 * (TOKENS - 1), avg_decoded_tokens_per_iter=2.5))
    assert found.rate == 2.5
    assert found.pace.first == 0.1
    assert found.pace.token == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (printed(0.1, 1.0, tokens=4), "an answer of 4 tokens"),
        (printed(0.3, 0.2), f"an answer of {TOKENS} tokens"),
        (printed(0.1, 1.0, status=503), "a request answers 503"),
        (printed(0.1, 1.0)[2:], "no answer came back"),
        (["stranger: port 8000 is taken by nc"], "stranger: port 8000 is taken by nc"),
        ([], "nothing came back"),
    ],
)
def test_an_own_pair_that_cannot_be_measured_says_why(rows: list[str], why: str) -> None:
    assert parse_own(rows) == AnsweredPair(HostPace(), why=why)


def pairs(canary: float, number: int = 20) -> list[PacePair]:
    return [PacePair(HostPace(0.1, 0.01 * canary), {"h2": HostPace(0.1, 0.01)}) for _ in range(number)]


def test_text_of_a_verdict() -> None:
    drafts = "its draft never wins: none of 9 drafted tokens was accepted"
    verdict = peer_verdict(check(), Watched(pairs(1 / 0.7), "20 windows of 14 s under clients' load", drafts))
    assert not verdict.passed
    assert verdict.figure == pytest.approx(0.01 / 0.7)
    assert verdict.text == (
        "no difference to the first token that 20 pairs could show (0 % would be), 30 % fewer tokens a second (30 to "
        f"30 %); {drafts}; 20 windows of 14 s under clients' load"
    )
    assert peer_verdict(check(), Watched(pairs(1.1))).passed


def test_text_of_too_few_pairs_which_refuse_nothing() -> None:
    verdict = peer_verdict(check(), Watched(pairs(9.0, 3), why_few="a request answers 503"))
    assert not verdict.measured
    assert verdict.text == "not measurable: 3 of at least 7 pairs (a request answers 503)"


def test_a_peer_serves_the_release_before() -> None:
    assert check().is_peer(release("old"))
    assert not check().is_peer(release("older"))
    assert not check().is_peer(release("old", serves=False))
    assert not check().is_peer(None)
    assert check(before=None).is_peer(release("older"))
    assert not check(before=None).is_peer(release("new"))


@pytest.mark.parametrize("slower_by", [0, -1, 100, 300, "much"])
def test_a_limit_that_makes_no_sense_is_refused(slower_by: object) -> None:
    with pytest.raises(ValidationError):
        Gate.model_validate({"slower_by": slower_by})


def test_windows_are_neither_too_short_nor_longer_than_the_host_waits() -> None:
    assert Gate().slower_by is None
    assert Gate(slower_by=20).beside_peers == 300
    with pytest.raises(ValidationError):
        Gate(slower_by=20, beside_peers=BESIDE_LEAST - 1)
    with pytest.raises(ValidationError, match="beside_peers"):
        Gate(slower_by=20, beside_peers=6300)
    Gate(slower_by=20, beside_peers=6300, commit_deadline=360)
    Gate(beside_peers=6300)


def test_a_limit_that_compares_nothing_is_a_warning() -> None:
    alone = settings(gate={"slower_by": 20})
    assert ["gate.slower_by" in note for note in notes(alone)].count(True) == 1
    peers = (PeerHost("h1", 8010), PeerHost("h2", 8010))
    assert not any("gate.slower_by" in note for note in notes(alone.with_peers({"llm": peers})))
    assert not any("gate.slower_by" in note for note in notes(settings()))
