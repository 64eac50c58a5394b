"""Who may try whether a port is open, and the sentence on what came of it."""

from __future__ import annotations

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.messages import ReadingError
from rackwright.plan.reach import (
    HERE,
    NO_ANSWER,
    REFUSED,
    Door,
    Knocked,
    Prober,
    door_of,
    first_let_in,
    knock,
    likely_first,
    not_checked,
    reachable,
    source_to,
    unreachable,
    why_curl_failed,
)
from rackwright.settings.model import EndpointSettings
from rackwright.settings.sections import PRIVATE

DOOR = Door(8000, ("10.1.0.0/16", "2001:db8::/32"))
US, PEER = Prober(HERE, "192.0.2.1"), Prober("b200-02", "10.1.0.2")
ADDRESSES = st.ip_addresses().map(str)
NETWORKS = st.lists(st.tuples(st.ip_addresses(), st.integers(0, 32))).map(
    lambda found: tuple(str(ipaddress.ip_network(f"{address}/{length}", strict=False)) for address, length in found)
)


# -- who may try


@given(NETWORKS, st.lists(ADDRESSES | st.text()))
def test_whoever_is_chosen_is_let_in_and_nobody_before_it_is(networks: tuple[str, ...], addresses: list[str]) -> None:
    door, probers = Door(8000, networks), [Prober(str(number), text) for number, text in enumerate(addresses)]
    found = first_let_in(door, probers)
    before = probers if found is None else probers[: probers.index(found)]
    assert not any(door.lets_in(one.address) for one in before)
    assert found is None or door.lets_in(found.address)


@given(NETWORKS.filter(bool))
def test_the_first_and_the_last_address_of_a_network_are_let_in(networks: tuple[str, ...]) -> None:
    for network in map(ipaddress.ip_network, networks):
        assert Door(8000, networks).lets_in(str(network[0]))
        assert Door(8000, networks).lets_in(str(network[-1]))


@given(ADDRESSES)
def test_without_networks_every_address_is_let_in(address: str) -> None:
    assert Door(8000, ()).lets_in(address)


@pytest.mark.parametrize("address", ["", "b200-01.example.com", "10.1.0.0/16"])
def test_what_is_no_address_is_never_let_in(address: str) -> None:
    assert not Door(8000, ()).lets_in(address)


def test_sshd_may_write_an_address_in_the_way_of_ipv6() -> None:
    assert DOOR.lets_in("::ffff:10.1.0.7")
    assert Door(8000, PRIVATE).lets_in("fe80::1%eth0")


@given(st.lists(ADDRESSES))
def test_no_peer_is_lost_when_those_are_put_first_that_are_likely_to_be_let_in(addresses: list[str]) -> None:
    peers = [Prober(f"host{number}", address) for number, address in enumerate(addresses)]
    ordered = likely_first(DOOR, peers)
    assert sorted(ordered, key=lambda one: one.name) == sorted(peers, key=lambda one: one.name)
    let_in = [DOOR.lets_in(one.address) for one in ordered]
    assert let_in == sorted(let_in, reverse=True)


@pytest.mark.parametrize(
    ("settings", "door"),
    [
        ({}, Door(8000, PRIVATE)),
        ({"network": "host"}, None),
        ({"bind": "127.0.0.2"}, None),
        ({"network": "host", "allow_from": "any", "port": 9000}, Door(9000, (), "host")),
        ({"bind": "10.1.0.7"}, Door(8000, PRIVATE, address="10.1.0.7")),
        ({"bind": "::"}, Door(8000, PRIVATE)),
    ],
)
def test_the_door_of_an_endpoint(settings: dict[str, object], door: Door | None) -> None:
    assert door_of(EndpointSettings.model_validate(settings)) == door


# -- connections


def test_from_here() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert knock("127.0.0.1", port) == ""
    assert knock("127.0.0.1", port) == REFUSED
    assert source_to("127.0.0.1") == "127.0.0.1"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["", "connected=0.000213", "status=0"], ""),
        (["curl: (52) Empty reply from server", "", "connected=0.000180", "status=52"], ""),
        (["curl: (28) Operation timed out after 5000 milliseconds", "connected=0.2", "status=28"], ""),
        (["curl: (28) Connection timed out after 3001 milliseconds", "connected=0.000000", "status=28"], NO_ANSWER),
        (
            ["curl: (7) Failed to connect to 10.1.0.7 port 8000: Connection refused", "connected=0.000000", "status=7"],
            REFUSED,
        ),
        (
            ["curl: (7) Failed to connect to 10.1.0.7 port 8000: No route to host", "connected=0.000000", "status=7"],
            "no route to host",
        ),
    ],
)
def test_from_a_peer(lines: list[str], why: str) -> None:
    assert why_curl_failed(lines) == why


@given(st.lists(st.text()))
def test_what_curl_did_not_say_is_no_verdict(lines: list[str]) -> None:
    with pytest.raises(ReadingError):
        why_curl_failed(["sh: curl: not found", *(line for line in lines if "=" not in line), "status=127"])


# -- in words


def test_reached_from_here_or_by_a_peer() -> None:
    assert reachable(DOOR, US, []) == "port 8000 is reachable from this machine"
    assert reachable(DOOR, PEER, []) == (
        "port 8000 is reachable from b200-02 (10.1.0.2); this machine is not let in (allow_from: "
        "10.1.0.0/16, 2001:db8::/32)"
    )
    told = reachable(DOOR, PEER, [Knocked(US, NO_ANSWER)])
    assert told.startswith(
        "warning: port 8000 is reachable from b200-02 (10.1.0.2), and not from this machine (192.0.2.1) [no answer]"
    )


def test_a_closed_port_says_who_tried_and_where_to_look() -> None:
    told = unreachable(DOOR, [Knocked(US, NO_ANSWER)], "10.1.0.7", ["the rule"], "sudo look")
    assert "not reachable from this machine (192.0.2.1) [no answer]" in told
    assert told.endswith("on this host the rule may close it; next, on this host: sudo look")
    told = unreachable(DOOR, [Knocked(PEER, REFUSED)], "10.1.0.7", [], "")
    assert "a firewall between b200-02 (10.1.0.2) and 10.1.0.7, or the network, may close it" in told


def test_nobody_to_try_is_not_checked_and_never_a_verdict() -> None:
    told = not_checked(DOOR, US, [], "2001:db8::7")
    assert told.startswith("port 8000 is not checked: allow_from (10.1.0.0/16, 2001:db8::/32) lets in none of")
    assert "no other host of this run is connected" in told
    assert told.endswith("curl http://[2001:db8::7]:8000/health")
    assert "b200-02 (10.1.0.2)" in not_checked(DOOR, US, [PEER], "10.1.0.7")
