"""docs/reference/host-files.md has what Rackwright owns on a host: each file, unit and folder that a change may add."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.docker.apt import PIN_FILE, PROXY_FILE
from rackwright.concerns.docker.files import AUTHORITY, DROPIN, certs_d
from rackwright.concerns.endpoint.seen import BOOT_UNITS
from rackwright.concerns.firewall.changes import OWNS
from rackwright.concerns.firewall.kept import door_file
from rackwright.concerns.gateway.concern import SeenGateway
from rackwright.concerns.gateway.concern import changes as gateway_changes
from rackwright.concerns.gateway.files import HOME, LEFT, SERVERS
from rackwright.concerns.gateway.keepalived import ADDRESS_LEFT
from rackwright.concerns.gateway.key_change import ADMIN, JOURNAL, MASTER
from rackwright.concerns.gateway.key_maps import REVOKED
from rackwright.concerns.gateway.renewal import METRICS_FILE, RENEWAL_LEFT
from rackwright.concerns.watch.concern import SeenWatch
from rackwright.concerns.watch.concern import changes as watch_changes
from rackwright.concerns.watch.concern import wanted as wanted_watch
from rackwright.paths import UNITS, endpoint_dir, unit_name
from rackwright.plan.change import Change, Owned
from rackwright.plan.concern import HostReading
from rackwright.settings.secret import Secret
from tests.unit.machines import settings
from tests.unit.test_gateway_concern import wanted_of
from tests.unit.test_gateway_renewal import gateway as with_certificate
from tests.unit.test_keepalived import PLACES, gateways

PAGE = (Path(__file__).parents[2] / "docs/reference/host-files.md").read_text()
WORD = re.compile(r"`([^`]+)`")
PLACEHOLDERS = re.compile(r"NAME|HASH|FILE|DIGEST|ENDPOINT|ASKER|REGISTRY|\*")
PATHS = ("file", "unit", "directory", "apt_source")
"""Kinds of belongings that are paths."""


def patterns() -> Iterator[re.Pattern[str]]:
    """Yield a pattern for each path in the first column of a table: of its section's folder, or with its own."""
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        folder = next((path for path in WORD.findall(section.partition("\n")[0])), UNITS)
        rows = [row for row in section.splitlines() if row.startswith("| ")]
        for name in (name for row in rows for name in WORD.findall(row.split(" | ")[0])):
            path = name if name.startswith("/") else f"{folder}/{name}"
            parts = PLACEHOLDERS.split(path.removesuffix("/"))
            yield re.compile("[^/]+".join(map(re.escape, parts)))


KNOWN = tuple(patterns())


def missing(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if not any(one.fullmatch(path) for one in KNOWN)]


def owned(changes: Iterable[Change]) -> list[str]:
    return [path_of(one) for change in changes for one in change.owns if one.kind in PATHS]


def path_of(one: Owned) -> str:
    return f"{UNITS}/{one.name}" if one.kind == "unit" else one.name


def of_a_gateway(host: Any, reading: SeenGateway) -> list[str]:
    return owned(gateway_changes(wanted_of(host, reading), reading))


def test_a_path_that_is_not_on_the_page_is_missed() -> None:
    assert missing(["/etc/rackwright/unheard-of", f"{UNITS}/rackwright-llm.service"]) == ["/etc/rackwright/unheard-of"]


@pytest.mark.parametrize("by_acme", [True, False])
def test_the_page_has_the_files_of_a_gateway(by_acme: bool) -> None:
    host = with_certificate(more={"proxy": {"https": "http://10.0.0.9:3128"}}) if by_acme else gateways()
    found = of_a_gateway(host, SeenGateway(places=PLACES))
    assert len(found) > 10
    assert missing(found) == []


def test_the_page_has_what_a_gateway_writes_while_it_runs() -> None:
    assert missing([LEFT, ADDRESS_LEFT, RENEWAL_LEFT, SERVERS, METRICS_FILE, f"{HOME}/acme", REVOKED, JOURNAL]) == []
    assert missing([str(Path(path).parent) for path in (ADMIN, MASTER)]) == []


def test_the_page_has_the_files_of_the_watch() -> None:
    header = Secret("Authorization: Bearer abcdefgh12345678")
    notify = {"url": Secret("https://hooks.example.com/T0/B0/x7Yz"), "header": header}
    found = owned(watch_changes(wanted_watch(settings(notify=notify), HostReading({})), SeenWatch()))
    assert len(found) > 10
    assert missing(found) == []


def test_the_page_has_the_files_of_docker_endpoint_and_firewall() -> None:
    units = [f"{UNITS}/{unit}" for unit in (unit_name("llm"), *BOOT_UNITS)]
    endpoint = [door_file("llm"), f"{endpoint_dir('llm')}/current", *units]
    docker = [PROXY_FILE, PIN_FILE, AUTHORITY, DROPIN, *certs_d(settings())]
    assert missing([*endpoint, *docker, *(path_of(one) for one in OWNS if one.kind in PATHS)]) == []
