"""Whether a port is open is decided by a connection of a client that is let in; rules only say where to look."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rackwright.plan.reach import LOOK
from rackwright_lab.hosts.host import Host
from tests import texts
from tests.lab.calm import needs_preparing
from tests.lab.conftest import Run, Site
from tests.lab.products import in_proof

pytestmark = pytest.mark.lab

OPEN = "port 8000 is reachable from this machine"
DROPS = {
    "DOCKER-USER": "DOCKER-USER -p tcp -m tcp --dport 8000 -j DROP",
    "FORWARD": "FORWARD -o docker0 -j DROP",
    "a chain of its own": "site -p tcp -j REJECT --reject-with icmp-port-unreachable",
}
FIREWALLD = """
table inet firewalld {
  chain filter_FORWARD {
    type filter hook forward priority filter + 10; policy accept;
    ct state established,related accept
    ct state invalid drop
    jump filter_zones
  }
  chain filter_zones {
    tcp dport 8000 reject with icmpx admin-prohibited
  }
}
"""


@pytest.fixture
def host(site: Site, request: pytest.FixtureRequest) -> Host:
    """Return the lived-in host, which serves."""
    found = site.lab.host("lived2")
    if needs_preparing(request):
        deploy(site, found.name, engine={"stream_interval": 10})
        assert OPEN in shown(site, found)
    return found


def printed_about(run: Run, host: Host) -> str:
    """Return the sentence on the port of a host."""
    print(run.output)
    about_host = re.compile(rf"\s*(\[{host.name}\]|{host.name}:) .*port 8000 ")
    lines = [output_line for output_line in run.output.splitlines() if about_host.match(output_line)]
    found = [output_line for output_line in lines if "reachable" in output_line or "not checked" in output_line]
    assert len(found) == 1, run.output
    return found[0]


def shown(site: Site, host: Host) -> str:
    return printed_about(site.rackwright("firewall", "show", "inventory/lab.py"), host)


def deploy(site: Site, *limit: str, **data: Any) -> Run:
    """Run a deploy that switches."""
    words = [argument for key, value in data.items() for argument in ("--data", f"{key}={json.dumps(value)}")]
    run = site.deploy("-y", *words, limit=limit)
    assert run.status == 0, run.output
    return run


@contextmanager
def dropping(host: Host, where: str) -> Iterator[None]:
    """Put a foreign rule in front of all others."""
    rule = DROPS[where]
    is_outer = where not in rule.split()
    host.run(f"{'iptables -N site; iptables -I FORWARD -p tcp -j site;' if is_outer else ''} iptables -I {rule}")
    try:
        yield
    finally:
        host.run(f"iptables -D {rule}; {'iptables -D FORWARD -p tcp -j site; iptables -X site' if is_outer else ''}")


def test_a_deploy_says_that_the_port_is_closed_and_is_well(site: Site, host: Host) -> None:
    with dropping(host, "DOCKER-USER"):
        run = deploy(site, host.name, engine={"stream_interval": 11})
    printed = printed_about(run, host)
    assert texts.UNREACHABLE_PORT.format(port=8000, by="this machine") in printed
    assert "[no answer]" in printed
    assert printed.endswith(LOOK)


def test_firewall_show_says_it_too_whoever_closes_the_port(site: Site, host: Host) -> None:
    with dropping(host, "a chain of its own"):
        printed = shown(site, host)
    assert ("[refused]" in printed, LOOK in printed) == (True, True), printed
    host.run("nft -f -", stdin=FIREWALLD)
    try:
        printed = shown(site, host)
    finally:
        host.run("nft delete table inet firewalld")
    assert LOOK in printed
    assert OPEN in shown(site, host)


@in_proof("tests/unit/test_peers.py has who is asked, and what follows from each answer")
def test_a_peer_decides_where_this_machine_is_not_let_in_and_nobody_does_where_none_is(site: Site, host: Host) -> None:
    bare, lived = site.lab.host("bare1"), host
    run = deploy(site, allow_from=[f"{bare.address}/32"], engine={"stream_interval": 12})
    printed = printed_about(run, lived)
    assert f"port 8000 is reachable from {bare.name} ({bare.address}); this machine is not let in" in printed
    printed = printed_about(run, bare)
    assert "port 8000 is not checked" in printed
    assert f"{lived.name} ({lived.address})" in printed
    with dropping(lived, "FORWARD"):
        run = deploy(site, allow_from=[f"{bare.address}/32"], engine={"stream_interval": 13})
    printed = printed_about(run, lived)
    assert f"not reachable from {bare.name} ({bare.address}) [no answer]" in printed
    assert LOOK in printed
