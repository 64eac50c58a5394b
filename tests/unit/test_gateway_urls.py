"""The URLs of models behind a gateway, and the last lines of a plain run that has one."""

from __future__ import annotations

from ipaddress import IPv4Interface
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from rackwright.record.record import Record
from rackwright.record.states import RunState
from rackwright.rollout import last_lines
from rackwright.rollout.last_lines import ServingHost, closing_lines, through_gateways, urls
from rackwright.settings.gateway import Gateway
from rackwright.settings.gateway_urls import gateway_urls

if TYPE_CHECKING:
    from rackwright.settings.host_settings import HostSettings

ADDRESS = "10.1.0.2"
NAMED: dict[str, Any] = {"names": ("llm.example.org", "llm"), "certificate": "c.pem", "certificate_key": "k"}


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        (NAMED, "https://llm.example.org/Qwen/v1, model Qwen"),
        ({**NAMED, "port": 8443}, "https://llm.example.org:8443/Qwen/v1, model Qwen"),
        ({"tls": False, "port": 80}, "http://10.1.0.2/Qwen/v1, model Qwen"),
        ({"tls": False, "port": 443}, "http://10.1.0.2:443/Qwen/v1, model Qwen"),
        ({"tls": False, "port": 80, "bind": "fd00::9"}, "http://[fd00::9]/Qwen/v1, model Qwen"),
        (
            {"tls": False, "port": 80, "address": IPv4Interface("10.1.0.9/24"), "virtual_router_id": 5},
            "http://10.1.0.9/Qwen/v1, model Qwen",
        ),
        (
            {**NAMED, "route_by": ("header",)},
            "https://llm.example.org/v1, model Qwen and the header X-Model: Qwen",
        ),
        ({**NAMED, "route_by": ("host",)}, "https://qwen.llm.example.org/v1, model Qwen"),
        ({**NAMED, "route_by": ("body", "header")}, "https://llm.example.org/v1, model Qwen"),
    ],
)
def test_a_url_names_the_model_by_a_way_that_the_gateway_has(settings: dict[str, Any], url: str) -> None:
    assert next(gateway_urls(Gateway(**settings), ["Qwen", "other"], ADDRESS)) == url


def test_one_model_alone_needs_no_header() -> None:
    assert list(gateway_urls(Gateway(**NAMED, route_by=("header",)), ["m"], ADDRESS)) == [
        "https://llm.example.org/v1, model m"
    ]


def run_host(name: str, **settings: Any) -> ServingHost:
    usual = {"is_gateway": False, "follows": False, "direct_is_closed": False, "all_endpoints": {}}
    return ServingHost(name, f"10.1.0.{name[-1]}", cast("HostSettings", SimpleNamespace(**{**usual, **settings})))


def gateway(name: str) -> ServingHost:
    return run_host(name, is_gateway=True, gateway=Gateway(**NAMED), backends=[SimpleNamespace(model="m")])


def test_two_gateways_with_one_name_are_one_url_and_a_gateways_own_host_is_not_one_of_an_endpoint() -> None:
    gateways = [gateway(name) for name in ("g1", "g2")]
    assert through_gateways([*gateways, run_host("h3")]) == ["https://llm.example.org/m/v1, model m"]


def test_ports_that_are_closed_to_clients_are_not_named() -> None:
    endpoint = SimpleNamespace(address="0.0.0.0", port=8000, model=None)
    assert urls([run_host("h1", direct_is_closed=True, all_endpoints={"llm": endpoint})]) == []


def test_the_text_of_the_gateway_stands_before_the_direct_ports_and_says_how_to_get_a_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(last_lines, "served_name", lambda _: "m")
    monkeypatch.setattr(last_lines, "sources_of", lambda _: ())
    endpoint = SimpleNamespace(address="0.0.0.0", port=8000, image_digest="sha256:1")
    begin = {"inventory": "/site/inventory/lab.py", "hosts": ["g1", "h1"]}
    record = Record("1", begin, {"status": 0}, {"": {"g1": RunState.DONE, "h1": RunState.SWITCHED}})
    assert closing_lines(record, "done", [gateway("g1"), run_host("h1", all_endpoints={"llm": endpoint})])[1:] == [
        "  serves:  https://llm.example.org/m/v1, model m: through the gateway, with a client's key",
        "           http://10.1.0.1:8000/v1, model m",
        '  ask it:  rackwright chat /site/inventory/lab.py -- "What is the capital of France?"',
        "           a client's key: rackwright keys add /site/inventory/lab.py NAME",
        "  left:    nothing",
    ]


def test_the_text_of_a_gateway_alone_has_its_url_and_no_endpoint_to_ask() -> None:
    begin = {"inventory": "/site/inventory/lab.py", "hosts": ["g1"]}
    record = Record("1", begin, {"status": 0}, {"": {"g1": RunState.DONE}})
    assert closing_lines(record, "done: 1 done", [gateway("g1")]) == [
        "rackwright: done: 1 done",
        "  serves:  https://llm.example.org/m/v1, model m: through the gateway, with a client's key",
        "  ask it:  a client's key: rackwright keys add /site/inventory/lab.py NAME",
        "  left:    nothing",
    ]
