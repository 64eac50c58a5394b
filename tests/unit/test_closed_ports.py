"""Ports that let in the gateways alone: who is shut out, when, and how they open again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rackwright.concerns.deploy_steps import Declared, counting, problems_of
from rackwright.concerns.firewall import (
    FIREWALL,
    SeenFirewall,
    are_as_left,
    closing_changes,
    reopening_changes,
)
from rackwright.concerns.firewall.kept import SCRIPT, door_file, is_closed, kept_drops
from rackwright.loading.gateways import problems_between
from rackwright.loading.group import Unjudged
from rackwright.operations.gateway_probe import allowed, lacking
from rackwright.plan.change import Change, Refuse
from rackwright.settings.host_settings import HostSettings
from tests.nft_model import Packet
from tests.nft_model import verdict as nft_verdict
from tests.unit.test_firewall import apply, firewall, reading
from tests.unit.test_gateways import codes, gateway, host, placed, settings

CLOSE = {"tls": False, "port": 80, "close_direct": True, "monitors": ["198.51.100.0/24"]}
GATEWAY, MONITOR, CLIENT = "192.0.2.9", "198.51.100.7", "10.1.2.3"


def served(how: dict[str, Any] = CLOSE, **more: Any) -> HostSettings:
    """Return the settings of a host behind a gateway."""
    return placed(host("a", "10.0.0.1", settings(**more)), gateway(gateway=how))["a"]


def deployed(one: HostSettings) -> SeenFirewall:
    """Return the firewall of a host after firewall()."""
    return apply(FIREWALL.pending(one, reading(firewall())), firewall())


def closed(one: HostSettings) -> SeenFirewall:
    """Return the firewall of a host after close_direct()."""
    before = deployed(one)
    return apply(closing_changes(one, reading(before)), before)


def lets_in(found: SeenFirewall) -> list[str]:
    """Return which of the clients reach the endpoint's port."""
    packets = {source: Packet(source, "10.0.0.1", 8000) for source in (GATEWAY, MONITOR, CLIENT)}
    return [source for source, packet in packets.items() if nft_verdict(found.drops or "", packet) == "accept"]


@pytest.mark.parametrize("more", [{}, {"allow_from": ["10.0.0.0/8"]}, {"allow_from": "any"}], ids=str)
def test_a_closed_port_lets_in_gateways_and_monitors_alone(more: dict[str, Any]) -> None:
    one = served(**more)
    assert CLIENT in lets_in(deployed(one))
    assert lets_in(closed(one)) == [GATEWAY, MONITOR]


def test_a_deploy_closes_nothing_before_its_own_step() -> None:
    one = served()
    assert FIREWALL.pending(one, reading(deployed(one))) == []
    (change, *_) = closing_changes(one, reading(deployed(one)))
    assert GATEWAY in change.diff


def test_a_second_run_changes_nothing() -> None:
    one = served()
    found = closed(one)
    assert is_closed(str(found.files[SCRIPT]))
    for changes in (FIREWALL.pending(one, reading(found)), closing_changes(one, reading(found))):
        assert changes == []
    assert are_as_left(found)


def test_a_port_that_was_open_to_all_is_closed_before_its_endpoint_starts() -> None:
    one = served(allow_from="any")
    assert not deployed(one).files.get(door_file("llm"))
    assert closed(one).files.get(door_file("llm"))


@pytest.mark.parametrize("without", ["the setting", "the gateway"])
def test_the_ports_open_when_the_setting_goes_or_the_gateway(without: str) -> None:
    found = closed(served())
    after = served({"tls": False, "port": 80}) if without == "the setting" else settings()
    found = apply(FIREWALL.pending(after, reading(found)), found)
    assert CLIENT in lets_in(found)
    assert not is_closed(str(found.files[SCRIPT]))


def test_a_gateway_that_loses_its_endpoint_has_it_opened_again() -> None:
    one = served()
    found = closed(one)
    found = apply(reopening_changes(one, reading(found)), found)
    assert CLIENT in lets_in(found)
    assert closing_changes(one, reading(found))


def test_ports_that_an_operator_has_opened_stay_so_for_their_time() -> None:
    one = served()
    found = closed(one)
    opened = replace(found, drops=kept_drops(str(found.files[SCRIPT]), opened=True)["nft"], opened=60)
    assert CLIENT in lets_in(opened)
    assert FIREWALL.pending(one, reading(opened)) == []
    assert are_as_left(opened)
    assert not are_as_left(replace(opened, opened=0))


def test_closed_ports_need_the_gateways_address() -> None:
    one = placed(host("a", "10.0.0.1", settings()), gateway(gateway=CLOSE), gateway("h", "", gateway=CLOSE))["a"]
    (change,) = closing_changes(one, reading(firewall()))
    assert [step.code for step in change.steps if isinstance(step, Refuse)] == ["RW2519"]


def test_gateways_agree_on_it() -> None:
    assert codes(host("a", "10.0.0.1", settings()), gateway(gateway=CLOSE), gateway("h", "192.0.2.8")) == [
        ("h", "gateway.close_direct", "RW0244")
    ]
    assert not list(problems_between([gateway(gateway=CLOSE), gateway("h", "192.0.2.8", gateway=CLOSE)]))


def test_ports_stay_closed_while_the_gateways_settings_are_not_valid() -> None:
    lost = Unjudged("g", ("gateway",), {"ssh_hostname": GATEWAY, "gateway": {**CLOSE, "port": "many"}})
    found = placed(host("a", "10.0.0.1", settings()), unjudged=[lost])["a"]
    assert found.direct_is_closed
    assert found.gateways[0].monitors == ("198.51.100.0/24",)


STEPS = Declared(("docker", "firewall", "endpoint", "gateway", "close_direct", "converged"))


def test_the_step_counts_where_the_setting_closes_ports() -> None:
    assert "close_direct" in counting(STEPS, served())
    assert "close_direct" not in counting(STEPS, settings())


def test_a_setting_without_its_step_is_refused() -> None:
    without = Declared(tuple(step for step in STEPS.steps if step != "close_direct"))
    assert "RW2009" in [one.code for one in problems_of(without, served())]
    assert "RW2009" not in [one.code for one in problems_of(without, settings())]


REACHED = {"healthz": "200", "server": "UP", "endpoint": "200", "source": GATEWAY}


@pytest.mark.parametrize(
    ("more", "reaches"),
    [
        ({}, True),
        ({"endpoint": "401"}, True),
        ({"source": "127.0.0.1"}, True),
        ({"healthz": "503"}, False),
        ({"server": "DOWN"}, False),
        ({"server": "DRAIN (agent)"}, False),
        ({"server": ""}, False),
        ({"endpoint": "000"}, False),
        ({"source": CLIENT}, False),
        ({"source": ""}, False),
    ],
    ids=str,
)
def test_a_gateway_reaches_an_endpoint_in_four_ways_at_once(more: dict[str, str], reaches: bool) -> None:
    assert (lacking({**REACHED, **more}, allowed(served())) == "") is reaches


def test_no_change_of_the_firewall_is_without_a_reason() -> None:
    changes: list[Change] = closing_changes(served(), reading(deployed(served())))
    assert all(change.why for change in changes)
