"""Loopback is one question with one answer for all callers: settings, status, the gate's row on listeners, names."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest

from rackwright.addresses import is_loopback
from rackwright.concerns.endpoint.group.open_ports import listening
from rackwright.loading.group import resolved_address
from rackwright.settings.host_settings import EndpointSettings

PACKAGE = Path(__file__).parents[2] / "rackwright"
LOOPBACK = ["127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1", "[::1]", "localhost"]
OTHERS = ["0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "*", "", "gpu01", "128.0.0.1"]
CASES = [*((address, True) for address in LOOPBACK), *((address, False) for address in OTHERS)]


@pytest.mark.parametrize(("address", "loopback"), CASES)
def test_loopback(address: str, loopback: bool) -> None:
    assert is_loopback(address) is loopback


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1", "0.0.0.0"])
def test_settings_ask_it(address: str) -> None:
    endpoint = EndpointSettings.model_validate(
        {"model": {"repository": "a/b", "mount": "/config/models/b"}, "network": "host", "bind": address}
    )
    assert endpoint.is_local is is_loopback(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "[::1]", "[::ffff:127.0.0.2]", "0.0.0.0", "10.9.0.1"])
def test_the_row_on_strangers_asks_it(address: str) -> None:
    found = list(listening("h1", [f"listens {address}:29500"], ["10.9.0.1"], None))
    assert (found == []) is is_loopback(address)


def test_a_name_that_leads_to_this_machine_is_no_address_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(*_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in ("127.0.1.1", "10.0.0.7")]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    assert resolved_address("gpu01.made.up") == "10.0.0.7"


def test_nobody_says_it_anew() -> None:
    others = [path for path in PACKAGE.rglob("*.py") if path.name != "addresses.py"]
    assert [
        str(path) for path in others if re.search(r"\.is_loopback|startswith\(\"127|== \"::1\"", path.read_text())
    ] == []
