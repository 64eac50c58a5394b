"""The gateway's HAProxy configuration as text, its limits, and what does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.gateway.haproxy import LOG, backend_name, config, revision_in, revision_of
from rackwright.loading.notes import notes
from rackwright.settings.backend import Backend, Server
from rackwright.settings.gateway import Gateway
from rackwright.settings.gateway_limits import GIB, gateway_limits
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret
from rackwright_engines.data import PRODUCTS
from rackwright_engines.served_paths import first_parts, served_paths
from tests.unit.test_gateways import codes, gateway, host, settings

SITE = Path("/nowhere")


def server(name: str = "gpu01", address: str = "10.0.0.11", endpoint: str = "llm") -> Server:
    return Server(name, endpoint, 8000, 8010, Secret("engine-secret"), lambda: address)


ONE = Backend("gpt-oss-120b", "vllm", (server(), server("gpu02", "fd00::2")))
ODD = Backend("Qwen_3@x+1.5", "sglang", (server("gpu03"), server("gpu03", endpoint="two")))


def text(*backends: Backend, **facts: Any) -> str:
    made = Gateway.model_validate({"tls": False, "port": 80} | facts)
    return config(made, backends or (ONE, ODD), site=SITE, version=(2, 6))


def rows(found: str, start: str) -> list[str]:
    return [row.strip() for row in found.splitlines() if row.strip().startswith(start)]


def test_servers_are_out_until_their_hosts_say_the_word() -> None:
    found = rows(text(), "server ")
    assert [row.split()[1:3] for row in found] == [
        ["gpu01", "10.0.0.11:8000"],
        ["gpu02", "[fd00::2]:8000"],
        ["gpu03:llm", "10.0.0.11:8000"],
        ["gpu03:two", "10.0.0.11:8000"],
    ]
    assert all(row.endswith(" disabled") and "agent-port 8010 agent-inter 2s" in row for row in found)


def test_no_key_of_an_engine_is_in_the_file() -> None:
    assert "engine-secret" not in text()


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        ({}, "bind :::80 v4v6"),
        ({"bind": "0.0.0.0"}, "bind 0.0.0.0:80"),
        ({"bind": "fd00::1"}, "bind [fd00::1]:80"),
    ],
)
def test_where_it_listens(facts: dict[str, Any], wanted: str) -> None:
    [found] = rows(text(**facts), "bind ")
    assert found.replace("[::]", "::") == wanted


def test_tls_has_a_certificate() -> None:
    [found] = rows(text(tls=True, port=443, certificate="a.pem", certificate_key="k"), "bind ")
    assert found.split()[3:5] == ["ssl", "crt"]
    assert found.split()[5].endswith("/certificates/gateway.pem")
    assert found.split()[6:] == ["alpn", "h2,http/1.1"]


def test_networks_that_may_connect() -> None:
    assert "tcp-request connection reject" not in text(allow_from="any")
    networks = [f"10.{number}.0.0/16" for number in range(100)]
    found = text(allow_from=networks)
    assert all(network in found for network in (*networks, "127.0.0.0/8"))
    assert all(len(row.split()) < 64 for row in found.splitlines())


def test_backends_have_names_that_haproxy_takes_and_no_two_the_same() -> None:
    assert backend_name("gpt-oss-120b") == "model:gpt-oss-120b"
    names = ["a@b", "a+b", "a_b", "a.b", "a-b", "A-b"]
    assert len({backend_name(name) for name in names}) == len(names)
    assert all(part.isalnum() or part in ":._-" for name in names for part in backend_name(name))


def test_a_file_names_its_revision_and_another_file_another_one() -> None:
    found = text()
    assert revision_in(found) == revision_of(found.replace(revision_in(found), "")) != ""
    assert revision_in(text()) == revision_in(found)
    assert revision_in(text(ONE)) != revision_in(found)
    given = config(Gateway(tls=False, port=80), (ONE,), site=SITE, version=(2, 6), revision="abc123")
    assert revision_in(given) == "abc123"


def test_errors_and_cards_are_json_that_haproxys_quotes_keep_whole() -> None:
    quoted = [row.split("string '", 1)[1].split("'", 1)[0] for row in text().splitlines() if " string '" in row]
    assert len(quoted) > 20
    for one in quoted:
        assert json.loads(one)


def test_a_log_row_has_no_header_body_or_query() -> None:
    assert not any(
        part in value for value in LOG.values() for part in ("hdr", "body", "query", "url", "%r", "%HU", "%HQ")
    )


def test_body_routing_reads_as_much_as_a_body_may_have() -> None:
    assert "json_query" not in text()
    assert "json_query" not in text(ONE, route_by=("path", "body"))
    assert "json_query" in text(route_by=("path", "body"))


@pytest.mark.parametrize(("limit", "connections", "gib"), [(1, 7710, 8), (2, 3971, 8), (16, 510, 8), (1024, 64, 64.1)])
def test_the_memory_of_bodies_is_bounded(limit: int, connections: int, gib: float) -> None:
    found = gateway_limits(Gateway(route_by=("body",), body_limit=limit), (ONE, ODD))
    assert found.connections == connections
    assert found.memory / GIB <= gib


def test_without_body_routing_a_body_takes_no_memory() -> None:
    found = gateway_limits(Gateway(body_limit=1024), (ONE, ODD))
    assert (found.connections, found.memory / GIB) == (8192, 0.5)


def test_check_says_what_bodies_may_take() -> None:
    made = HostSettings.model_validate({"gateway": {"tls": False, "port": 80, "route_by": ["body"]}})
    assert any("8.0 GiB" in note for note in notes(made.with_gateways((), (ONE, ODD))))
    assert not any("GiB" in note for note in notes(made.with_gateways((), (ONE,))))


def test_check_warns_of_keys_in_clear_and_of_a_gateway_without_a_model() -> None:
    clear = HostSettings.model_validate({"gateway": {"tls": False, "port": 80}})
    assert [len(notes(clear.with_gateways((), backends))) for backends in ((), (ONE,))] == [2, 1]
    assert notes(HostSettings.model_validate({}).with_gateways((), (ONE,))) == []


@pytest.mark.parametrize("kind", PRODUCTS)
def test_no_path_of_administration_is_served(kind: str) -> None:
    found = served_paths(kind)
    assert "/v1/chat/completions" in found.inference
    for part in (
        "metrics",
        "health",
        "profile",
        "lora",
        "weights",
        "cache",
        "sleep",
        "session",
        "info",
        "load",
        "abort",
    ):
        assert not any(part in path for path in found.inference), part
    assert not any(path.startswith(found.stateful) for path in found.inference)


def test_models_that_a_path_or_a_host_name_cannot_mean() -> None:
    def mounted(name: str) -> HostSettings:
        return settings(f"m/{name}")

    assert {"v1", "tokenize", "healthz"} <= first_parts()
    assert codes(host("a", "10.0.0.1", mounted("v1")), gateway()) == [("a", "model.mount", "RW0275")]
    two = (host("a", "10.0.0.1", mounted("Qwen")), host("b", "10.0.0.2", mounted("qwen")))
    assert codes(*two, gateway()) == [("b", "model.mount", "RW0275")]
    by_header = gateway(gateway={"tls": False, "port": 80, "route_by": ["header"]})
    assert codes(*two, host("c", "10.0.0.3", mounted("v1")), by_header) == []
