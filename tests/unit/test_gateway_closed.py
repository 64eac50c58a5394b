"""A firewall of the operator's that lets no client reach the gateway, and a gateway that no host stands behind."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rackwright.concerns.gateway.concern import SeenGateway, parse, without_hosts
from rackwright.concerns.preflight.gateway import GATEWAYS
from rackwright.hostside import host_script
from rackwright.settings.host_settings import HostSettings
from tests.unit.machines import case

STANDINS = """
have() { [ "$firewalld" = yes ]; }
systemctl() { case $* in *firewalld.service) [ "$firewalld" = yes ] ;; *) [ -n "$health" ] ;; esac; }
timeout() { shift; "$@"; }
firewall-cmd() { case $1 in --get-default-zone) echo public ;; *) cat "$rules" ;; esac; }
iptables-save() { cat "$rules"; }
curl() { printf %s "$health"; }
"""


def printed(folder: Path, rules: str, firewall: str = "", health: str = "") -> list[str]:
    """Run the reading on a host with this firewall and these rules."""
    (folder / "rules").write_text(rules)
    (folder / "ufw.conf").write_text(f"ENABLED={'yes' if firewall == 'ufw' else 'no'}\n")
    values = f"rules={folder}/rules firewalld={'yes' if firewall == 'firewalld' else 'no'} health={health}\n"
    script = host_script(
        "gateway_closed", port=443, url="https://127.0.0.1/healthz", unit="u", ufw=f"{folder}/ufw.conf"
    )
    # A function of this name is a bash extension.
    run = subprocess.run(["bash", "-c", values + STANDINS + script], capture_output=True, text=True, check=False)
    assert not run.stderr
    return run.stdout.splitlines()


SSH = "*filter\n:INPUT DROP [0:0]\n-A ufw-user-input -p tcp -m tcp --dport 22 -j ACCEPT\n"
ZONES = (
    "block\n  target: DROP\n  ports: 443/tcp\n\npublic (active)\n  target: default\n  services: ssh{}\n  ports: {}\n"
)
UNBOUND = "block\n  target: DROP\n  ports: 443/tcp\n\npublic\n  target: default\n  interfaces: \n  ports: {}\n"
"""The default zone where no interface is given to any: it applies, and is not called active."""
INTERNAL = "\ninternal (active)\n  target: default\n  interfaces: eth0\n  ports: {}\n"


@pytest.mark.parametrize(
    ("firewall", "rules", "closed"),
    [
        ("", SSH, False),
        ("ufw", SSH, True),
        ("ufw", f"{SSH}-A ufw-user-input -p udp -m udp --dport 443 -j ACCEPT\n", True),
        ("ufw", f"{SSH}-A ufw-user-input -p tcp -m tcp --dport 443 -j DROP\n", True),
        ("ufw", f"{SSH}-A ufw-user-input -p tcp -m tcp --dport 443 -j ACCEPT\n", False),
        ("ufw", f"{SSH}-A ufw-user-input -p tcp -m multiport --dports 80,400:500 -j ACCEPT\n", False),
        ("ufw", f"{SSH}-A ufw-user-input -s 10.0.0.0/8 -j ACCEPT\n", False),
        ("firewalld", ZONES.format("", ""), True),
        ("firewalld", ZONES.format(" https", ""), False),
        ("firewalld", ZONES.format("", "80/tcp 443/tcp"), False),
        ("firewalld", ZONES.format("", "443/udp 44/tcp"), True),
        ("firewalld", ZONES.format("", "400-500/tcp"), False),
        ("firewalld", ZONES.format("", "").replace("default", "ACCEPT"), False),
        ("firewalld", UNBOUND.format("80/tcp"), True),
        ("firewalld", UNBOUND.format("443/tcp"), False),
        ("firewalld", UNBOUND.format("443/tcp") + INTERNAL.format("22/tcp"), True),
        ("firewalld", UNBOUND.format("22/tcp") + INTERNAL.format("443/tcp"), False),
    ],
)
def test_a_firewall_that_lets_no_client_in_is_found(tmp_path: Path, firewall: str, rules: str, closed: bool) -> None:
    assert printed(tmp_path, rules, firewall) == [f"closed {firewall}"] * closed


@pytest.mark.parametrize("firewall", ["ufw", "firewalld", ""])
def test_preflight_has_the_command_that_opens_the_port(firewall: str) -> None:
    settings = HostSettings.model_validate({"gateway": {"tls": False, "port": 8443}}).with_gateways((), ())
    reading = parse(f"closed {firewall}\n" if firewall else "")
    rows = [row for check in GATEWAYS for row in check.rows(case(settings=settings, gateway=reading))]
    assert [(row.stops, "8443/tcp" in row.fix) for row in rows if row.code == "RW3165"] == [(False, True)] * bool(
        firewall
    )


@pytest.mark.parametrize(("health", "warned"), [("503", True), ("200", False), ("000", False), ("", False)])
def test_a_gateway_that_no_host_stands_behind_is_found(tmp_path: Path, health: str, warned: bool) -> None:
    reading = parse("\n".join(printed(tmp_path, "", health=health)))
    settings = HostSettings.model_validate({}).with_gateways((), ())
    assert bool(without_hosts(settings, reading)) == warned
    assert not without_hosts(HostSettings.model_validate({}), SeenGateway(health="503"))
