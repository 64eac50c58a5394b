"""The gateways' common address: one owner is well; two, or none of them, is reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from ipaddress import IPv4Interface

import pytest

from rackwright.adapter.run.poll import Reply
from rackwright.cli.drift import exit_code, with_owners
from rackwright.concerns.deploy_steps import Declared
from rackwright.concerns.gateway.concern import SeenGateway, has_common_address
from rackwright.concerns.gateway.keepalived import HostAddress
from rackwright.concerns.lease import SeenLease
from rackwright.inspect.common_address import sentences_of
from rackwright.inspect.drift import HostDrift
from rackwright.inspect.read_hosts import Surveyed
from rackwright.inspect.status import output
from rackwright.inspect.status.reading import Asked, HostStatus, parse
from rackwright.inspect.status.rows import StatusRow, rows_of
from rackwright.inspect.status.table import render, sums
from rackwright.plan.concern import HostReading
from rackwright.settings.backend import GatewayHost
from rackwright.settings.host_settings import HostSettings
from tests.unit.test_keepalived import COMMON, PLACES

NOW = datetime(2026, 11, 27, 7, 0, tzinfo=UTC)
PAIR = ("a", "b")
HERE = HostAddress("eth0", IPv4Interface("10.0.0.10/24"))


def pair(**section: object) -> dict[str, HostSettings]:
    plain = HostSettings.model_validate({"gateway": {"tls": False, "port": 80, **section}})
    hosts = [GatewayHost(name, partial(str, name)) for name in PAIR]
    those = {name: tuple(replace(one, is_self=one.host == name) for one in hosts) for name in PAIR}
    return {name: plain.with_gateways(those[name], ()) for name in PAIR}


def rows(settings: Mapping[str, HostSettings], *owners: str) -> list[StatusRow]:
    status = HostStatus(9, SeenLease(0, 9, None), (), (), {}, gateway="active 200")
    found = [
        rows_of(name, Asked(one), replace(status, has_address=name in owners), NOW)[0] for name, one in settings.items()
    ]
    return output.with_owners(found, settings)


@pytest.mark.parametrize(
    ("has", "reported"),
    [
        ({"a": True, "b": False}, set()),
        ({"a": True, "b": True}, {"a", "b"}),
        ({"a": False, "b": False}, {"a", "b"}),
        ({"a": False}, set()),
        ({"a": True}, set()),
        ({}, set()),
    ],
)
def test_two_owners_are_reported_and_none_once_all_were_read(has: dict[str, bool], reported: set[str]) -> None:
    assert {*sentences_of(pair(**COMMON), has.items())} == reported
    assert sentences_of(pair(), has.items()) == {}


def test_the_owner_is_in_its_row_and_two_of_them_below_the_table() -> None:
    one, two = rows(pair(**COMMON), "b"), rows(pair(**COMMON), "a", "b")
    assert [(row.address, row.note) for row in one] == [("", ""), ("10.0.0.10", "")]
    assert render(one).count("has 10.0.0.10") == 1
    assert [bool(row.note) for row in two] == [True, True]
    assert two[0].note in render(two)


def test_a_gateway_that_cannot_be_read_is_no_endpoint_and_may_have_the_address() -> None:
    settings = pair(**COMMON)
    lost = output.rows_on("a", Asked(settings["a"]), Reply(trouble="cannot be reached"), NOW)
    found = output.with_owners([*lost, rows(settings)[1]], settings)
    assert [(row.endpoint, row.gpus, row.note) for row in found] == [("gateway", None, ""), ("gateway", 0, "")]
    assert sums(found) == "0 endpoints"


def test_the_host_says_that_it_has_the_address() -> None:
    assert parse(["uptime 9", "gateway active 200", "has_address yes", "end"]).has_address
    assert not parse(["uptime 9", "gateway active 200", "end"]).has_address


def test_a_host_whose_gateway_was_not_read_does_not_have_it() -> None:
    here = HostReading({"gateway": SeenGateway(places=(HERE,))})
    gateway, other = pair(**COMMON)["a"], HostSettings.model_validate({"gateway": COMMON})
    assert has_common_address(gateway, here)
    assert not has_common_address(gateway, HostReading({}))
    assert not has_common_address(other, here)


def test_two_owners_are_drift() -> None:
    def surveyed(*owners: str) -> list[Surveyed]:
        places = {name: SeenGateway(places=(HERE, *PLACES) if name in owners else PLACES) for name in PAIR}
        return [
            Surveyed(name, one, Declared(("gateway",)), HostReading({"gateway": places[name]}))
            for name, one in pair(**COMMON).items()
        ]

    as_left = [HostDrift(name, "read") for name in PAIR]
    assert exit_code(with_owners(as_left, surveyed("a"))) == 0
    moved = with_owners(as_left, surveyed("a", "b"))
    assert [finding.verdict for host in moved for finding in host.findings] == ["moved", "moved"]
    assert exit_code(moved) == 2
