"""Rows of the gate that only an endpoint of several hosts has."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rackwright.concerns.endpoint.group import port_isolation
from rackwright.concerns.endpoint.group.open_ports import Listening, listening
from rackwright.concerns.endpoint.proof.proof_row import RULES, Answer, Verdict, is_refused, judge_safely
from rackwright.concerns.endpoint.proof.transport import transport
from rackwright.remote.errors import StepFailedError
from rackwright.settings.group import Group, GroupMember

FIXTURES = Path(__file__).parents[1] / "fixtures" / "nccl"
SOCKETS = "2 Using network Socket\n16 via NET/Socket\n"
RDMA = "2 Using network IB\n16 via NET/IB\n"
NVLINK = "2 MNNVL 1\n2 Using network IB\n16 via P2P/MNNVL\n"


def judged(wanted: str, body: str) -> Verdict:
    return judge_safely(transport("rackwright-llm.service", "rackwright-llm", wanted), Answer(0, body, 0.1))


@pytest.mark.parametrize(
    ("wanted", "body", "passed"),
    [
        ("any", SOCKETS, True),
        ("any", RDMA, True),
        ("rdma", SOCKETS, False),
        ("rdma", RDMA, True),
        ("rdma", RDMA + SOCKETS, False),
        ("nvlink", NVLINK, True),
        ("nvlink", RDMA, False),
    ],
)
def test_sockets_are_refused_where_more_was_asked_for(wanted: str, body: str, passed: bool) -> None:
    verdict = judged(wanted, body)
    assert verdict.passed is passed
    assert is_refused(transport("u", "c", wanted), verdict) is not passed
    assert passed or verdict.text.endswith(f", and {wanted} was asked for")


@pytest.mark.parametrize("wanted", ["any", "rdma"])
def test_a_log_without_a_word_of_nccl_refuses_nothing(wanted: str) -> None:
    verdict = judged(wanted, "\n")
    assert not verdict.measured
    assert not is_refused(transport("u", "c", wanted), verdict)


def read_by_the_host(wanted: str, folder: Path, journal: str) -> str:
    """Return the output of the row's script where the unit's journal holds this text."""
    (folder / "journal").write_text(f"{journal}Starting vLLM API server; via the way of all logs\n")
    programs = {"docker": "echo 2026-11-23T14:00:00.5Z", "journalctl": f"cat {folder}/journal"}
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    row = transport("rackwright-llm.service", "rackwright-llm", wanted)
    path = {"PATH": f"{folder}:/usr/bin:/bin"}
    done = subprocess.run(["sh", "-c", row.script], env=path, capture_output=True, text=True, check=True)
    body, _, last = done.stdout.rpartition("\n")
    assert last == "0 0"
    return body


NO_VERBS = "Failed to open libibverbs.so[.1]"
"""NCCL's own words."""


def test_what_nccl_really_prints_is_found_in_the_units_journal(tmp_path: Path) -> None:
    """Of NCCL 2.28.9 on two H100s in two hosts, as the head's journal had it."""
    real = read_by_the_host("rdma", tmp_path, (FIXTURES / "2.28.9-sockets.txt").read_text())
    lines = [f"1 {NO_VERBS}", "2 Using network Socket", "8 via NET/Socket"]
    assert real.split("\n")[:3] == lines
    carried = "plain TCP (Socket): 8 channels via NET/Socket"
    assert judged("any", real) == Verdict(True, carried)
    assert judged("nvlink", real) == Verdict(False, f"{carried}, and nvlink was asked for")
    why = "and rdma was asked for; NCCL says: Failed to open libibverbs.so[.1]"
    assert judged("rdma", real) == Verdict(False, f"{carried}, {why}")


@pytest.mark.parametrize(
    ("lines", "carried"),
    [
        (
            "a:1:2 [0] NCCL INFO MNNVL 1 cliqueId 0 cliqueSize 8 cliqueRank 0\n"
            "a:1:2 [0] NCCL INFO Using network IB\n"
            "a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] via P2P/MNNVL/read\n",
            "NVLink between hosts (MNNVL), IB: 1 channel via P2P/MNNVL",
        ),
        (
            "a:1:2 [0] NCCL INFO Using network IBext_v11\n"
            "a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IBext_v11/0/GDRDMA\n",
            "IBext: 1 channel via NET/IBext",
        ),
    ],
)
def test_what_carries_the_traffic_is_said_in_words(lines: str, carried: str, tmp_path: Path) -> None:
    """By the formats of NCCL's sources (src/init.cc, src/mnnvl.cc, src/transport)."""
    assert judged("any", read_by_the_host("any", tmp_path, lines)).text == carried


@pytest.mark.parametrize("message", ["Failed to open libibverbs.so[.1]", "NET/IB : No device found"])
def test_what_nccl_lacks_alone_is_no_choice(message: str) -> None:
    assert not judged("rdma", f"1 {message}\n").measured


def test_hosts_judge_it_by_themselves() -> None:
    row = transport("u", "c", "rdma")
    assert row.rule is not None
    assert RULES[row.rule.name](**row.rule.arguments).name == row.name


LISTENERS = """\
listens 10.9.0.1:41234
listens *:29500
listens [::ffff:10.9.0.1]:29501
listens 0.0.0.0:8000
listens 127.0.0.1:5555
listens [::1]:5556
nonsense
listens 10.9.0.1:x
"""


def test_what_only_the_host_itself_reaches_and_the_clients_port_are_not_knocked_on() -> None:
    lines, addresses = LISTENERS.splitlines(), ("10.9.0.1", "192.0.2.7")
    found = [str(address) for address in listening("h1", lines, addresses, 8000)]
    assert found == ["h1 10.9.0.1:41234", "h1 10.9.0.1:29500", "h1 192.0.2.7:29500", "h1 10.9.0.1:29501"]
    assert "h1 192.0.2.7:8000" in map(str, listening("h1", lines, addresses, None)), "a member serves no clients"


def test_a_port_that_answers_a_stranger_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.2 poses as the fabric address; the probe is this machine, by real connections."""
    group = Group("llm", (GroupMember("h1", "127.0.0.2"), GroupMember("h2", "127.0.0.2")), 0)
    rows: list[dict[str, str]] = []
    with socket.create_server(("127.0.0.2", 0)) as listener:
        places = [Listening("h2", "127.0.0.2", listener.getsockname()[1])]
        monkeypatch.setattr(port_isolation, "_places", lambda _state, name, *_: places if name == "h2" else [])
        monkeypatch.setattr(port_isolation, "_outsider", lambda *_: [])
        monkeypatch.setattr(port_isolation, "say", lambda *_: None)
        monkeypatch.setattr(port_isolation, "note", lambda _, **fields: rows.append(fields))
        head: Any = SimpleNamespace(name="h1")
        with pytest.raises(StepFailedError, match=r"h2 127\.0\.0\.2:\d+ answers ") as refused:
            port_isolation.refuse_non_members(head, group, 8000)
        assert refused.value.code == "RW2440"
    port_isolation.refuse_non_members(head, group, 8000)
    assert [row["mark"] for row in rows] == ["refused", "proved"]
