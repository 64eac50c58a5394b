"""What the firewall asks for and changes, simulated on chains with any foreign rules."""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as sized
from hypothesis import strategies as st

from rackwright.concerns.docker import DOCKER, SeenDocker
from rackwright.concerns.docker.apt import OperatingSystem
from rackwright.concerns.endpoint.container import FORMAT
from rackwright.concerns.firewall import (
    FIREWALL,
    FIREWALL_AS_SERVED,
    ListenAddress,
    SeenFirewall,
    are_as_left,
    listens_elsewhere,
    new_addresses,
    opening_changes,
)
from rackwright.concerns.firewall.changes import DOOR, OFTEN
from rackwright.concerns.firewall.changes import report as report_of
from rackwright.concerns.firewall.iptables_rules import Proxied, endpoint_rules
from rackwright.concerns.firewall.kept import SCRIPT, UNIT, UNIT_FILE, door_file, kept_drops
from rackwright.concerns.firewall.nft_drops import NOTHING, count, drops
from rackwright.concerns.firewall.older import CHAIN, as_nft
from rackwright.concerns.firewall.rule_table import Rule, Table, closing_chains, in_place, parse_save, why_pending
from rackwright.concerns.firewall.seen import parse
from rackwright.concerns.watch import KEPT_PORT
from rackwright.plan.change import Change, Guarded, Owned, Refuse, Shell, WriteFile
from rackwright.plan.concern import HostReading
from rackwright.plan.ownership import RECORD
from rackwright.settings.allow_from import PRIVATE
from rackwright.settings.host_settings import HostSettings
from tests.nft_model import Packet
from tests.nft_model import verdict as nft_verdict
from tests.older_drops import older_drops, older_script

DEBIAN = OperatingSystem("debian", (), "bookworm", "12", "amd64")
EMPTY = ":INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n"
WITH_DOCKER = EMPTY + ":DOCKER-USER - [0:0]\n-A FORWARD -j DOCKER-USER\n-A DOCKER-USER -j RETURN\n"


def host(**values: Any) -> HostSettings:
    """Return the settings of a host."""
    model = {"repository": "openai/gpt-oss-20b", "mount": "/config/models/m"}
    return HostSettings.model_validate({"model": model, **values})


def save(rules: str) -> Table:
    """Return a filter table as iptables-save prints it."""
    return parse_save(f"*filter\n{rules}COMMIT\n")


def docker(daemon: str = "up", info: Mapping[str, Any] | None = None, config: str | None = None) -> SeenDocker:
    """Docker on a host."""
    return SeenDocker(DEBIAN, daemon, info=info or {}, files={"/etc/docker/daemon.json": config})  # type: ignore[arg-type]


def firewall(v4: str = WITH_DOCKER, v6: str = EMPTY, **values: Any) -> SeenFirewall:
    """Return a reading of a host's tables."""
    others = {name: save(text) for name, text in values.pop("others", {}).items()}
    tables = {"iptables": save(v4), "ip6tables": save(v6), **others}
    return SeenFirewall(tables, values.pop("files", {}), "iptables v1.8.9 (nf_tables)", ipv6=True, **values)


def pending(settings: HostSettings, found: SeenFirewall, engine: SeenDocker | None = None) -> list[Change]:
    """Return the changes."""
    return FIREWALL.pending(settings, reading(found, engine))


def reading(found: SeenFirewall, engine: SeenDocker | None = None) -> HostReading:
    """Return a reading with these two concerns."""
    return HostReading({RECORD.name: frozenset(), FIREWALL.name: found, DOCKER.name: engine or docker()})


def report(settings: HostSettings, found: SeenFirewall) -> str:
    """Return the warnings."""
    return report_of(FIREWALL.wanted(settings, reading(found)), found)


def apply(changes: list[Change], found: SeenFirewall) -> SeenFirewall:
    """Return the host after the changes: what the rendered scripts do, without a host."""
    after = found
    for step in (step for change in changes for step in change.steps):
        match step:
            case Guarded():
                after = run(step.script, after)
            case WriteFile():
                after = replace(after, files={**after.files, step.path: str(step.content)})
            case Shell() if "rm -f" in step.script:
                gone = next(path for path in after.files if f"path={path}" in step.script)
                after = replace(after, files={**after.files, gone: None})
            case Shell():
                assert f"unit={UNIT}" in step.script
                after = replace(run(str(after.files[SCRIPT]), after), enabled=True, active=True, watched=True)
            case _:
                pytest.fail(f"unexpected {step}")
    return after


def run(text: str, found: SeenFirewall) -> SeenFirewall:
    """Simulate the script: ours out, the others in, and the drops as they are said."""
    blocks = re.findall(r"^  (\S+)\)\n    cat <<'RULES'\n(.*?)^RULES$", text, re.MULTILINE | re.DOTALL)
    tables = {command: restore(lines.splitlines(), found.table(command)) for command, lines in blocks}
    older = {} if "&& clear_mangle" in text else found.older
    return replace(found, tables={**found.tables, **tables}, drops=kept_drops(text)["nft"], older=older)


def restore(lines: list[str], table: Table) -> Table:
    """Our rules out, the others in, each behind what closes; fails as iptables does for a position past the end."""
    chains = {name: [rule for rule in rules if not rule.ours] for name, rules in table.chains.items()}
    closing = closing_chains(Table({name: tuple(rules) for name, rules in chains.items()}))
    closers = {
        chain: [n for n, rule in enumerate(chain_rules, 1) if rule.target in closing]
        for chain, chain_rules in chains.items()
    }
    at = {chain: max(numbers, default=0) for chain, numbers in closers.items()}
    for row in lines:
        chain, position, rule_text = row.split(" ", 3)[1:] if row.startswith("-I ") else (row.split(" ")[0], "", "")
        if not table.has(chain):
            continue
        if not position:
            at[chain] = at.get(chain, 0) + 1
            position, rule_text = str(at[chain]), row.split(" ", 1)[1]
        rules = chains.setdefault(chain, [])
        assert 1 <= int(position) <= len(rules) + 1
        rules.insert(int(position) - 1, Rule(chain, rule_text))
    return Table({name: tuple(rules) for name, rules in chains.items()})


# -- foreign rules of any kind

PARTS = st.tuples(
    st.sampled_from(["", "-s 10.1.0.0/16", "-s 10.1.2.3/32", "-s 192.0.2.0/24"]),
    st.sampled_from(["", "-i lo", "-i docker0", "-i eth0", "! -i lo"]),
    st.sampled_from(["", "-p udp", "-p tcp", "-p tcp -m tcp --dport 8000", "-p tcp -m tcp --dport 22"]),
    st.sampled_from(["", "-m conntrack --ctstate ESTABLISHED"]),
    st.sampled_from(["-j ACCEPT", "-j DROP", "-j LOG", "-j custom", "-j RETURN", ""]),
)
FOREIGN = PARTS.map(lambda parts: " ".join(filter(None, parts)))
INNER = FOREIGN.filter(lambda rule: "-j custom" not in rule)
"""The kernel takes no chain that leads to itself."""
OLD = st.just('-p tcp -m tcp --dport 9 -m comment --comment "rackwright:old:refused" -j DROP')


@st.composite
def tables(draw: st.DrawFn) -> str:
    """Draw a table with foreign rules, and maybe some of Rackwright's from before."""
    text = WITH_DOCKER + ":custom - [0:0]\n"
    for chain in ("INPUT", "DOCKER-USER", "FORWARD", "custom"):
        for rule in draw(st.lists(INNER if chain == "custom" else FOREIGN | OLD, max_size=4)):
            text += f"-A {chain} {rule}\n"
    return text


NETWORKS = (
    st.lists(
        st.sampled_from(["10.1.0.0/16", "10.1.2.3/32", "0.0.0.0/0", "10.79.0.7/24", "fd00::/8", "::/0"]), min_size=1
    )
    | st.sampled_from(["private", "any"])
    | st.none()
)
ENDPOINTS = st.fixed_dictionaries(
    {
        "allow_from": NETWORKS,
        "network": st.sampled_from(["bridge", "host"]),
        "bind": st.sampled_from([None, "10.0.0.5", "127.0.0.1", "::", "fd00::5"]),
    }
)


@sized(deadline=None)
@given(values=ENDPOINTS, v4=tables(), v6=tables())
def test_changes_converge_and_foreign_rules_keep_their_order(values: dict[str, Any], v4: str, v6: str) -> None:
    before, settings = firewall(v4, v6), host(**values)
    after = apply(pending(settings, before), before)
    assert pending(settings, after) == []
    for command, table in before.tables.items():
        for chain in table.chains:
            assert foreign(after.table(command), chain) == foreign(table, chain)
    assert all(rule.ours for command in after.tables for rule in after.table(command).ours)


def foreign(table: Table, chain: str) -> list[str]:
    """Texts of the rules that are not ours."""
    return [rule.text for rule in table.rules(chain) if not rule.ours]


@sized(deadline=None)
@given(values=ENDPOINTS, v4=tables(), v6=tables())
def test_the_undo_puts_everything_back_exactly(values: dict[str, Any], v4: str, v6: str) -> None:
    before = firewall(v4, v6)
    for change in pending(host(**values), before):
        for step in change.steps:
            if isinstance(step, Guarded):
                exact = step.undo.split(") || (")[0]
                back = run(exact, run(step.script, before))
                assert back.tables == before.tables
                assert back.drops == NOTHING


# -- who gets in, judged packet by packet

CLIENTS = ["10.1.2.3", "10.1.9.9", "192.0.2.1", "10.79.0.9"]
BOTH = [*CLIENTS, "fd00:1::7", "2001:db8::9"]


@given(
    source=st.sampled_from(BOTH),
    interface=st.sampled_from(["eth0", "docker0", "lo"]),
    allow=st.lists(st.sampled_from(["10.1.0.0/16", "10.1.2.3/32", "0.0.0.0/0", "fd00::/8"]), min_size=1),
    bind=st.sampled_from([None, "10.0.0.5"]),
)
def test_nobody_but_the_allowed_reaches_the_port(
    source: str, interface: str, allow: list[str], bind: str | None
) -> None:
    settings = host(allow_from=allow, bind=bind)
    table = drops(list(settings.all_endpoints.items()), "docker0")
    networks = [ipaddress.ip_network(net) for net in allow]
    inside = interface != "eth0" or any(ipaddress.ip_address(source) in net for net in networks)
    packet = Packet(source, to_host(source), 8000, interface)
    for to in (packet, replace(packet, to=to_container(source), local=False)):
        assert (nft_verdict(table, to) == "drop") == (not inside and ":" not in (source if bind else ""))
    elsewhere = replace(packet, local=False, out="eth1", to=source)
    assert nft_verdict(table, elsewhere) == "accept", "what the host only forwards is not filtered by Rackwright"
    assert nft_verdict(table, replace(packet, reply=True)) == "accept"
    assert nft_verdict(table, replace(packet, port=22)) == "accept"


def to_host(source: str) -> str:
    """Return the host's own address of that IP version."""
    return "fd00::5" if ":" in source else "10.0.0.5"


def to_container(source: str) -> str:
    """Return a container's address of that IP version, on Docker's bridge."""
    return "fd17::2" if ":" in source else "172.17.0.2"


@sized(deadline=None)
@given(v4=tables(), source=st.sampled_from(CLIENTS), interface=st.sampled_from(["eth0", "docker0", "lo"]))
def test_what_somebody_else_closes_ours_never_open(v4: str, source: str, interface: str) -> None:
    before, settings = firewall(v4), host(allow_from=["10.1.0.0/16"])
    foreign = restore([], before.table("iptables"))
    after = apply(pending(settings, before), before).table("iptables")
    for port in ("8000", "22"):
        packet = {"-s": source, "-i": interface, "-p": "tcp", "--dport": port, "--ctstate": "NEW"}
        for chain in ("INPUT", "DOCKER-USER"):
            if verdict(foreign, chain, packet) == "DROP":
                assert verdict(after, chain, packet) == "DROP"


@sized(deadline=None)
@given(v4=tables(), position=st.integers(0, 9), text=FOREIGN)
def test_a_rule_that_closes_put_behind_ours_is_noticed(v4: str, position: int, text: str) -> None:
    settings = host(allow_from=["10.1.0.0/16"])
    rules = endpoint_rules(list(settings.all_endpoints.items()), 4, "docker0")
    table = restore([f"{rule.chain} {rule.text}" for rule in rules], save(v4))
    chain = list(table.rules("INPUT"))
    first = next(number for number, rule in enumerate(chain) if rule.ours)
    chain.insert(position, Rule("INPUT", text))
    changed = Table({**table.chains, "INPUT": tuple(chain)})
    late = position > first and Rule("INPUT", text).target in closing_chains(changed)
    assert bool(why_pending(rules, changed)) == late


def verdict(table: Table, chain: str, packet: Mapping[str, str]) -> str:
    """Return a chain's decision on a packet: ACCEPT, DROP, RETURN, or nothing."""
    for rule in table.rules(chain):
        if not all(_meets(option, value, packet) for option, value in rule.matches.items()):
            continue
        target = rule.target
        if target in ("ACCEPT", "DROP", "RETURN"):
            return target
        inner = verdict(table, target, packet) if target in table.chains else ""
        if inner in ("ACCEPT", "DROP"):
            return inner
    return ""


def _meets(option: str, value: str, packet: Mapping[str, str]) -> bool:
    if option.startswith("! "):
        return not _meets(option[2:], value, packet)
    if option in ("-j", "--comment"):
        return True
    if option == "--ctstate" and option not in packet:
        return False
    if option in ("-s", "-d"):
        return option in packet and ipaddress.ip_address(packet[option]) in ipaddress.ip_network(value)
    return packet.get(option) == value


# -- single cases


def texts(settings: HostSettings, version: int = 4) -> list[str]:
    """Our rules without their comments."""
    rules = endpoint_rules(list(settings.all_endpoints.items()), version, "docker0")
    return [f"{rule.chain} {rule.text.split('-m comment')[0]}{rule.target}" for rule in rules]


def dropped(settings: HostSettings) -> list[str]:
    """Return the rows of the table that drop."""
    text = drops(list(settings.all_endpoints.items()), "docker0")
    return [row.strip() for row in text.splitlines() if " drop " in row]


TO_THIS_HOST, PORT = "fib daddr type local", "tcp dport 8000"
"""How nftables writes a packet for any address of the host's own, and one for the endpoint's port."""


def test_closed_by_default_to_all_but_private_networks() -> None:
    assert host().networks == PRIVATE
    assert dropped(host()) == dropped(host(allow_from="private"))
    v4_routed, _, v4, v6 = dropped(host())
    assert v4.startswith(f"{TO_THIS_HOST} {PORT} ip saddr != {{ 10.0.0.0/8, 100.64.0.0/10, 169.254.0.0/16")
    assert v4_routed.startswith(f'fib daddr oifname "docker0" {PORT} ip saddr != {{')
    assert "ip6 saddr != { fc00::/7, fe80::/10 } drop" in v6
    assert report(host(), firewall()) == ""


FRIENDS = ["10.1.0.0/16", "fd00:1::/64"]


@pytest.mark.parametrize(
    ("bind", "network", "proxied", "opened"),
    [
        (None, "bridge", Proxied(), (False, False)),
        (None, "bridge", Proxied(frozenset()), (True, False)),
        (None, "bridge", Proxied(over_ipv6=frozenset({8000})), (False, True)),
        (None, "bridge", Proxied(over_ipv6=frozenset({8001})), (False, False)),
        ("::", "bridge", Proxied(), (False, True)),
        ("::", "bridge", Proxied(frozenset({4, 6})), (False, False)),
        ("0.0.0.0", "host", Proxied(), (True, False)),
        ("::", "host", Proxied(), (True, True)),
    ],
    ids=[
        "Docker translates",
        "iptables: false",
        "published on IPv6 by hand",
        "another port is",
        "IPv6",
        "IPv6 that Docker translates",
        "the host's network, IPv4",
        "the host's network, both",
    ],
)
def test_input_opens_only_where_the_endpoints_own_listener_or_dockers_proxy_is_behind_it(
    bind: str | None, network: str, proxied: Proxied, opened: tuple[bool, bool]
) -> None:
    """No rule of Rackwright opens the host's own port for another listener."""
    settings = host(allow_from=FRIENDS, bind=bind, network=network)
    endpoints = list(settings.all_endpoints.items())
    found = [
        "rackwright:llm:allowed"
        in "".join(rule.text for rule in endpoint_rules(endpoints, version, "docker0", proxied))
        for version in (4, 6)
    ]
    assert tuple(found) == opened


@pytest.mark.parametrize(
    ("chains", "daemon_json", "engine", "needed"),
    [
        (WITH_DOCKER, None, {}, False),
        (EMPTY, None, {}, True),
        (WITH_DOCKER, '{"iptables": false}', {}, True),
        (EMPTY, None, {"FirewallBackend": {"Driver": "nftables"}}, False),
    ],
    ids=["its chains are there", "they are gone", "it makes none", "it makes nft's own"],
)
def test_what_docker_translates_is_read(chains: str, daemon_json: str | None, engine: Any, needed: bool) -> None:
    docker_seen = docker(info={"ServerVersion": "29.0.1", **engine}, config=daemon_json)
    wanted = FIREWALL.wanted(host(allow_from=FRIENDS), reading(firewall(v4=chains), docker_seen))
    assert any("10.1.0.0/16" in rule.text for rule in wanted.rules["iptables"]) == needed


def test_chains_that_the_run_makes_again_count_as_there() -> None:
    """Otherwise the rule that is set without them would be one too many once dockerd was restarted for them."""
    engine = replace(docker(info={"ServerVersion": "28.0.1"}), lacks=("nat DOCKER", "filter DOCKER-USER"))
    wanted = FIREWALL.wanted(host(allow_from=FRIENDS), reading(firewall(v4=EMPTY), engine))
    assert not any("10.1.0.0/16" in rule.text for rule in wanted.rules["iptables"])


def test_the_rules_of_an_older_version_are_taken_away() -> None:
    old = Rule(
        "INPUT", '-s 10.1.0.0/16 -p tcp -m tcp --dport 8000 -m comment --comment "rackwright:llm:allowed" -j ACCEPT'
    )
    settings = host(allow_from=["10.1.0.0/16"])
    before = firewall(v4=WITH_DOCKER)
    after = apply(pending(settings, before), before)
    grown = {**after.table("iptables").chains}
    grown["INPUT"] = (*grown["INPUT"], old)
    upgraded = replace(after, tables={**after.tables, "iptables": Table(grown)})
    (change, *_) = pending(settings, upgraded)
    assert "1 to remove" in change.why
    assert old.text not in [rule.text for rule in apply(pending(settings, upgraded), upgraded).table("iptables").ours]


def test_any_is_open_with_a_warning() -> None:
    settings = host(allow_from="any")
    assert dropped(settings) == []
    on_host = host(network="host", allow_from="any")
    assert "INPUT -p tcp -m tcp --dport 8000 ACCEPT" in texts(on_host)
    assert "port 8000 of endpoint llm is" in report(settings, firewall())
    assert "open to all" in report(settings, firewall())


def test_the_default_is_a_filter_and_never_a_reason_to_listen_elsewhere() -> None:
    endpoint = host(network="host").all_endpoints["llm"]
    assert (endpoint.address, endpoint.is_local) == ("127.0.0.1", True)
    assert dropped(host(network="host")) == []
    for allowed in ("private", "any", ["10.0.0.0/8"]):
        assert host(network="host", allow_from=allowed).all_endpoints["llm"].address == "0.0.0.0"


def test_a_host_network_endpoint_asks_nothing_of_dockers_chain() -> None:
    settings = host(network="host", allow_from=["10.1.0.0/16"])
    assert not [text for text in texts(settings) if text.startswith("DOCKER-USER")]
    assert not any("oifname" in row for row in dropped(settings))
    assert report(settings, firewall()) == ""


def test_an_endpoint_on_one_address_leaves_the_port_on_other_addresses_alone() -> None:
    settings = host(bind="10.0.0.5", allow_from=["10.1.0.0/16"])
    routed, on_host = dropped(settings)
    assert on_host.startswith(f"ip daddr 10.0.0.5 {PORT} ip saddr != {{ 10.1.0.0/16 }}")
    assert routed.startswith('fib daddr oifname "docker0"')


def test_allow_from_in_one_family_closes_the_other() -> None:
    settings = host(allow_from=["10.1.0.0/16"])
    assert any("meta nfproto ipv6 drop" in row for row in dropped(settings))
    assert not any("10.1.0.0" in text for text in texts(settings, 6))


def test_an_endpoint_on_loopback_that_names_networks_is_told_so() -> None:
    assert "lets no client in" in report(host(bind="127.0.0.1", allow_from=["10.1.0.0/16"]), firewall())
    assert report(host(bind="127.0.0.1"), firewall()) == ""


def test_several_endpoints_share_the_rule_for_containers() -> None:
    settings = host(endpoints={"a": {"port": 8001, "allow_from": "any"}, "b": {"port": 8002}})
    found = texts(settings)
    assert found.count("DOCKER-USER -i docker0 ACCEPT") == 1
    assert not any("8001" in row for row in dropped(settings))
    assert len(set(found)) == len(found)


def test_the_text_for_a_bare_host() -> None:
    bare = SeenFirewall({}, {}, ipv6=True)
    first, second = pending(host(allow_from=["10.1.0.0/16"]), bare, docker("absent"))
    assert first.why == (
        "iptables: 3 to add; ip6tables: 3 to add; drops by nft: the drops have been changed: 4 of Rackwright's"
    )
    assert SCRIPT in second.why


def test_a_host_without_ipv6_has_no_rules_for_it() -> None:
    found = SeenFirewall({"iptables": save(WITH_DOCKER)}, {}, "iptables v1.8.9 (nf_tables)")
    change = pending(host(), found)[0]
    assert "ip6tables" not in change.why
    assert list(FIREWALL.wanted(host(), reading(found)).rules) == ["iptables"]


def test_docker_in_nftables_mode_is_closed_as_any_other() -> None:
    engine = docker(info={"ServerVersion": "29.0.1", "FirewallBackend": {"Driver": "nftables"}})
    found = firewall(v4=EMPTY)
    after = apply(pending(host(allow_from=["10.1.0.0/16"]), found, engine), found)
    assert "tcp dport 8000" in str(after.drops)
    assert pending(host(allow_from=["10.1.0.0/16"]), after, engine) == []


BEFORE_DOCKER = frozenset({DOCKER.name, FIREWALL.name})


@pytest.mark.parametrize(
    ("nft", "managed", "code", "final"),
    [
        ("missing", BEFORE_DOCKER, "RW2504", False),
        ("missing", frozenset({FIREWALL.name}), "RW2504", True),
        ("missing", None, "RW2504", True),
        ("Error: cache initialization failed", BEFORE_DOCKER, "RW2514", True),
    ],
    ids=["docker() installs it", "deploy.py has no docker()", "a rollback", "the kernel does not take it"],
)
def test_without_nft_nothing_is_changed(nft: str, managed: frozenset[str] | None, code: str, final: bool) -> None:
    before = replace(firewall(), nft=nft)
    found = pending_in(managed, host(), before)
    refusal = found[0].steps[0]
    assert isinstance(refusal, Refuse)
    assert (refusal.code, refusal.final, refusal.text.count("; next: ")) == (code, final, 1)
    assert len(found) == (1 if final else 2), "a plan says what comes, once docker() has installed it"


@pytest.mark.parametrize("values", [{"allow_from": "any"}, {"bind": "127.0.0.1"}], ids=["open", "of the host alone"])
def test_where_nobody_is_kept_out_nft_is_not_needed(values: dict[str, Any]) -> None:
    before = replace(firewall(), nft="missing")
    found = pending_in(frozenset({FIREWALL.name}), host(**values), before)
    assert not any(isinstance(step, Refuse) for change in found for step in change.steps)
    assert pending(host(**values), apply(found, before)) == []


def pending_in(managed: frozenset[str] | None, settings: HostSettings, found: SeenFirewall) -> list[Change]:
    """Return the changes of a deploy that calls these steps."""
    return FIREWALL.pending(settings, replace(reading(found), managed=managed))


# -- hosts that an earlier version closed in iptables' mangle table


def older(settings: HostSettings, before: SeenFirewall | None = None) -> SeenFirewall:
    """Return a host as an earlier version leaves it where nft is missing; nft has been installed since."""
    done = apply(pending(settings, before or firewall()), before or firewall())
    drops = older_drops(list(settings.all_endpoints.items()))
    return replace(done, drops=None, older=drops, files={**done.files, SCRIPT: older_script({}, drops)})


def test_drops_of_an_earlier_version_are_as_it_left_them_and_go_after_the_confirmation() -> None:
    former = older(host())
    assert are_as_left(replace(former, tables=firewall().tables))
    assert not are_as_left(replace(former, tables=firewall().tables, older={}))
    first, second = pending(host(), former)
    guarded = first.steps[0]
    assert isinstance(guarded, Guarded)
    assert "mangle" in first.why
    confirmed = run(guarded.script, former)
    assert (confirmed.older, count(str(confirmed.drops))) == (former.older, 4), "both stand until it is confirmed"
    undone = run(guarded.undo, confirmed)
    assert (undone.older, undone.drops) == (former.older, NOTHING), "and after an undo the older ones stand"
    after = apply([first, second], former)
    assert (after.older, count(str(after.drops))) == ({}, 4)
    assert pending(host(), after) == []


def test_a_run_that_ends_before_the_older_drops_are_gone_is_finished_by_the_next() -> None:
    done = apply(pending(host(), firewall()), firewall())
    between = replace(done, older=older_drops(list(host().all_endpoints.items())))
    assert not are_as_left(between)
    (change,) = pending(host(), between)
    assert [type(step) for step in change.steps] == [Shell]
    assert pending(host(), apply([change], between)) == []


TWO: dict[str, Any] = {
    name: {"allow_from": ["10.1.0.0/16", "fd00:1::/64"], "port": port, "gpus": [gpu]}
    for name, port, gpu in (("a", 8000, 0), ("b", 8001, 1))
}


def test_an_endpoint_that_is_no_longer_wanted_is_closed_by_nft_as_it_was_by_the_older_drops() -> None:
    former = older(host(endpoints=TWO))
    places = {name: ListenAddress("bridge", "0.0.0.0", one["port"]) for name, one in TWO.items()}
    serving = replace(former, current=places, proven=places)
    one = host(endpoints={"a": TWO["a"]})
    after = apply(pending(one, serving), serving)
    assert ports(after) == {"8000", "8001"}
    for source, verdict_ in {"10.1.2.3": "accept", "192.0.2.1": "drop", "2001:db8::9": "drop"}.items():
        assert nft_verdict(str(after.drops), Packet(source, to_host(source), 8001)) == verdict_
    assert pending(one, after) == []


@given(
    source=st.sampled_from(BOTH),
    values=st.fixed_dictionaries(
        {
            "allow_from": st.lists(st.sampled_from(["10.1.0.0/16", "10.1.2.3/32", "fd00::/8"]), min_size=1),
            "bind": st.sampled_from([None, "10.0.0.5", "::", "fd00::5"]),
            "network": st.sampled_from(["bridge", "host"]),
        }
    ),
    interface=st.sampled_from(["eth0", "docker0", "lo"]),
    local=st.booleans(),
)
def test_older_drops_close_in_nft_what_they_closed_in_the_mangle_table(
    source: str, values: dict[str, Any], interface: str, local: bool
) -> None:
    endpoints = list(host(**values).all_endpoints.items())
    texts = older_drops(endpoints, {4: ("172.17.0.1/16",), 6: ("fd17::1/64",)})
    table = drops([], "docker0", as_nft(["llm"], texts))
    to = to_host(source) if local else to_container(source)
    text = texts["ip6tables" if ":" in source else "iptables"]
    rules = "".join(f"{row}\n" for row in text.splitlines() if row.startswith("-A "))
    packet = {"-s": source, "-d": to, "-i": interface, "-p": "tcp", "--dport": "8000", "--ctdir": "ORIGINAL"}
    was = verdict(save(f":{CHAIN} - [0:0]\n{rules}"), CHAIN, packet | {"--dst-type": "LOCAL" if local else "UNICAST"})
    assert (nft_verdict(table, Packet(source, to, 8000, interface, local)) == "drop") == (was == "DROP")


def test_drops_that_do_not_stand_are_put_there_again_text() -> None:
    done = apply(pending(host(), firewall()), firewall())
    (change,) = pending(host(), replace(done, drops=None))
    assert change.why == "drops by nft: the drops have been changed: 4 of Rackwright's"
    assert not are_as_left(replace(done, drops=None))
    assert pending(host(), apply([change], replace(done, drops=None))) == []
    guarded = change.steps[0]
    assert isinstance(guarded, Guarded)
    assert run(guarded.undo, firewall()).drops == done.drops, "what the host keeps closes it again"


def test_an_endpoint_starts_only_behind_the_drops() -> None:
    done = apply(pending(host(), firewall()), firewall())
    drop_in = next(path for path in done.files if path.endswith(DOOR))
    assert drop_in == "/etc/systemd/system/rackwright-llm.service.d/rackwright-firewall.conf"
    assert f"ExecStartPre=/bin/sh {SCRIPT} close" in str(done.files[drop_in])
    opened = apply(pending(host(allow_from="any"), done), done)
    assert opened.files[drop_in] is None


def test_the_text_of_what_the_host_put_back_and_of_a_fight() -> None:
    once = replace(firewall(), repairs=((120, "the drops were gone"),))
    assert report(host(), once) == (
        "within the last hour this host has put its firewall rules back once, 2 min ago for: the drops were gone"
    )
    fight = replace(firewall(), repairs=once.repairs * OFTEN)
    assert "rackwright firewall pause INVENTORY --limit HOST" in report(host(), fight)


def test_rules_in_the_other_backend_are_told_and_ours_there_go() -> None:
    foreign = '-A INPUT -p tcp -m comment --comment "rackwright:llm:refused" -j DROP\n-A INPUT -j ACCEPT\n'
    found = firewall(others={"iptables-legacy": EMPTY + foreign})
    assert "iptables-legacy has rules" in report(host(), found)
    after = apply(pending(host(), found), found)
    assert [rule.text for rule in after.table("iptables-legacy").rules("INPUT")] == ["-j ACCEPT"]


def test_dockers_bridge_may_have_another_name() -> None:
    changes = pending(host(), firewall(), docker(config='{"bridge": "br0"}'))
    assert "-i br0 -p tcp" in changes[0].diff
    assert "docker0" not in changes[0].diff


def test_what_an_earlier_run_never_confirmed_is_confirmed_now() -> None:
    settings = host(allow_from=["10.1.0.0/16"])
    after = apply(pending(settings, firewall()), firewall())
    again = replace(after, unconfirmed=True)
    (change,) = pending(settings, again)
    assert "never confirmed" in change.why
    assert isinstance(change.steps[0], Guarded)


@pytest.mark.parametrize("lost", ["enabled", "active", "watched", SCRIPT, UNIT_FILE])
def test_what_puts_the_rules_back_is_itself_put_back(lost: str) -> None:
    done = apply(pending(host(), firewall()), firewall())
    files = {**done.files, lost: None} if lost in done.files else done.files
    flags = {name: name != lost for name in ("enabled", "active", "watched")}
    drifted = replace(done, files=files, enabled=flags["enabled"], active=flags["active"], watched=flags["watched"])
    (change,) = pending(host(), drifted)
    assert change.what.startswith("keep the firewall rules")
    assert pending(host(), apply([change], drifted)) == []


def test_the_rules_are_kept_only_after_they_were_confirmed() -> None:
    first, second = pending(host(allow_from=["10.1.0.0/16"]), firewall())
    assert [type(step) for step in first.steps] == [Guarded]
    assert {type(step) for step in second.steps} == {WriteFile, Shell}


def test_the_reading_is_understood() -> None:
    def b64(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    saved = f"*filter\n{WITH_DOCKER}COMMIT\n"
    found = parse(
        f"backend=iptables v1.8.9 (nf_tables)\ntable iptables {b64(saved)}\ntable ip6tables {b64(saved)}\nipv6=yes\n"
        f"drops nft {b64('text')}\nsubnet 4 172.17.0.1/16\nrepair 61 {b64('gone')}\n"
        f"file {SCRIPT} {b64('text')}\nnone {UNIT_FILE}\nenabled=enabled\nactive=inactive\nguard=inactive\n"
        "watched=active"
    )
    assert found.table("iptables").has("DOCKER-USER")
    assert found.files == {SCRIPT: "text", UNIT_FILE: None}
    assert (found.ipv6, found.enabled, found.active, found.unconfirmed, found.watched) == (
        True,
        True,
        False,
        False,
        True,
    )
    assert (found.nft, found.drops, found.older, found.repairs) == ("", "text", {}, ((61, "gone"),))
    assert found.subnets == {4: ("172.17.0.1/16",), 6: ()}
    without = parse(f"enabled=\nactive=\nguard=\nnft=missing\ndrops iptables {b64('older')}")
    assert (without.nft, without.drops, without.older) == ("missing", None, {"iptables": "older"})


def test_positions_are_those_of_the_table() -> None:
    table = save(WITH_DOCKER + '-A DOCKER-USER -j DROP -m comment --comment "rackwright:x"\n')
    assert in_place(table) == ['-I DOCKER-USER 2 -j DROP -m comment --comment "rackwright:x"']


@pytest.mark.parametrize(("setting", "refused"), [("refuse", True), ("aside", False)])
def test_a_unit_made_by_hand_under_our_units_name_is_refused_or_kept_aside(setting: str, refused: bool) -> None:
    found = firewall(files={UNIT_FILE: "[Service]\n", SCRIPT: None})
    first = pending(host(releases={"foreign_units": setting}), found)[0]
    assert isinstance(first.steps[0], Refuse) == refused
    assert (Owned("aside", UNIT) in first.owns) != refused


# -- the rules follow what serves


def spec_at(port: int, address: str = "0.0.0.0") -> str:
    """Return a release's spec.json, as a reading carries it."""
    keys = {"hash": "a", "serving": "b", "image": "c", "mounts": [], "served_name": "m", "format": FORMAT}
    spec = {**keys, "network": "bridge", "address": address, "port": port}
    return base64.b64encode(json.dumps(spec).encode()).decode()


def ports(found: SeenFirewall) -> set[str]:
    """Return the ports in Rackwright's rules."""
    rules = [rule.text for table in found.tables.values() for rule in table.ours]
    opened, closed = (set(re.findall(r"port (\d+)", " ".join(texts))) for texts in (rules, [str(found.drops)]))
    assert opened == closed
    return opened


def listening(found: SeenFirewall, current: int | None, proven: int | None = None, name: str = "llm") -> SeenFirewall:
    """Return the same host with an endpoint that listens."""
    places = [{name: ListenAddress("bridge", "0.0.0.0", port)} if port else {} for port in (current, proven or current)]
    return replace(found, current=places[0], proven=places[1])


def follow(settings: HostSettings, found: SeenFirewall) -> SeenFirewall:
    """Return the rules after a host's turn."""
    return apply(FIREWALL_AS_SERVED.pending(settings, reading(found)), found)


TEN: dict[str, Any] = {"allow_from": ["10.0.0.0/8"]}


def test_the_port_that_is_left_keeps_its_rules_until_the_switch_and_then_they_go() -> None:
    old, new = host(**TEN, port=8000), host(**TEN, port=9000)
    on_host = listening(apply(pending(old, firewall()), firewall()), 8000)
    assert not listens_elsewhere(old, reading(on_host))
    assert listens_elsewhere(new, reading(on_host))
    staged = listening(apply(pending(new, on_host), on_host), 8000)
    assert ports(staged) == {"8000", "9000"}
    assert pending(new, staged) == []
    assert "port 8000, whose rules stay" in report(new, staged)
    committed = follow(new, listening(staged, 9000))
    assert ports(committed) == {"9000"}
    assert pending(new, listening(committed, 9000)) == []


def test_a_switch_that_rolls_back_leaves_the_rules_as_they_were() -> None:
    old, new = host(**TEN, port=8000), host(**TEN, port=9000)
    on_host = listening(apply(pending(old, firewall()), firewall()), 8000)
    staged = listening(apply(pending(new, on_host), on_host), 8000)
    assert follow(new, staged).tables == on_host.tables


def test_while_a_release_is_on_trial_the_way_back_is_open() -> None:
    new = host(**TEN, port=9000)
    trying = listening(firewall(), 9000, proven=8000)
    assert ports(apply(pending(new, trying), trying)) == {"8000", "9000"}


def test_a_rollback_opens_the_old_port_before_it_listens_there() -> None:
    new = host(**TEN, port=9000)
    on_host = listening(apply(pending(new, firewall()), firewall()), 9000)
    opening = opening_changes(new, reading(on_host), {"llm": ListenAddress("bridge", "0.0.0.0", 8000)})
    both = apply(opening, on_host)
    assert ports(both) == {"8000", "9000"}
    back = follow(new, listening(both, 8000))
    assert ports(back) == {"8000"}
    assert are_as_left(back), "what a rollback leaves is not drift"
    assert not are_as_left(replace(back, tables={**back.tables, "iptables": save(WITH_DOCKER)}))


@pytest.mark.parametrize("text", [None, "[Service]\n", "[Service]\nExecStartPre=/bin/true\n"])
def test_a_units_drop_in_that_somebody_removed_or_emptied_has_moved(text: str | None) -> None:
    wanted, path = host(**TEN, port=8000), door_file("llm")
    done = apply(pending(wanted, firewall()), firewall())
    record = frozenset({Owned("file", path)})
    assert are_as_left(done, record)
    assert are_as_left(replace(done, files={**done.files, path: f"# other words\n{done.files[path]}"}), record)
    edited = {key: value for key, value in done.files.items() if key != path}
    edited |= {path: text} if text is not None else {}
    assert are_as_left(replace(done, files=edited)), "without its record it is unknown"
    assert not are_as_left(replace(done, files=edited), record)


def test_a_host_that_an_older_rackwright_left_has_not_drifted_and_gets_the_new_check_by_its_next_deploy() -> None:
    wanted = host(**TEN, port=8000)
    done = apply(pending(wanted, firewall()), firewall())
    older = replace(done, files={**done.files, KEPT_PORT: None})
    assert are_as_left(older)
    assert not are_as_left(replace(done, files={**done.files, SCRIPT: None}))
    [change] = pending(wanted, older)
    assert [step.path for step in change.steps if isinstance(step, WriteFile)] == [KEPT_PORT]


def test_an_endpoint_that_is_no_longer_wanted_keeps_its_rules_as_long_as_it_is_there() -> None:
    two = host(endpoints={"a": {**TEN, "port": 8000, "gpus": [0]}, "b": {**TEN, "port": 8001, "gpus": [1]}})
    one = host(endpoints={"a": {**TEN, "port": 8000, "gpus": [0]}})
    on_host = apply(pending(two, firewall()), firewall())
    serving = replace(
        listening(on_host, 8000, name="a"),
        current={n: ListenAddress("bridge", "0.0.0.0", p) for n, p in (("a", 8000), ("b", 8001))},
    )
    assert listens_elsewhere(one, reading(serving))
    assert pending(one, serving) == []
    assert ports(follow(one, listening(on_host, 8000, name="a"))) == {"8000"}


def test_where_endpoints_listen_is_read_from_their_releases() -> None:
    found = parse(
        f"backend=x\nenabled=enabled\nactive=active\nguard=inactive\ncurrent llm {spec_at(9000)}\n"
        f"proven llm {spec_at(8000)}\nproven broken bm90IGpzb24="
    )
    assert found.current == {"llm": ListenAddress("bridge", "0.0.0.0", 9000)}
    assert found.proven == {"llm": ListenAddress("bridge", "0.0.0.0", 8000)}


@given(
    st.sampled_from(["bridge", "host"]),
    st.sampled_from([None, "127.0.0.1", "10.0.0.5", "0.0.0.0"]),
    st.sampled_from([8000, 9000]),
    st.sampled_from([None, ["10.0.0.0/8"], ["10.0.0.0/8", "fd00::/8"]]),
    st.builds(
        ListenAddress, st.sampled_from(["bridge", "host"]), st.sampled_from(["0.0.0.0", "127.0.0.1"]), st.just(8000)
    ),
)
@sized(deadline=None, max_examples=60)
def test_any_move_of_an_endpoint_converges(
    network: str, bind: str | None, port: int, allowed: list[str] | None, address: ListenAddress
) -> None:
    settings = host(network=network, bind=bind, port=port, allow_from=allowed)
    before = host(network=address.network, bind=address.address, port=address.port, allow_from=allowed)
    deployed = apply(pending(before, firewall()), firewall())
    on_host = replace(deployed, current={"llm": address}, proven={"llm": address})
    staged = replace(apply(pending(settings, on_host), on_host), current=on_host.current, proven=on_host.proven)
    assert pending(settings, staged) == []
    assert str(address.port) in " ".join(rule.text for rule in staged.table("iptables").ours)
    endpoint = settings.all_endpoints["llm"]
    committed = follow(
        settings, replace(staged, current={"llm": ListenAddress(endpoint.network, endpoint.address, endpoint.port)})
    )
    after = {"llm": ListenAddress(endpoint.network, endpoint.address, endpoint.port)}
    assert pending(settings, replace(committed, current=after, proven=after)) == []


def test_without_the_step_nothing_is_known_to_move() -> None:
    bare = HostReading({RECORD.name: frozenset()})
    assert not listens_elsewhere(host(port=9000), bare)
    assert new_addresses(bare, {"llm": ListenAddress("bridge", "0.0.0.0", 8000)}) == {}
