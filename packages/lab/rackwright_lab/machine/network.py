"""A bridge and a subnet a lab, with a way out; the firewall rules carry the lab's name."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import shlex
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rackwright_lab.machine.paths import Paths
from rackwright_lab.machine.shell import LabError, run

RANGE = ipaddress.IPv4Network("10.79.0.0/16")
RANGE6 = "fd79:6c61:62"
FIRST_HOST = 11
# What a hundred hosts need; the defaults stop at about fourteen.
LIMITS = {
    "fs/inotify/max_user_instances": 8192,
    "fs/inotify/max_user_watches": 1048576,
    "kernel/keys/maxkeys": 20000,
    "net/ipv4/neigh/default/gc_thresh3": 4096,
    "net/ipv4/ip_forward": 1,
}
TABLES = ("filter", "nat", "mangle")


def choose(lab: str) -> ipaddress.IPv4Network:
    """Return a free /24 for a lab: first the one its id points at, then the ones after it.

    Raises LabError when every one of the 256 is in use on this machine.
    """
    taken = list(_used())
    subnets = list(RANGE.subnets(new_prefix=24))
    start = hashlib.sha256(lab.encode()).digest()[0]
    for subnet in subnets[start:] + subnets[:start]:
        if not any(subnet.overlaps(other) for other in taken):
            return subnet
    raise LabError(f"no /24 of {RANGE} is free on this machine: end a lab with rackwright lab down")


def _used() -> Iterator[ipaddress.IPv4Network]:
    for route in json.loads(run("ip", "-j", "-4", "route").stdout or "[]"):
        if route["dst"] != "default":
            yield ipaddress.IPv4Network(route["dst"], strict=False)


def address6(address: str) -> str:
    """Return the IPv6 address that goes with an IPv4 address of a lab."""
    _, _, third, last = address.split(".")
    return f"{RANGE6}:{third}::{last}"


def raise_limits() -> None:
    """Lift the kernel's limits to what many hosts need; never lowers one."""
    for name, least in LIMITS.items():
        setting = Path("/proc/sys") / name
        if setting.exists() and int(setting.read_text()) < least:
            setting.write_text(str(least))


def up(paths: Paths, subnet: ipaddress.IPv4Network, servers: tuple[str, ...]) -> None:
    """Make the bridge with the gateway's and the servers' addresses, and let its hosts out."""
    raise_limits()
    if not Path("/sys/class/net", paths.bridge).exists():
        run("ip", "link", "add", paths.bridge, "type", "bridge")
        # Only an MTU that is set on its own is kept; one given at birth follows the ports that join, and then
        # what a container of a host receives is too long for the host's own interface and is dropped.
        run("ip", "link", "set", paths.bridge, "mtu", str(_mtu_of_the_way_out()))
    for address in (str(subnet[1]), *servers):
        run("ip", "addr", "replace", f"{address}/24", "dev", paths.bridge)
        run("ip", "addr", "replace", f"{address6(address)}/64", "dev", paths.bridge, "nodad")
    run("ip", "link", "set", paths.bridge, "up")
    _drop_rules(paths.tag)
    for rule in _rules(paths, subnet):
        run("iptables", "-w", *shlex.split(rule), "-m", "comment", "--comment", paths.tag)


def _mtu_of_the_way_out() -> int:
    routes = json.loads(run("ip", "-j", "-4", "route", "show", "default").stdout or "[]")
    if not routes:
        return 1500
    return int(Path("/sys/class/net", routes[0]["dev"], "mtu").read_text())


def _rules(paths: Paths, subnet: ipaddress.IPv4Network) -> list[str]:
    return [
        f"-t nat -I POSTROUTING -s {subnet} ! -d {subnet} -j MASQUERADE",
        f"-I FORWARD -i {paths.bridge} -j ACCEPT",
        f"-I FORWARD -o {paths.bridge} -j ACCEPT",
    ]


def wall_in(paths: Paths, address: str, server: str, port: int) -> None:
    """Leave a host one way out, to that server's port; it still answers connections from this machine."""
    inside = f"INPUT -i {paths.bridge} -s {address}"
    rules = [
        f"-I {inside} -j REJECT",
        f"-I {inside} -d {server} -p tcp --dport {port} -j ACCEPT",
        f"-I {inside} -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
        f"-I FORWARD -i {paths.bridge} -s {address} -j REJECT",
    ]
    for rule in rules:
        run("iptables", "-w", *shlex.split(rule), "-m", "comment", "--comment", paths.tag)


def let_out(paths: Paths, address: str) -> None:
    """Take `wall_in` back."""
    _drop_rules(paths.tag, f"{address}/32")


@contextmanager
def machine_apart(paths: Paths, address: str, hosts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Make a machine that reaches these hosts and nothing else: no route, no name, no server of the lab.

    Yields what stands before a command that runs on it; its files are this machine's. address: its own, of the lab's
    subnet. Hosts that are walled in still answer it.
    """
    name, link = paths.tag, f"rwc-{paths.id}"
    run("ip", "netns", "add", name)
    try:
        run("ip", "link", "add", link, "type", "veth", "peer", "name", "lab0", "netns", name)
        run("ip", "link", "set", link, "master", paths.bridge, "up")
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", name, "link", "set", "lab0", "up")
        run("ip", "-n", name, "addr", "add", f"{address}/32", "dev", "lab0")
        for host in hosts:
            run("ip", "-n", name, "route", "add", f"{host}/32", "dev", "lab0", "src", address)
            # A bridge's packets pass these rules, too, where br_netfilter is loaded.
            rule = f"-I FORWARD -i {paths.bridge} -s {host} -d {address} -j ACCEPT"
            run("iptables", "-w", *shlex.split(rule), "-m", "comment", "--comment", paths.tag)
        yield "ip", "netns", "exec", name
    finally:
        _end_machine_apart(paths)
        _drop_rules(paths.tag, f"{address}/32")


def _end_machine_apart(paths: Paths) -> None:
    run("ip", "netns", "delete", paths.tag, check=False)
    run("ip", "link", "delete", f"rwc-{paths.id}", check=False)


def down(paths: Paths) -> None:
    """Remove the bridge, every rule of this lab, and its hosts' links: a killed host's goes late, or never."""
    _drop_rules(paths.tag)
    _end_machine_apart(paths)
    for link in Path("/sys/class/net", paths.bridge, "brif").glob("*"):
        run("ip", "link", "delete", "dev", link.name, check=False)
    if Path("/sys/class/net", paths.bridge).exists():
        run("ip", "link", "delete", paths.bridge)


def _drop_rules(*words: str) -> None:
    """Remove the rules that have all these words."""
    for table in TABLES:
        for row in run("iptables", "-w", "-t", table, "-S").stdout.splitlines():
            rule = shlex.split(row)
            if rule[0] == "-A" and set(words) <= set(rule):
                run("iptables", "-w", "-t", table, "-D", *rule[1:])


def link_of(iflink: int) -> str:
    """Return the name, on this machine, of the other end of a host's network link."""
    for number, name in socket.if_nameindex():
        if number == iflink:
            return name
    raise LabError(f"no network interface of this machine has the index {iflink}")
