"""Gateways of an inventory: their backends, who may ask, who is let in, and what does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rackwright.concerns.firewall.gateways import with_gateways as let_in
from rackwright.concerns.firewall.place import listeners
from rackwright.concerns.watch.word import askers
from rackwright.loading.gateways import problems_between, with_gateways
from rackwright.loading.group import Unjudged
from rackwright.loading.host import InventoryHost
from rackwright.loading.notes import notes
from rackwright.loading.validate import validate
from rackwright.settings.group import Group, GroupMember
from rackwright.settings.host_settings import HostSettings

PLAIN = {"tls": False, "port": 80}
KEY = "sk-of-the-gateways-tests"


def settings(model: str = "m/a", **more: object) -> HostSettings:
    return HostSettings.model_validate(
        {"model": {"repository": model, "mount": f"/models/{model}"}, "gateway": PLAIN, **more}
    )


def host(name: str, address: str, one: HostSettings, *groups: str) -> InventoryHost:
    return InventoryHost(name, groups, {"ssh_hostname": address}, one, {})


def gateway(name: str = "g", address: str = "192.0.2.9", **more: object) -> InventoryHost:
    return host(name, address, HostSettings.model_validate({"gateway": PLAIN, **more}), "gateway")


def placed(*hosts: InventoryHost, unjudged: Sequence[Unjudged] = ()) -> dict[str, HostSettings]:
    return {one.name: one.settings for one in with_gateways(hosts, unjudged)}


def codes(*hosts: InventoryHost) -> list[tuple[str, str, str]]:
    return [(one.host, ".".join(map(str, one.path)), one.code) for one in problems_between(hosts)]


def test_a_model_is_a_backend_and_its_hosts_are_the_servers() -> None:
    same = settings(api_key=KEY, word={"port": 8011})
    other = settings(endpoints={"x": {"model": {"repository": "m/b", "mount": "/models/m/b"}, "port": 8001}})
    by_name = placed(host("a", "10.0.0.1", same), host("b", "10.0.0.2", same), host("c", "::5", other), gateway())
    assert by_name["g"].is_gateway_alone
    assert [
        (backend.model, [(one.host, one.endpoint, one.address, one.port, one.word_port) for one in backend.servers])
        for backend in by_name["g"].backends
    ] == [
        ("a", [("a", "llm", "10.0.0.1", 8000, 8011), ("b", "llm", "10.0.0.2", 8000, 8011)]),
        ("b", [("c", "x", "::5", 8001, 8010)]),
    ]
    assert by_name["g"].backends[0].servers[0].api_key == same.api_key
    assert {one.gateway for backend in by_name["g"].backends for one in backend.servers} == {"g"}
    assert by_name["a"] is by_name["b"]
    assert not by_name["a"].is_gateway
    assert [one.address for one in by_name["a"].gateways] == ["192.0.2.9"]


def test_check_warns_of_two_models_with_one_name() -> None:
    other = settings("n/a")
    for served, warned in ((other, True), (settings(), False)):
        made = placed(host("a", "10.0.0.1", settings()), host("b", "10.0.0.2", served), gateway())
        assert any("m/a and n/a" in note for note in notes(made["g"])) == warned


def test_without_the_group_nothing_changes() -> None:
    hosts = [host("a", "10.0.0.1", settings())]
    assert with_gateways(hosts) == hosts
    assert with_gateways(hosts)[0].settings is hosts[0].settings


def test_of_hosts_that_serve_together_the_head_is_a_server() -> None:
    one = settings(network="host", bind="0.0.0.0")
    members = (GroupMember("a", "10.0.0.1"), GroupMember("b", "10.0.0.2"))
    pair = [host(who.host, who.address, one.in_group(Group("llm", members, rank))) for rank, who in enumerate(members)]
    assert [one.host for one in placed(*pair, gateway())["g"].backends[0].servers] == ["a"]


def test_a_gateway_that_serves_reaches_its_own_endpoint_where_it_listens() -> None:
    both = host("a", "10.0.0.1", settings(), "gateway")
    fabric = host("b", "10.0.0.2", settings(bind="10.8.0.2"))
    [backend] = placed(both, fabric)["a"].backends
    assert [one.address for one in backend.servers] == ["127.0.0.1", "10.8.0.2"]
    assert not placed(both)["a"].is_gateway_alone


def test_the_gateways_may_ask_and_reach_the_port_without_being_written_anywhere() -> None:
    inside, outside = gateway("g", "10.9.9.9"), gateway("h", "192.0.2.9")
    served = placed(host("a", "10.0.0.1", settings()), inside, outside)["a"]
    assert askers(served) == ("10.9.9.9", "192.0.2.9")
    [(_, port)] = let_in(served, listeners(served))
    assert port.networks[-1] == "192.0.2.9/32"
    assert "10.9.9.9/32" not in port.networks, "private networks have it"
    listed = placed(host("a", "10.0.0.1", settings(allow_from=["10.1.0.0/16"])), inside)["a"]
    assert let_in(listed, listeners(listed))[0][1].networks == ("10.1.0.0/16", "10.9.9.9/32")


@pytest.mark.parametrize("how", [{"allow_from": "any"}, {"network": "host"}], ids=["open to all", "loopback alone"])
def test_a_port_is_left_as_it_is_where_the_gateway_changes_nothing(how: dict[str, Any]) -> None:
    served = placed(host("a", "10.0.0.1", settings(**how)), gateway())["a"]
    assert let_in(served, listeners(served)) == listeners(served)


def test_the_ports_of_a_group_stay_closed_to_gateways() -> None:
    members = (GroupMember("a", "10.0.0.1"), GroupMember("b", "10.0.0.2"))
    one = settings(network="host", bind="0.0.0.0", hosts=2).in_group(Group("llm", members, 0))
    served = placed(host("a", "10.0.0.1", one), gateway())["a"]
    by_port = {one.port: one.networks for _, one in let_in(served, listeners(served))}
    assert "192.0.2.9/32" in by_port[8000]
    assert by_port[29500] == ("10.0.0.1/32", "10.0.0.2/32")


def test_a_gateway_whose_settings_are_not_valid_may_ask_as_before() -> None:
    lost = Unjudged("g", ("gateway",), {"ssh_hostname": "192.0.2.9", "port": "many"})
    assert askers(placed(host("a", "10.0.0.1", settings()), unjudged=[lost])["a"]) == ("192.0.2.9",)


def test_the_place_stays_with_the_arguments_of_a_deploy_file() -> None:
    before = placed(host("a", "10.0.0.1", settings(), "gateway"))["a"]
    after = settings(load_timeout=5).placed_as(before)
    assert after.backends == before.backends
    assert after.gateways == before.gateways
    assert after.is_gateway


def test_what_fits_has_no_problem() -> None:
    assert codes(host("a", "10.0.0.1", settings()), host("b", "10.0.0.2", settings()), gateway()) == []


@pytest.mark.parametrize(
    ("hosts", "problem"),
    [
        ([gateway(n) for n in "ghi"], ("i", "", "RW0244")),
        ([gateway(gateway={})], ("g", "gateway.certificate", "RW0124")),
        (
            [host("g", "10.0.0.1", settings(gateway={**PLAIN, "port": 8000}), "gateway")],
            ("g", "gateway.port", "RW0244"),
        ),
        ([gateway(gateway={**PLAIN, "port": 8010})], ("g", "gateway.port", "RW0244")),
        (
            [host("a", "10.0.0.1", settings()), host("b", "10.0.0.2", settings(engine_kind="vllm")), gateway()],
            ("b", "engine_kind", "RW0244"),
        ),
        (
            [host("a", "10.0.0.1", settings(api_key=KEY)), host("b", "10.0.0.2", settings()), gateway()],
            ("b", "api_key", "RW0244"),
        ),
        ([host("a", "10.0.0.1", settings(network="host")), gateway()], ("a", "bind", "RW0244")),
    ],
    ids=["three", "no certificate", "endpoint's port", "word's port", "two engines", "two keys", "loopback"],
)
def test_what_does_not_fit_is_said_of_its_host_and_key(
    hosts: list[InventoryHost], problem: tuple[str, str, str]
) -> None:
    assert codes(*hosts) == [problem]


def test_a_certificate_and_its_key_belong_together() -> None:
    _, [problem] = validate("g", {"gateway": {"certificate": "tls/llm.pem"}}, {})
    assert (problem.path, problem.code) == (("gateway", "certificate_key"), "RW0124")


def test_a_drain_waits_longer_behind_a_gateway_unless_the_settings_say_how_long() -> None:
    two = {"a": {}, "b": {"port": 8001, "drain_timeout": 20}}
    hosts = [host("a", "10.0.0.1", settings(endpoints=two)), host("b", "10.0.0.2", settings(drain_timeout=45))]
    by_name = placed(*hosts, gateway())
    found = {name: [one.drain_timeout for one in by_name[name].all_endpoints.values()] for name in ("a", "b")}
    assert found == {"a": [600, 20], "b": [45]}
    assert [one.drain_timeout for one in placed(*hosts)["a"].all_endpoints.values()] == [30, 20]
