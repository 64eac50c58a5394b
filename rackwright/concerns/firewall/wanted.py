"""Rackwright's wanted rules: for the endpoints' current, wanted and rollback listen addresses. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rackwright.concerns.docker import DOCKER, SeenDocker
from rackwright.concerns.docker.daemon import DAEMON_JSON, BrokenDaemonJsonError, parse_daemon_json
from rackwright.concerns.endpoint.switch.foreign_units import foreigners, refusal
from rackwright.concerns.firewall.gateways import closed_to_all_but, unknown, with_gateways
from rackwright.concerns.firewall.iptables_rules import (
    DOCKER_USER,
    FAMILIES,
    INPUT,
    Listeners,
    Proxied,
    endpoint_rules,
    member_rules,
    warnings,
)
from rackwright.concerns.firewall.kept import (
    SCRIPT,
    UNIT,
    UNIT_FILE,
    WhileOpen,
    door_file,
    kept_drops,
    kept_files,
    kept_rules,
)
from rackwright.concerns.firewall.nft_drops import count, drops, lines_of, word_drops
from rackwright.concerns.firewall.older import as_nft
from rackwright.concerns.firewall.place import meeting_places
from rackwright.concerns.firewall.rule_table import TAG, Rule, Table
from rackwright.concerns.firewall.seen import SeenFirewall
from rackwright.concerns.watch import watch_files
from rackwright.concerns.watch.word import NAME, askers, listener, port_taken
from rackwright.paths import WORD_UNITS
from rackwright.plan.change import Owned, Refuse
from rackwright.plan.concern import HostReading
from rackwright.plan.ownership import RECORD
from rackwright.settings.group import Group
from rackwright.settings.host_settings import HostSettings

Rules = Mapping[str, tuple[Rule, ...]]
"""Rules by the command that keeps them: iptables, ip6tables."""


@dataclass(frozen=True)
class WantedFirewall:
    """Rackwright's wanted rules and drops, and the files that restore them later."""

    rules: Rules
    drops: str
    files: Mapping[str, str]
    seconds: int
    """Time within which a new connection must confirm."""
    refusal: Refuse | None = None
    lacks_nft: Refuse | None = None
    """The reason for which the drops cannot be made here yet, or at all."""
    warnings: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    """Sentences about a unit of the same name that an operator made by hand, when it is to be moved out of the way."""


def for_listeners(
    settings: HostSettings,
    reading: HostReading,
    firewall: SeenFirewall,
    endpoints: Listeners,
    closes: bool | None = None,
) -> WantedFirewall:
    """Return rules and drops for endpoints at their addresses; rules for missing chains wait in the script.

    closes: whether direct clients are to be kept out; None: where the settings say so and the host does it by now.
    """
    closed = settings.direct_is_closed and (firewall.is_closed if closes is None else closes)
    opened = _for(settings, reading, firewall, with_gateways(settings, endpoints))
    if not closed:
        return opened
    found = _for(settings, reading, firewall, closed_to_all_but(settings, endpoints), opened)
    found = replace(found, refusal=found.refusal or unknown(settings))
    return replace(found, rules=opened.rules, drops=opened.drops) if firewall.is_opened else found


def _for(
    settings: HostSettings,
    reading: HostReading,
    firewall: SeenFirewall,
    endpoints: Listeners,
    opened: WantedFirewall | None = None,
) -> WantedFirewall:
    """Return rules and drops for endpoints with these clients. opened: those of ports that are closed otherwise."""
    docker: SeenDocker = reading[DOCKER]
    unlisted = [name for name in (*firewall.current, *firewall.proven) if name not in settings.all_endpoints]
    bridge = str(_daemon_json(docker).get("bridge") or "docker0")
    record: frozenset[Owned] = reading[RECORD]
    has_word = _has_word(settings, reading, record)
    ports = [*endpoints, (NAME, listener(settings))] if has_word else endpoints
    rules = _rules(ports, unlisted, firewall, bridge, settings.group, _proxied(firewall, docker))
    closes_word = word_drops(NAME, settings.word.port, askers(settings)) if has_word else ()
    closing = drops(endpoints, bridge, [*_drops_of(unlisted, firewall), *closes_word], settings.group)
    foreign = tuple(foreigners(UNIT, firewall.files.get(UNIT_FILE), False, record))
    return WantedFirewall(
        {command: _possible(entries, firewall.table(command), docker) for command, entries in rules.items()},
        closing,
        {**kept_files(rules, closing, _doors(endpoints, unlisted, firewall), _while(opened)), **watch_files()},
        settings.firewall.confirm_timeout,
        _foreign_refusal(settings, foreign),
        _lacks_nft(firewall.nft, reading) if count(closing) and firewall.nft else None,
        (*(() if opened else warnings(settings.all_endpoints)), *_ports_kept_open(settings, endpoints)),
        foreign,
    )


def _while(opened: WantedFirewall | None) -> WhileOpen | None:
    return WhileOpen(opened.rules, opened.drops) if opened else None


def _has_word(settings: HostSettings, reading: HostReading, record: frozenset[Owned]) -> bool:
    """Return True if the host says its word: deploy.py calls watch(), or an earlier deploy has put it there."""
    comes = reading.managed is not None and "watch" in reading.managed
    return not port_taken(settings) and (comes or Owned("unit", WORD_UNITS[0]) in record)


def _proxied(firewall: SeenFirewall, docker: SeenDocker) -> Proxied:
    """Return Docker's translation, from its daemon.json, its chains and its bridge's IPv6."""
    translates = _daemon_json(docker).get("iptables") is not False
    # An Engine with nft rules has no such chain, nor has one that is not installed yet.
    # Chains that another tool has flushed exist again before this run ends: it restarts dockerd for them.
    unseen = docker.daemon != "up" or _uses_nft(docker.info) or f"filter {DOCKER_USER}" in docker.lacks
    by_version = {
        4: unseen or firewall.table("iptables").has(DOCKER_USER),
        6: bool(firewall.subnets.get(6)) and (unseen or firewall.table("ip6tables").has(DOCKER_USER)),
    }
    return Proxied(frozenset(v for v, does in by_version.items() if does and translates), firewall.over_ipv6)


def _uses_nft(info: Mapping[str, Any]) -> bool:
    backend = info.get("FirewallBackend")
    return isinstance(backend, dict) and str(backend.get("Driver", "")).startswith("nft")


def _rules(
    endpoints: Listeners,
    unlisted: Collection[str],
    firewall: SeenFirewall,
    bridge: str,
    group: Group | None,
    proxied: Proxied,
) -> Rules:
    earlier = kept_rules(firewall.files.get(SCRIPT) or "")
    return {
        command: _input_first(
            *endpoint_rules(endpoints, version, bridge, proxied),
            *member_rules(group, version),
            *_rules_of(unlisted, earlier.get(command) or firewall.table(command).ours),
        )
        for command, version in FAMILIES.items()
        if command == "iptables" or firewall.ipv6
    }


def _input_first(*rules: Rule) -> tuple[Rule, ...]:
    """Return each rule once: two addresses of an endpoint may need the same one."""
    return tuple(sorted(dict.fromkeys(rules), key=lambda rule: rule.chain != INPUT))


def _rules_of(endpoints: Iterable[str], rules: Iterable[Rule]) -> list[Rule]:
    """Return the rules of endpoints that the settings no longer have, unchanged, as long as the endpoint exists."""
    tags = tuple(f"{TAG}{name}:" for name in endpoints)
    return [rule for rule in rules if rule.comment.startswith(tags)] if tags else []


def _drops_of(endpoints: Collection[str], firewall: SeenFirewall) -> list[str]:
    """Return the drops of endpoints that the settings no longer have, unchanged: such an endpoint still runs."""
    earlier = kept_drops(firewall.files.get(SCRIPT) or "")
    return [*lines_of(endpoints, earlier.pop("nft", "")), *as_nft(endpoints, earlier)]


def _lacks_nft(why: str, reading: HostReading) -> Refuse:
    """Refuse for good unless docker(), which installs it, comes first."""
    if why != "missing":
        text = f"nft does not work on this host, and without it no port can be closed: {why}"
        return Refuse(f"{text}; nothing was changed; next: modprobe nf_tables, or a kernel that has it", code="RW2514")
    comes = reading.managed is not None and DOCKER.name in reading.managed
    text = "nft is missing on this host, and without it no port can be closed; nothing was changed"
    text += "; next: apt-get install nftables, or call docker() above firewall()"
    return Refuse(text, code="RW2504", final=not comes)


def _doors(endpoints: Listeners, unlisted: Iterable[str], firewall: SeenFirewall) -> set[str]:
    """Return the endpoints whose ports are not open to all."""
    closed = {name for name, one in endpoints if not (one.is_local or one.is_open)}
    return closed | {name for name in unlisted if firewall.files.get(door_file(name))}


def _possible(rules: Iterable[Rule], table: Table, docker: SeenDocker) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if docker.daemon != "up" or table.has(rule.chain))


def _daemon_json(docker: SeenDocker) -> Mapping[str, Any]:
    try:
        return parse_daemon_json(docker.files.get(DAEMON_JSON))
    except BrokenDaemonJsonError:  # the docker concern refuses it, with the position
        return {}


def _ports_kept_open(settings: HostSettings, endpoints: Listeners) -> Iterator[str]:
    for name, one in endpoints:
        endpoint = settings.all_endpoints.get(name)
        if endpoint and endpoint.port != one.port and (name, one) not in meeting_places(settings):
            port = endpoint.port
            yield f"endpoint {name} listens on port {one.port}, whose rules stay until it has switched to {port}"


def _foreign_refusal(settings: HostSettings, foreign: Sequence[str]) -> Refuse | None:
    return refusal(UNIT, foreign) if foreign and settings.releases.foreign_units != "aside" else None
