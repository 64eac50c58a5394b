"""The URLs of models behind a gateway, and the last lines of a plain run that has one."""

from __future__ import annotations

from ipaddress import IPv4Interface
from types import SimpleNamespace
from typing import Any

import pytest

from rackwright.record.record import Record
from rackwright.record.states import RunState
from rackwright.rollout import deploy_record
from rackwright.rollout.deploy_record import closing_lines, through_gateways, urls
from rackwright.settings.gateway import Gateway
from rackwright.settings.gateway_urls import gateway_urls

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


def pyinfras(name: str, **settings: Any) -> Any:
    return SimpleNamespace(name=name, data={"ssh_hostname": f"10.1.0.{name[-1]}"}, settings=SimpleNamespace(**settings))


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploy_record, "settings_of", lambda host: host.settings)


def test_two_gateways_with_one_name_are_one_url_and_a_gateways_own_host_is_not_one_of_an_endpoint() -> None:
    backends = [SimpleNamespace(model="m")]
    gateways = [pyinfras(name, is_gateway=True, gateway=Gateway(**NAMED), backends=backends) for name in ("g1", "g2")]
    host = pyinfras("h3", is_gateway=False)
    assert through_gateways([*gateways, host]) == ["https://llm.example.org/m/v1, model m"]


def test_ports_that_are_closed_to_clients_are_not_named() -> None:
    endpoint = SimpleNamespace(address="0.0.0.0", port=8000, model=None)
    closed = pyinfras("h1", follows=False, direct_is_closed=True, all_endpoints={"llm": endpoint})
    assert urls([closed]) == []


def test_the_text_of_the_gateway_stands_before_the_direct_ports_and_says_how_to_get_a_key() -> None:
    begin = {"inventory": "/site/inventory/lab.py", "hosts": ["h1"]}
    record = Record("1", begin, {"status": 0}, {"": {"h1": RunState.SWITCHED}})
    assert closing_lines(record, "done: 1 switched", ["http://h1:8000/v1, model m"], ["https://llm/m/v1, model m"])[
        1:
    ] == [
        "  https://llm/m/v1, model m: through the gateway, with a client's key",
        "  http://h1:8000/v1, model m",
        "  a client's key: rackwright keys add /site/inventory/lab.py NAME",
    ]


def test_the_text_of_a_gateway_alone_has_its_url_and_no_endpoint_to_ask() -> None:
    begin = {"inventory": "/site/inventory/lab.py", "hosts": ["g1"]}
    record = Record("1", begin, {"status": 0}, {"": {"g1": RunState.DONE}})
    assert closing_lines(record, "done: 1 done", (), ["https://llm/m/v1, model m"]) == [
        "rackwright: done: 1 done",
        "  https://llm/m/v1, model m: through the gateway, with a client's key",
        "  a client's key: rackwright keys add /site/inventory/lab.py NAME",
    ]
