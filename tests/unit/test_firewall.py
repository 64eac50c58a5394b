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

from rackwright.change import Change, Guarded, Owned, Refuse, Shell, WriteFile
from rackwright.concern import HostReading
from rackwright.concerns import firewall
from rackwright.concerns.apt import OperatingSystem
from rackwright.concerns.docker import DOCKER, SeenDocker
from rackwright.concerns.firewall import (
    FIREWALL,
    FIREWALL_AS_SERVED,
    SCRIPT,
    UNIT,
    UNIT_FILE,
    Place,
    SeenFirewall,
    are_as_left,
    is_moving,
    moved,
    opening_changes,
)
from rackwright.concerns.firewall_rules import endpoint_rules
from rackwright.iptables import Rule, Table, at_top, in_place, parse_save, why_pending
from rackwright.ownership import RECORD
from rackwright.settings.model import HostSettings
from rackwright.spec import FORMAT

DEBIAN = OperatingSystem("debian", (), "bookworm", "12", "amd64")
EMPTY = ":INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n"
WITH_DOCKER = EMPTY + ":DOCKER-USER - [0:0]\n-A FORWARD -j DOCKER-USER\n-A DOCKER-USER -j RETURN\n"


def host(**values: Any) -> HostSettings:
    """Settings of a host."""
    model = {"repository": "openai/gpt-oss-20b", "mount": "/config/models/m"}
    return HostSettings.model_validate({"model": model, **values})


def save(rules: str) -> Table:
    """A filter table."""
    return parse_save(f"*filter\n{rules}COMMIT\n")


def docker(daemon: str = "up", info: Mapping[str, Any] | None = None, config: str | None = None) -> SeenDocker:
    """Docker on a host."""
    return SeenDocker(DEBIAN, daemon, info=info or {}, files={"/etc/docker/daemon.json": config})  # type: ignore[arg-type]


def seen(v4: str = WITH_DOCKER, v6: str = EMPTY, **values: Any) -> SeenFirewall:
    """A host's tables."""
    others = {name: save(text) for name, text in values.pop("others", {}).items()}
    tables = {"iptables": save(v4), "ip6tables": save(v6), **others}
    return SeenFirewall(tables, values.pop("files", {}), "iptables v1.8.9 (nf_tables)", ipv6=True, **values)


def pending(settings: HostSettings, found: SeenFirewall, engine: SeenDocker | None = None) -> list[Change]:
    """The changes."""
    return FIREWALL.pending(settings, reading(found, engine))


def reading(found: SeenFirewall, engine: SeenDocker | None = None) -> HostReading:
    """A reading with these two concerns."""
    return HostReading({RECORD.name: frozenset(), FIREWALL.name: found, DOCKER.name: engine or docker()})


def report(settings: HostSettings, found: SeenFirewall) -> str:
    """The warnings."""
    return firewall.report(FIREWALL.wanted(settings, reading(found)), found)


def apply(changes: list[Change], found: SeenFirewall) -> SeenFirewall:
    """What a host is like after the changes: what the rendered scripts do, without a host."""
    tables, files, on = dict(found.tables), dict(found.files), found.active
    for step in (step for change in changes for step in change.steps):
        match step:
            case Guarded():
                tables = run(step.script, tables)
            case WriteFile():
                files[step.path] = str(step.content)
            case Shell():
                assert f"enable --quiet {UNIT}" in step.script
                tables, on = run(str(files[SCRIPT]), tables), True
            case _:
                pytest.fail(f"unexpected {step}")
    return SeenFirewall(tables, files, found.backend, found.ipv6, on, on)


def run(script: str, tables: Mapping[str, Table]) -> dict[str, Table]:
    """Simulate the script: ours out, then each insertion whose chain is there, as iptables-restore does it."""
    after = dict(tables)
    for block in script.split("\nreplace ")[1:]:
        command, *lines = block.splitlines()
        after[command.split()[0]] = restore(
            [line for line in lines if line.startswith("-I ")], after[command.split()[0]]
        )
    return after


def restore(insertions: list[str], table: Table) -> Table:
    """Our rules out, the insertions in; fails as iptables does for a position past the end."""
    chains = {name: [rule for rule in rules if not rule.ours] for name, rules in table.chains.items()}
    for line in insertions:
        _, chain, position, text = line.split(" ", 3)
        if table.has(chain):
            rules = chains.setdefault(chain, [])
            assert 1 <= int(position) <= len(rules) + 1
            rules.insert(int(position) - 1, Rule(chain, text))
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
OLD = st.just('-p tcp -m tcp --dport 9 -m comment --comment "rackwright:old:refused" -j DROP')


@st.composite
def tables(draw: st.DrawFn) -> str:
    """A table with foreign rules, and maybe some of ours from before."""
    text = WITH_DOCKER + ":custom - [0:0]\n"
    for chain in ("INPUT", "DOCKER-USER", "FORWARD", "custom"):
        for rule in draw(st.lists(FOREIGN if chain == "custom" else FOREIGN | OLD, max_size=4)):
            text += f"-A {chain} {rule}\n"
    return text


NETWORKS = st.lists(st.sampled_from(["10.1.0.0/16", "10.1.2.3/32", "0.0.0.0/0", "10.79.0.7/24", "fd00::/8", "::/0"]))
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
    before, settings = seen(v4, v6), host(**values)
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
    before = seen(v4, v6)
    for change in pending(host(**values), before):
        for step in change.steps:
            if isinstance(step, Guarded):
                exact = step.undo.split(") || (")[0]
                assert run(exact, run(step.script, before.tables)) == dict(before.tables)


# -- who gets in, judged packet by packet

CLIENTS = ["10.1.2.3", "10.1.9.9", "192.0.2.1", "10.79.0.9"]


@sized(deadline=None)
@given(
    v4=tables(),
    source=st.sampled_from(CLIENTS),
    interface=st.sampled_from(["eth0", "docker0", "lo"]),
    allow=st.lists(st.sampled_from(["10.1.0.0/16", "10.1.2.3/32", "0.0.0.0/0"]), min_size=1),
)
def test_nobody_but_the_allowed_reaches_the_port_whatever_else_is_there(
    v4: str, source: str, interface: str, allow: list[str]
) -> None:
    before, settings = seen(v4), host(allow_from=allow)
    after = apply(pending(settings, before), before)
    inside = interface != "eth0" or any(ipaddress.ip_address(source) in ipaddress.ip_network(net) for net in allow)
    packet = {"-s": source, "-i": interface, "-p": "tcp", "--dport": "8000", "--ctstate": "NEW"}
    assert verdict(after.table("iptables"), "INPUT", packet) == ("ACCEPT" if inside else "DROP")
    if interface != "lo":
        forwarded = {**packet, "-o": "docker0", "--ctorigdstport": "8000", "--ctdir": "ORIGINAL"}
        assert verdict(after.table("iptables"), "DOCKER-USER", forwarded) == ("ACCEPT" if inside else "DROP")


@sized(deadline=None)
@given(v4=tables(), source=st.sampled_from(CLIENTS), position=st.integers(0, 3), text=FOREIGN)
def test_a_rule_put_before_ours_only_closes_for_named_sources_or_is_noticed(
    v4: str, source: str, position: int, text: str
) -> None:
    settings = host(allow_from=["10.1.0.0/16"])
    rules = list(endpoint_rules(list(settings.all_endpoints.items()), 4, "docker0"))
    table = restore(at_top(rules), save(v4))
    chain = list(table.rules("INPUT"))
    chain.insert(min(position, 3), Rule("INPUT", text))
    changed = Table({**table.chains, "INPUT": tuple(chain)})
    if why_pending(rules, changed) == "":
        for interface in ("eth0", "docker0", "lo"):
            packet = {"-s": source, "-i": interface, "-p": "tcp", "--dport": "8000", "--ctstate": "NEW"}
            now = verdict(changed, "INPUT", packet)
            assert now == verdict(table, "INPUT", packet) or (now == "DROP" and "-s " in text + v4)


def verdict(table: Table, chain: str, packet: Mapping[str, str]) -> str:
    """What a chain decides on a packet: ACCEPT, DROP, RETURN, or nothing."""
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
    if option in ("-s", "-d"):
        return option in packet and ipaddress.ip_address(packet[option]) in ipaddress.ip_network(value)
    return packet.get(option) == value


# -- single cases


def texts(settings: HostSettings, version: int = 4) -> list[str]:
    """Our rules without their comments."""
    rules = endpoint_rules(list(settings.all_endpoints.items()), version, "docker0")
    return [f"{rule.chain} {rule.text.split('-m comment')[0]}{rule.target}" for rule in rules]


def test_without_allow_from_there_are_the_seeds_two_rules_and_a_warning() -> None:
    settings = host()
    assert texts(settings) == ["INPUT -i docker0 -p tcp -m tcp --dport 8000 ACCEPT", "DOCKER-USER -i docker0 ACCEPT"]
    assert texts(settings, 6) == texts(settings)
    assert "port 8000 of endpoint llm is open to every network" in report(settings, seen())


def test_a_host_network_endpoint_is_decided_in_input_alone() -> None:
    settings = host(network="host", allow_from=["10.1.0.0/16"])
    assert not [text for text in texts(settings) if text.startswith("DOCKER-USER")]
    assert "INPUT -p tcp -m tcp --dport 8000 DROP" in texts(settings)
    assert report(settings, seen()) == ""


def test_an_endpoint_on_one_address_leaves_the_port_on_other_addresses_alone() -> None:
    settings = host(bind="10.0.0.5", allow_from=["10.1.0.0/16"])
    drops = [text for text in texts(settings) if text.endswith("DROP")]
    assert drops[0] == "INPUT -d 10.0.0.5 -p tcp -m tcp --dport 8000 DROP"
    assert "--ctorigdst 10.0.0.5 " in drops[1]
    assert "! --ctstate DNAT" in drops[2]
    assert [text for text in texts(settings, 6) if text.endswith("DROP")] == []


def test_allow_from_in_one_family_closes_the_other() -> None:
    settings = host(allow_from=["10.1.0.0/16"])
    assert "INPUT -p tcp -m tcp --dport 8000 DROP" in texts(settings, 6)
    assert not any("10.1.0.0" in text for text in texts(settings, 6))


def test_an_endpoint_on_loopback_that_names_networks_is_told_so() -> None:
    assert "lets nobody in" in report(host(bind="127.0.0.1", allow_from=["10.1.0.0/16"]), seen())


def test_several_endpoints_share_the_rule_for_containers() -> None:
    settings = host(endpoints={"a": {"port": 8001}, "b": {"port": 8002, "allow_from": ["10.1.0.0/16"]}})
    found = texts(settings)
    assert found.count("DOCKER-USER -i docker0 ACCEPT") == 1
    assert not any("8001" in text and "DROP" in text for text in found)
    assert len(set(found)) == len(found)


def test_a_bare_host_is_told_what_would_be_done() -> None:
    bare = SeenFirewall({}, {}, ipv6=True)
    first, second = pending(host(allow_from=["10.1.0.0/16"]), bare, docker("absent"))
    assert first.why == "iptables: 7 to add; ip6tables: 5 to add"
    assert SCRIPT in second.why


def test_a_host_without_ipv6_has_no_rules_for_it() -> None:
    found = SeenFirewall({"iptables": save(WITH_DOCKER)}, {}, "iptables v1.8.9 (nf_tables)", ipv6=False)
    assert "ip6tables" not in pending(host(), found)[0].why


def test_docker_in_nftables_mode_is_refused_only_where_its_chain_is_needed() -> None:
    engine = docker(info={"ServerVersion": "29.0.1", "FirewallBackend": {"Driver": "nftables"}})
    found = seen(v4=EMPTY)
    refused = pending(host(allow_from=["10.1.0.0/16"]), found, engine)
    assert isinstance(refused[0].steps[0], Refuse)
    assert "nftables" in refused[0].steps[0].text
    assert "firewall-backend: iptables" in refused[0].steps[0].text
    allowed = pending(host(allow_from=["10.1.0.0/16"], network="host"), found, engine)
    assert not any(isinstance(step, Refuse) for change in allowed for step in change.steps)
    corrected = host(allow_from=["10.1.0.0/16"], docker={"daemon": {"firewall-backend": "iptables"}})
    later = pending(corrected, found, engine)[0].steps[0]
    assert isinstance(later, Refuse)
    assert not later.final


@pytest.mark.parametrize("v4", [EMPTY, EMPTY + ":DOCKER-USER - [0:0]\n-A DOCKER-USER -j RETURN\n"])
def test_a_docker_chain_that_is_gone_or_not_reached_is_refused(v4: str) -> None:
    refused = pending(host(allow_from=["10.1.0.0/16"]), seen(v4=v4))[0].steps[0]
    assert isinstance(refused, Refuse)
    assert "systemctl restart docker" in refused.text


def test_docker_that_keeps_its_chains_in_the_other_backend_is_refused() -> None:
    found = seen(v4=EMPTY, others={"iptables-legacy": WITH_DOCKER})
    refused = pending(host(allow_from=["10.1.0.0/16"]), found)[0].steps[0]
    assert isinstance(refused, Refuse)
    assert "iptables-legacy" in refused.text


def test_docker_without_iptables_is_filtered_in_input() -> None:
    changes = pending(host(allow_from=["10.1.0.0/16"]), seen(v4=EMPTY), docker(config=json.dumps({"iptables": False})))
    assert changes[0].why == "iptables: 4 to add; ip6tables: 3 to add"


def test_rules_in_the_other_backend_are_told_and_ours_there_go() -> None:
    left = '-A INPUT -p tcp -m comment --comment "rackwright:llm:refused" -j DROP\n-A INPUT -j ACCEPT\n'
    found = seen(others={"iptables-legacy": EMPTY + left})
    assert "iptables-legacy has rules of its own" in report(host(), found)
    after = apply(pending(host(), found), found)
    assert [rule.text for rule in after.table("iptables-legacy").rules("INPUT")] == ["-j ACCEPT"]


def test_a_rule_before_dockers_in_forward_is_told() -> None:
    v4 = WITH_DOCKER.replace("-A FORWARD -j", "-A FORWARD -s 10.0.0.0/8 -j ACCEPT\n-A FORWARD -j")
    assert "-s 10.0.0.0/8 -j ACCEPT" in report(host(allow_from=["192.0.2.0/24"]), seen(v4=v4))
    assert "FORWARD" not in report(host(), seen(v4=v4))
    assert report(host(allow_from=["192.0.2.0/24"]), seen()) == ""


def test_an_engine_that_forwards_ipv6_without_docker_user_is_filtered_in_forward() -> None:
    v6 = EMPTY + ":DOCKER - [0:0]\n-A FORWARD -o docker0 -j DOCKER\n"
    found = seen(v6=v6)
    after = apply(pending(host(allow_from=["fd00::/8"]), found), found).table("ip6tables").rules("FORWARD")
    assert [rule.target for rule in after] == ["ACCEPT", "ACCEPT", "DROP", "DOCKER"]
    untouched = apply(pending(host(), found), found).table("ip6tables").rules("FORWARD")
    assert [rule.target for rule in untouched] == ["DOCKER"]


def test_dockers_bridge_may_have_another_name() -> None:
    changes = pending(host(), seen(), docker(config='{"bridge": "br0"}'))
    assert "-i br0 -p tcp" in changes[0].diff
    assert "docker0" not in changes[0].diff


def test_what_an_earlier_run_never_confirmed_is_confirmed_now() -> None:
    settings = host(allow_from=["10.1.0.0/16"])
    after = apply(pending(settings, seen()), seen())
    again = SeenFirewall(after.tables, after.files, after.backend, True, True, True, unconfirmed=True)
    (change,) = pending(settings, again)
    assert "never confirmed" in change.why
    assert isinstance(change.steps[0], Guarded)


@pytest.mark.parametrize("lost", ["enabled", "active", SCRIPT, UNIT_FILE])
def test_what_puts_the_rules_back_is_itself_put_back(lost: str) -> None:
    done = apply(pending(host(), seen()), seen())
    files = {**done.files, lost: None}
    drifted = SeenFirewall(done.tables, files, done.backend, True, lost != "enabled", lost != "active")
    (change,) = pending(host(), drifted)
    assert change.what.startswith("keep the firewall rules")
    assert pending(host(), apply([change], drifted)) == []


def test_the_rules_are_kept_only_after_they_were_confirmed() -> None:
    first, second = pending(host(allow_from=["10.1.0.0/16"]), seen())
    assert [type(step) for step in first.steps] == [Guarded]
    assert {type(step) for step in second.steps} == {WriteFile, Shell}


def test_the_reading_is_understood() -> None:
    def b64(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    saved = f"*filter\n{WITH_DOCKER}COMMIT\n"
    found = firewall.parse(
        f"backend=iptables v1.8.9 (nf_tables)\ntable iptables {b64(saved)}\ntable ip6tables {b64(saved)}\nipv6=yes\n"
        f"file {SCRIPT} {b64('text')}\nnone {UNIT_FILE}\nenabled=enabled\nactive=inactive\nguard=inactive"
    )
    assert found.table("iptables").has("DOCKER-USER")
    assert found.files == {SCRIPT: "text", UNIT_FILE: None}
    assert (found.ipv6, found.enabled, found.active, found.unconfirmed) == (True, True, False, False)


def test_positions_are_those_of_the_table() -> None:
    table = save(WITH_DOCKER + '-A DOCKER-USER -j DROP -m comment --comment "rackwright:x"\n')
    assert in_place(table) == ['-I DOCKER-USER 2 -j DROP -m comment --comment "rackwright:x"']


@pytest.mark.parametrize(("setting", "refused"), [("refuse", True), ("aside", False)])
def test_a_unit_made_by_hand_under_our_units_name_is_refused_or_kept_aside(setting: str, refused: bool) -> None:
    found = seen(files={UNIT_FILE: "[Service]\n", SCRIPT: None})
    first = pending(host(releases={"foreign_units": setting}), found)[0]
    assert isinstance(first.steps[0], Refuse) == refused
    assert (Owned("aside", UNIT) in first.owns) != refused


# -- the rules follow what serves


def spec_at(port: int, address: str = "0.0.0.0") -> str:
    """A release's spec.json, as a reading carries it."""
    keys = {"hash": "a", "serving": "b", "image": "c", "mounts": [], "served_name": "m", "format": FORMAT}
    spec = {**keys, "network": "bridge", "address": address, "port": port}
    return base64.b64encode(json.dumps(spec).encode()).decode()


def ports(found: SeenFirewall) -> set[str]:
    """The ports that our rules speak of."""
    rules = [rule.text for table in found.tables.values() for rule in table.ours]
    return set(re.findall(r"port (\d+)", " ".join(rules)))


def listening(found: SeenFirewall, current: int | None, proven: int | None = None, name: str = "llm") -> SeenFirewall:
    """The same host with an endpoint that listens."""
    places = [{name: Place("bridge", "0.0.0.0", port)} if port else {} for port in (current, proven or current)]
    return replace(found, current=places[0], proven=places[1])


def follow(settings: HostSettings, found: SeenFirewall) -> SeenFirewall:
    """What a host's turn leaves of the rules."""
    return apply(FIREWALL_AS_SERVED.pending(settings, reading(found)), found)


PRIVATE: dict[str, Any] = {"allow_from": ["10.0.0.0/8"]}


def test_the_port_that_is_left_keeps_its_rules_until_the_switch_and_then_they_go() -> None:
    old, new = host(**PRIVATE, port=8000), host(**PRIVATE, port=9000)
    there = listening(apply(pending(old, seen()), seen()), 8000)
    assert not is_moving(old, reading(there))
    assert is_moving(new, reading(there))
    staged = listening(apply(pending(new, there), there), 8000)
    assert ports(staged) == {"8000", "9000"}
    assert pending(new, staged) == []
    assert "listens on port 8000, whose rules stay" in report(new, staged)
    committed = follow(new, listening(staged, 9000))
    assert ports(committed) == {"9000"}
    assert pending(new, listening(committed, 9000)) == []


def test_a_switch_that_goes_back_leaves_the_rules_as_they_were() -> None:
    old, new = host(**PRIVATE, port=8000), host(**PRIVATE, port=9000)
    there = listening(apply(pending(old, seen()), seen()), 8000)
    staged = listening(apply(pending(new, there), there), 8000)
    assert follow(new, staged).tables == there.tables


def test_while_a_release_is_on_trial_the_way_back_is_open() -> None:
    new = host(**PRIVATE, port=9000)
    trying = listening(seen(), 9000, proven=8000)
    assert ports(apply(pending(new, trying), trying)) == {"8000", "9000"}


def test_a_rollback_opens_the_old_port_before_it_listens_there() -> None:
    new = host(**PRIVATE, port=9000)
    there = listening(apply(pending(new, seen()), seen()), 9000)
    opening = opening_changes(new, reading(there), {"llm": Place("bridge", "0.0.0.0", 8000)})
    both = apply(opening, there)
    assert ports(both) == {"8000", "9000"}
    back = follow(new, listening(both, 8000))
    assert ports(back) == {"8000"}
    assert are_as_left(back), "what a rollback leaves is no drift"
    assert not are_as_left(replace(back, tables={**back.tables, "iptables": save(WITH_DOCKER)}))


def test_an_endpoint_that_is_no_longer_wanted_keeps_its_rules_as_long_as_it_is_there() -> None:
    two = host(endpoints={"a": {**PRIVATE, "port": 8000, "gpus": [0]}, "b": {**PRIVATE, "port": 8001, "gpus": [1]}})
    one = host(endpoints={"a": {**PRIVATE, "port": 8000, "gpus": [0]}})
    there = apply(pending(two, seen()), seen())
    serving = replace(
        listening(there, 8000, name="a"),
        current={n: Place("bridge", "0.0.0.0", p) for n, p in (("a", 8000), ("b", 8001))},
    )
    assert is_moving(one, reading(serving))
    assert pending(one, serving) == []
    assert ports(follow(one, listening(there, 8000, name="a"))) == {"8000"}


def test_where_endpoints_listen_is_read_from_their_releases() -> None:
    found = firewall.parse(
        f"backend=x\nenabled=enabled\nactive=active\nguard=inactive\ncurrent llm {spec_at(9000)}\n"
        f"proven llm {spec_at(8000)}\nproven broken bm90IGpzb24="
    )
    assert found.current == {"llm": Place("bridge", "0.0.0.0", 9000)}
    assert found.proven == {"llm": Place("bridge", "0.0.0.0", 8000)}


@given(
    st.sampled_from(["bridge", "host"]),
    st.sampled_from([None, "127.0.0.1", "10.0.0.5", "0.0.0.0"]),
    st.sampled_from([8000, 9000]),
    st.sampled_from([[], ["10.0.0.0/8"], ["10.0.0.0/8", "fd00::/8"]]),
    st.builds(Place, st.sampled_from(["bridge", "host"]), st.sampled_from(["0.0.0.0", "127.0.0.1"]), st.just(8000)),
)
@sized(deadline=None, max_examples=60)
def test_any_move_of_an_endpoint_converges(
    network: str, bind: str | None, port: int, allowed: list[str], place: Place
) -> None:
    settings = host(network=network, bind=bind, port=port, allow_from=allowed)
    before = host(network=place.network, bind=place.address, port=place.port, allow_from=allowed)
    deployed = apply(pending(before, seen()), seen())
    there = replace(deployed, current={"llm": place}, proven={"llm": place})
    staged = replace(apply(pending(settings, there), there), current=there.current, proven=there.proven)
    assert pending(settings, staged) == []
    assert str(place.port) in ports(staged)
    own = settings.all_endpoints["llm"]
    committed = follow(settings, replace(staged, current={"llm": Place(own.network, own.address, own.port)}))
    after = {"llm": Place(own.network, own.address, own.port)}
    assert pending(settings, replace(committed, current=after, proven=after)) == []


def test_without_the_step_nothing_is_known_to_move() -> None:
    bare = HostReading({RECORD.name: frozenset()})
    assert not is_moving(host(port=9000), bare)
    assert moved(bare, {"llm": Place("bridge", "0.0.0.0", 8000)}) == {}
