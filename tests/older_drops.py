"""What versions before 0.2.0 wrote where nft was missing: drops in iptables' mangle table, and the script with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from rackwright.concerns.firewall.iptables_rules import (
    EVERYBODY,
    FAMILIES,
    Listeners,
    networks_of,
    single_address,
    speaks,
)
from rackwright.concerns.firewall.kept import LEFT, SCRIPT
from rackwright.concerns.firewall.nft_drops import EPHEMERAL
from rackwright.concerns.firewall.older import CHAIN
from rackwright.concerns.firewall.rule_table import TAG
from rackwright.settings.group import Group

TEMPLATE = Path(__file__).parent / "fixtures" / "firewall-0.1.sh.j2"
Subnets = Mapping[int, tuple[str, ...]]
BRIDGE: Subnets = {4: ("172.17.0.1/16",)}


def older_script(rules: Mapping[str, list[str]], drops: Mapping[str, str]) -> str:
    """Return the script as those versions kept it. rules: `CHAIN REST` by command."""
    template = Environment(undefined=StrictUndefined, keep_trailing_newline=True).from_string(TEMPLATE.read_text())
    words = {"tag": TAG, "table": "inet rackwright", "chain": CHAIN, "run": LEFT, "path": SCRIPT}
    return template.render(rules=rules, drops=drops, **words)


def older_drops(endpoints: Listeners, subnets: Subnets = BRIDGE, group: Group | None = None) -> dict[str, str]:
    """Return the chain's texts by command."""
    return {
        command: _text([*_lines(endpoints, version, subnets), *_between(group, version)])
        for command, version in FAMILIES.items()
    }


def _lines(endpoints: Listeners, version: int, subnets: Subnets) -> Iterator[str]:
    for name, one in endpoints:
        networks = networks_of(one, version)
        if one.is_local or not speaks(one.address, version) or EVERYBODY[version] in networks:
            continue
        port = f"-p tcp -m tcp --dport {one.port}"
        address = single_address(one)
        to = f"-d {address} " if address else "-m addrtype --dst-type LOCAL "
        for network in networks:
            yield f"-A {CHAIN} -s {network} {port} {_comment(name, 'allowed')} -j RETURN"
        yield f"-A {CHAIN} {to}{port} {_comment(name, 'refused')} -j DROP"
        for subnet in subnets.get(version, ()) if one.network == "bridge" else ():
            yield f"-A {CHAIN} -d {subnet} {port} {_comment(name, 'refused')} -j DROP"


def _between(group: Group | None, version: int) -> Iterator[str]:
    if group is None:
        return
    if version == 6:
        if group.ports:
            port = f"-m addrtype --dst-type LOCAL -p tcp -m tcp --dport {group.ports[0]}:{group.ports[1]}"
            yield f"-A {CHAIN} {port} {_comment(group.endpoint, 'refused')} -j DROP"
        return
    taken = [(f"-d {group.member.address}/32", EPHEMERAL)]
    taken += [("-m addrtype --dst-type LOCAL", group.ports)] if group.ports else []
    for to, (first, last) in taken:
        port = f"-p tcp -m tcp --dport {first}:{last}"
        for member in group.members:
            yield f"-A {CHAIN} -s {member.address}/32 {port} {_comment(group.endpoint, 'allowed')} -j RETURN"
        yield f"-A {CHAIN} {to} {port} {_comment(group.endpoint, 'refused')} -j DROP"


def _comment(endpoint: str, purpose: str) -> str:
    return f'-m comment --comment "{TAG}{endpoint}:{purpose}"'


def _text(lines: list[str], bridge: str = "docker0") -> str:
    if not lines:
        return ""
    inside = [f"-A {CHAIN} -i {name} -j RETURN" for name in ("lo", bridge)]
    replies = f"-A {CHAIN} -m conntrack --ctdir REPLY -j RETURN"
    jump = f'-I PREROUTING 1 -m comment --comment "{TAG}drops" -j {CHAIN}'
    ordered = sorted(set(lines), key=lambda row: (row.endswith("DROP"), row))
    return "\n".join([f":{CHAIN} - [0:0]", jump, *inside, replies, *ordered, ""])
