"""Who may try whether a port is open, and the sentence on what came of it."""

from __future__ import annotations

import ipaddress
import os
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path
from shutil import which
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.hostside import host_script
from rackwright.messages import ReadingError
from rackwright.plan.reach import (
    HERE,
    LOOK,
    NO_ANSWER,
    REFUSED,
    ClientPort,
    Prober,
    ProbeResult,
    client_port_of,
    first_let_in,
    likely_first,
    not_checked,
    reachable,
    unreachable,
    why_probe_failed,
)
from rackwright.remote.local_probe import probe, source_to
from rackwright.remote.port_probe import _Probe, reach_of
from rackwright.settings.allow_from import PRIVATE
from rackwright.settings.host_settings import EndpointSettings
from tests import texts

CLIENT_PORT = ClientPort(8000, ("10.1.0.0/16", "2001:db8::/32"))
US, PEER = Prober(HERE, "192.0.2.1"), Prober("b200-02", "10.1.0.2")
ADDRESSES = st.ip_addresses().map(str)
NETWORKS = st.lists(st.tuples(st.ip_addresses(), st.integers(0, 32))).map(
    lambda found: tuple(str(ipaddress.ip_network(f"{address}/{length}", strict=False)) for address, length in found)
)


# -- who may try


@given(NETWORKS, st.lists(ADDRESSES | st.text()))
def test_whoever_is_chosen_is_let_in_and_nobody_before_it_is(networks: tuple[str, ...], addresses: list[str]) -> None:
    client_port, probers = (
        ClientPort(8000, networks),
        [Prober(str(number), text) for number, text in enumerate(addresses)],
    )
    found = first_let_in(client_port, probers)
    before = probers if found is None else probers[: probers.index(found)]
    assert not any(client_port.lets_in(one.address) for one in before)
    assert found is None or client_port.lets_in(found.address)


@given(NETWORKS.filter(bool))
def test_the_first_and_the_last_address_of_a_network_are_let_in(networks: tuple[str, ...]) -> None:
    for network in map(ipaddress.ip_network, networks):
        assert ClientPort(8000, networks).lets_in(str(network[0]))
        assert ClientPort(8000, networks).lets_in(str(network[-1]))


@given(ADDRESSES)
def test_without_networks_every_address_is_let_in(address: str) -> None:
    assert ClientPort(8000, ()).lets_in(address)


@pytest.mark.parametrize("address", ["", "b200-01.example.com", "10.1.0.0/16"])
def test_what_is_no_address_is_never_let_in(address: str) -> None:
    assert not ClientPort(8000, ()).lets_in(address)


def test_sshd_may_write_an_address_in_the_way_of_ipv6() -> None:
    assert CLIENT_PORT.lets_in("::ffff:10.1.0.7")
    assert ClientPort(8000, PRIVATE).lets_in("fe80::1%eth0")


@given(st.lists(ADDRESSES))
def test_no_peer_is_lost_when_those_are_put_first_that_are_likely_to_be_let_in(addresses: list[str]) -> None:
    peers = [Prober(f"host{number}", address) for number, address in enumerate(addresses)]
    ordered = likely_first(CLIENT_PORT, peers)
    assert sorted(ordered, key=lambda one: one.name) == sorted(peers, key=lambda one: one.name)
    let_in = [CLIENT_PORT.lets_in(one.address) for one in ordered]
    assert let_in == sorted(let_in, reverse=True)


@pytest.mark.parametrize(
    ("settings", "client_port"),
    [
        ({}, ClientPort(8000, PRIVATE)),
        ({"network": "host"}, None),
        ({"bind": "127.0.0.2"}, None),
        ({"network": "host", "allow_from": "any", "port": 9000}, ClientPort(9000, (), "host")),
        ({"bind": "10.1.0.7"}, ClientPort(8000, PRIVATE, address="10.1.0.7")),
        ({"bind": "::"}, ClientPort(8000, PRIVATE)),
    ],
)
def test_the_door_of_an_endpoint(settings: dict[str, object], client_port: ClientPort | None) -> None:
    assert client_port_of(EndpointSettings.model_validate(settings)) == client_port


# -- connections


def test_from_here() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert probe("127.0.0.1", port) == ""
    assert probe("127.0.0.1", port) == REFUSED
    assert source_to("127.0.0.1") == "127.0.0.1"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_from_a_peer(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as server:
        port = server.getsockname()[1]
        assert why_probe_failed(result(address, port)) == ""
    assert why_probe_failed(result(address, port)) == REFUSED


def test_a_peer_that_nobody_answers_waits_no_longer_than_it_may() -> None:
    """A full queue drops what else comes, as a rule that drops does."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, ExitStack() as stack:
        for _ in range(3):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        assert why_probe_failed(result(*server.getsockname())) == NO_ANSWER


def test_a_peer_without_bash_is_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "timeout").symlink_to(which("timeout") or "")
    with pytest.raises(ReadingError, match="bash"):
        why_probe_failed(result("127.0.0.1", 9, path=str(tmp_path)))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("No route to host", "no route to host"),
        ("Connection timed out", NO_ANSWER),
        ("Invalid argument", "invalid argument"),
    ],
)
def test_a_peer_says_what_its_kernel_said(words: str, why: str) -> None:
    printed = [f"10.1.0.7: connect: {words}", f"10.1.0.7: line 1: /dev/tcp/10.1.0.7/8000: {words}", "status=1"]
    assert why_probe_failed(printed) == why


@given(st.lists(st.text()), st.sampled_from([["status=1"], ["status=126"], ["status=127"], []]))
def test_what_bash_did_not_say_is_no_verdict(lines: list[str], status: list[str]) -> None:
    with pytest.raises(ReadingError):
        why_probe_failed(["sh: bash: not found", *(row for row in lines if "=" not in row), *status])


def result(address: str, port: int, *_: object, path: str = os.environ["PATH"]) -> list[str]:
    """Run the script that is sent to a peer on this machine, and return its output."""
    script = host_script("port_probe", address=address, port=port, seconds=1)
    run = subprocess.run(
        ["/bin/sh"], input=script, env={"PATH": path}, capture_output=True, text=True, timeout=20, check=True
    )
    return run.stdout.splitlines()


def test_a_peer_that_cannot_try_takes_nothing_from_what_this_machine_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = reach_text(monkeypatch, US)
    by = "this machine (192.0.2.1) [no answer]"
    assert found.startswith(texts.UNREACHABLE_PORT.format(port=8000, by=by))
    assert "bash: not found" in reach_text(monkeypatch, Prober(HERE, "")), "no other peer has tried"


def reach_text(monkeypatch: pytest.MonkeyPatch, here: Prober) -> str:
    """Return the text where this machine gets no answer, and where the one peer has no bash."""
    monkeypatch.setattr("rackwright.remote.port_probe.probe", lambda *_: NO_ANSWER)
    monkeypatch.setattr(_Probe, "_here", here)
    monkeypatch.setattr(_Probe, "_known_peers", [PEER])
    monkeypatch.setattr(_Probe, "_inside", "10.1.0.7")
    answers = iter([[PEER.address], ["bash: not found", "status=127"]])
    monkeypatch.setattr(_Probe, "_on", lambda *_: next(answers))
    host: Any = SimpleNamespace(data={}, name="b200-01")
    return reach_of(host, ClientPort(8000, ()) if here.address else CLIENT_PORT)


# -- in words


def test_the_text_of_a_port_reached_from_here_or_by_a_peer() -> None:
    assert reachable(CLIENT_PORT, US, []) == "port 8000 is reachable from this machine"
    assert reachable(CLIENT_PORT, PEER, []) == (
        "port 8000 is reachable from b200-02 (10.1.0.2); this machine is not let in (allow_from: "
        "10.1.0.0/16, 2001:db8::/32)"
    )
    verdict = reachable(CLIENT_PORT, PEER, [ProbeResult(US, NO_ANSWER)])
    assert verdict.startswith(
        "warning: port 8000 is reachable from b200-02 (10.1.0.2), and not from this machine (192.0.2.1) [no answer]"
    )


def test_the_text_of_a_closed_port_says_who_tried_and_where_to_look() -> None:
    found = unreachable(CLIENT_PORT, [ProbeResult(US, NO_ANSWER)], "10.1.0.7")
    assert "not reachable from this machine (192.0.2.1) [no answer]" in found
    assert found.endswith(LOOK)
    assert "a firewall between b200-02 (10.1.0.2) and 10.1.0.7" in unreachable(
        CLIENT_PORT, [ProbeResult(PEER, NO_ANSWER)], "10.1.0.7"
    )


def test_a_refused_connection_is_no_firewall_between_unless_another_got_no_answer_text() -> None:
    refused = unreachable(CLIENT_PORT, [ProbeResult(PEER, REFUSED)], "10.1.0.7")
    assert "nothing listens at 10.1.0.7:8000" in refused
    assert LOOK in refused
    assert "firewall between" not in refused
    by_ipv6 = unreachable(CLIENT_PORT, [ProbeResult(PEER, REFUSED)], "fd79::5")
    assert 'nothing listens at [fd79::5]:8000, as bind 0.0.0.0 is IPv4 alone; next: set bind: "::"' in by_ipv6
    assert "firewall between" in unreachable(
        CLIENT_PORT, [ProbeResult(PEER, REFUSED), ProbeResult(US, NO_ANSWER)], "10.1.0.7"
    )


def test_nobody_to_try_is_not_checked_and_never_a_verdict_text() -> None:
    verdict = not_checked(CLIENT_PORT, US, [], "2001:db8::7")
    assert verdict.startswith("port 8000 is not checked: allow_from (10.1.0.0/16, 2001:db8::/32) lets in none of")
    assert "no other host of this run is connected" in verdict
    assert verdict.endswith("curl http://[2001:db8::7]:8000/health")
    assert "b200-02 (10.1.0.2)" in not_checked(CLIENT_PORT, US, [PEER], "10.1.0.7")
