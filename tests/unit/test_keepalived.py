"""The gateways' common address: who may have it, and what keepalived is given for it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from ipaddress import IPv4Interface

import pytest

from rackwright.concerns.gateway.concern import SeenGateway, changes
from rackwright.concerns.gateway.keepalived import (
    ADDRESS_LEFT,
    ADDRESS_UNIT_FILE,
    ANSWERS,
    CONFIG,
    HAND_OVER,
    HostAddress,
    KeepalivedFiles,
    keepalived_files,
)
from rackwright.loading.validate import validate
from rackwright.paths import KEEPALIVED_UNIT
from rackwright.plan.change import Owned, Refuse, Shell, WriteFile
from rackwright.settings.backend import Backend, GatewayHost
from rackwright.settings.host_settings import HostSettings
from tests.unit.test_gateway_concern import PACKAGES, PLAIN, server, settled, wanted_of

COMMON = {"address": "10.0.0.10/24", "virtual_router_id": 51}
PLACES = (HostAddress("eth0", IPv4Interface("10.0.0.11/24")), HostAddress("eth1", IPv4Interface("192.0.2.7/24")))
URL = "http://[::1]:80/healthz"


def gateways(number: int = 0, *others: str, **section: object) -> HostSettings:
    plain = HostSettings.model_validate({"gateway": {**PLAIN, **COMMON, **section}})
    addresses = ["10.0.0.11", *(others or ("10.0.0.12",))]
    hosts = [GatewayHost(f"g{n}", partial(str, one), is_self=n == number) for n, one in enumerate(addresses)]
    return plain.with_gateways(tuple(hosts), (Backend("m", "vllm", (server(),)),))


def config(settings: HostSettings, places: tuple[HostAddress, ...] = PLACES) -> list[str]:
    return [row.strip() for row in keepalived_files(settings, URL, places).files[CONFIG].splitlines()]


def refused(found: KeepalivedFiles) -> list[str]:
    return [step.code for change in found.refusals for step in change.steps if isinstance(step, Refuse)]


def reading_of(settings: HostSettings) -> SeenGateway:
    return replace(
        settled(wanted_of(settings)), places=PLACES, packages={**PACKAGES, "keepalived": "2.2.7", "nftables": "1.0"}
    )


def test_without_a_common_address_there_is_no_keepalived() -> None:
    assert keepalived_files(gateways(address=None, virtual_router_id=None), URL, PLACES) == KeepalivedFiles()


def test_gateways_tell_each_other_by_unicast_and_the_first_has_priority() -> None:
    rows = config(gateways())
    assert {"unicast_src_ip 10.0.0.11", "10.0.0.12", "10.0.0.10/24 dev eth0", "virtual_router_id 51"} <= {*rows}
    first, other = (next(row for row in config(gateways(number)) if row.startswith("priority")) for number in (0, 1))
    assert int(first.split()[1]) > int(other.split()[1])


def test_the_common_address_itself_is_no_address_of_the_host() -> None:
    owner = (HostAddress("eth0", IPv4Interface("10.0.0.10/24")), *PLACES)
    assert config(gateways(), owner) == config(gateways())


@pytest.mark.parametrize(
    "found",
    [
        keepalived_files(gateways(), URL, PLACES[1:]),
        keepalived_files(gateways(interface="eth1"), URL, PLACES),
        keepalived_files(gateways(0, "198.51.100.2"), URL, PLACES),
        keepalived_files(gateways(0, ""), URL, PLACES),
    ],
    ids=["no address there", "other interface", "behind a router", "unknown"],
)
def test_an_address_that_cannot_move_is_refused_before_anything_is_written(found: KeepalivedFiles) -> None:
    assert refused(found) == ["RW3638"]
    assert not found.files


def test_a_foreign_router_is_listened_for_before_anything_is_announced() -> None:
    settings = gateways()
    [change] = changes(wanted_of(settings, reading_of(settings)), reading_of(settings))
    assert isinstance(change.steps[0], Shell)
    assert change.steps[0].code == "RW3628"
    paths = [step.path for step in change.steps if isinstance(step, WriteFile)]
    assert paths == [ANSWERS, HAND_OVER, ADDRESS_UNIT_FILE, f"{CONFIG}.new", ADDRESS_LEFT]
    assert Owned("unit", KEEPALIVED_UNIT) in change.owns


def test_an_address_that_the_settings_no_longer_have_is_given_up() -> None:
    settings, files = gateways(), keepalived_files(gateways(), URL, PLACES).files
    without = gateways(address=None, virtual_router_id=None)
    base = settled(wanted_of(settings))
    before = replace(base, address_sums=dict.fromkeys(files, "0"), announces=True)
    before = replace(before, files={**base.files, **dict.fromkeys(files, next(iter(base.files.values())))})
    [change] = changes(wanted_of(without), before)
    assert {one.name for one in change.disowns} == {CONFIG, ANSWERS, HAND_OVER, KEEPALIVED_UNIT}


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"address": "10.0.0.10/24"}, "virtual_router_id"),
        ({"virtual_router_id": 5}, "virtual_router_id"),
        ({"interface": "eth0"}, "interface"),
        ({**COMMON, "bind": "10.0.0.11"}, "bind"),
    ],
)
def test_keys_of_the_address_that_do_not_fit_are_named(section: dict[str, object], key: str) -> None:
    _, [problem] = validate("g", {"gateway": {**PLAIN, **section}}, {})
    assert (problem.path, problem.code) == (("gateway", key), "RW0128")
