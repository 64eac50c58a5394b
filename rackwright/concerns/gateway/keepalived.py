"""keepalived, which gives the gateways' common address to one of them: its package, files and unit. Pure.

The gateways tell each other by unicast that they are there (VRRP), so that no switch has to carry multicast. The one
that has the address keeps it, also after the other is back: each move of the address ends the streams through it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface

from rackwright.concerns.gateway.files import ADMIN
from rackwright.hostside import host_script, host_text
from rackwright.messages import few
from rackwright.paths import ETC, KEEPALIVED_UNIT, STATE, UNITS
from rackwright.plan.change import Change, Owned, Refuse, Shell, Step, WriteFile
from rackwright.plan.render import render_own
from rackwright.record.ending import FIX
from rackwright.settings.host_settings import HostSettings

KEEPALIVED = "keepalived"
ADDRESS_FOLDER = f"{ETC}/keepalived"
CONFIG = f"{ADDRESS_FOLDER}/keepalived.conf"
ANSWERS = f"{ADDRESS_FOLDER}/gateway-answers"
"""Script that keepalived runs: a gateway that does not answer gives the address away."""
HAND_OVER = f"{ADDRESS_FOLDER}/hand-over"
"""Script that keepalived's unit runs before it stops: no request fails, and no client waits for nothing."""
RUN_BY_NAME = {ANSWERS: "0755"}
"""Files that are run by their names, with their mode."""
ADDRESS_UNIT_FILE = f"{UNITS}/{KEEPALIVED_UNIT}"
ADDRESS_LEFT = f"{STATE}/gateway/keepalived-files"
FIRST, LATER = 150, 100
"""Priorities of the first gateway of the inventory and of the other, when both come up at the same moment."""
INTERVAL = 1
"""Seconds between two announcements; after three missing ones the other gateway takes the address."""
LISTEN = 5
"""Seconds in which an announcement of another router with the same number is noticed."""
OPEN_REQUESTS = 2
"""Seconds for requests that are open when the address is handed over. A client whose connection waits asks
again after 1 s and after 3 s.
"""
ANNOUNCE = "let one gateway at a time have the common address"
CONFIG_CODE, FOREIGN_CODE, PLACE_CODE = "RW3618", "RW3628", "RW3638"


@dataclass(frozen=True)
class HostAddress:
    """An IPv4 address of the host, and its interface."""

    interface: str
    address: IPv4Interface


@dataclass(frozen=True)
class KeepalivedFiles:
    """The wanted files by path; none without a common address."""

    files: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    """The host's own address in that network, and the other gateway's."""
    router_id: int = 0
    refusals: tuple[Change, ...] = ()


def keepalived_files(settings: HostSettings, url: str, places: tuple[HostAddress, ...]) -> KeepalivedFiles:
    """Return the wanted files. url: where this host's own gateway answers. places: the host's addresses."""
    gateway = settings.gateway
    if gateway.address is None:
        return KeepalivedFiles()
    on_host = _place(places, gateway.address, gateway.interface)
    others = [other.address for other in settings.gateways if not other.is_self]
    if on_host is None or not all(_is_near(other, gateway.address) for other in others):
        return KeepalivedFiles(refusals=(_refusal(settings, on_host, others),))
    unit = render_own(f"{KEEPALIVED_UNIT}.j2", config=CONFIG, hand_over=HAND_OVER)
    values = {"address": gateway.address.ip, "port": gateway.port, "seconds": OPEN_REQUESTS, "admin": ADMIN}
    assigned = "".join(f"{key}={value}\n" for key, value in values.items())
    hand_over = f"{assigned}{host_text('keepalived_hand_over.sh')}"
    script = f"#!/bin/sh\nurl={url}\n{host_text('keepalived_answers.sh')}"
    files = {ANSWERS: script, HAND_OVER: hand_over, ADDRESS_UNIT_FILE: unit}
    files[CONFIG] = _config(settings, on_host, others)
    return KeepalivedFiles(files, (str(on_host.address.ip), *others), gateway.virtual_router_id or 0)


def _config(settings: HostSettings, on_host: HostAddress, others: list[str]) -> str:
    gateway = settings.gateway
    return render_own(
        "keepalived.conf.j2",
        address=gateway.address,
        answers=ANSWERS,
        interface=on_host.interface,
        interval=INTERVAL,
        others=others,
        own=on_host.address.ip,
        priority=FIRST if settings.gateways[0].is_self else LATER,
        router_id=gateway.virtual_router_id,
    )


def _place(places: tuple[HostAddress, ...], address: IPv4Interface, interface: str | None) -> HostAddress | None:
    """Return the host's own address in the network of the common one."""
    near = (one for one in places if one.address.ip != address.ip and one.address.ip in address.network)
    return next((one for one in near if interface in (None, one.interface)), None)


def _is_near(other: str, address: IPv4Interface) -> bool:
    try:
        return IPv4Address(other) in address.network
    except ValueError:
        return False


def _refusal(settings: HostSettings, on_host: HostAddress | None, others: list[str]) -> Change:
    address, interface = settings.gateway.address, settings.gateway.interface
    at = f" on {interface}" if interface else ""
    why = (
        f"this host has no address in its network{at}"
        if on_host is None
        else f"the other gateway is reached at {', '.join(others) or 'no known address'}, which is in another network"
    )
    text = (
        f"gateway.address {address} cannot move between the gateways: {why}; nothing was changed; "
        "next: `ip -4 address` on both hosts; behind a router leave gateway.address out, and give both addresses to DNS"
    )
    return Change(
        "announce the gateway's address", "it has no place here", (Refuse(text, code=PLACE_CODE, mistake=FIX),)
    )


def keepalived_changes(
    wanted: KeepalivedFiles, differing: list[str], surplus: list[str], runs: bool, sums_list: str
) -> Iterator[Change]:
    """Yield the change that lets keepalived announce the address; or end it, where the settings have none."""
    if wanted.refusals or not (differing or surplus or (wanted.files and not runs)):
        yield from wanted.refusals
        return
    yield Change(
        ANNOUNCE if wanted.files else "give the common address up",
        _why(differing, surplus),
        tuple(_steps(wanted, differing, surplus, sums_list)),
        owns=tuple(_owned(path) for path in wanted.files),
        disowns=tuple(_owned(path) for path in surplus),
    )


def _why(differing: list[str], surplus: list[str]) -> str:
    if differing:
        return f"{few(differing)} differ or are missing"
    return f"{', '.join(surplus)} are no longer wanted" if surplus else f"{KEEPALIVED_UNIT} is not enabled and active"


def _owned(path: str) -> Owned:
    return Owned("unit", KEEPALIVED_UNIT) if path == ADDRESS_UNIT_FILE else Owned("file", path)


def _steps(wanted: KeepalivedFiles, differing: list[str], surplus: list[str], sums_list: str) -> Iterator[Step]:
    if not wanted.files:
        yield Shell(host_script("keepalived_end", unit=KEEPALIVED_UNIT, surplus=" ".join(surplus)))
        yield WriteFile(ADDRESS_LEFT, sums_list)
        return
    foreign = "another router already announces this virtual_router_id"
    listen: dict[str, str | int] = {"unit": KEEPALIVED_UNIT, "router_id": wanted.router_id, "seconds": LISTEN}
    addresses = {"own": wanted.addresses[0], "others": " ".join(wanted.addresses[1:])}
    yield Shell(host_script("keepalived_listen", **listen, **addresses), code=FOREIGN_CODE, title=foreign)
    new = f"{CONFIG}.new"
    for path in sorted(differing, key=CONFIG.__eq__):
        yield WriteFile(new if path == CONFIG else path, wanted.files[path], RUN_BY_NAME.get(path, "0644"))
    start = host_script("keepalived_start", unit=KEEPALIVED_UNIT, config=CONFIG, new=new)
    yield Shell(start, code=CONFIG_CODE, title="keepalived does not take its configuration")
    yield WriteFile(ADDRESS_LEFT, sums_list)
