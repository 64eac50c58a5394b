"""Which rules of others are named when a port turns out to be closed."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from rackwright.concerns.firewall.closers import Closers, named, parse_closers
from rackwright.concerns.firewall.iptables import Table, parse_save
from rackwright.concerns.firewall.nft import closing_tables
from rackwright.concerns.firewall.suspects import Knock, suspects
from rackwright.plan.reach import Door

KNOCK = Knock(8000, "192.0.2.1", "eth0", "docker0")
DOCKERS = """\
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:DOCKER - [0:0]
:DOCKER-ISOLATION-STAGE-1 - [0:0]
:DOCKER-ISOLATION-STAGE-2 - [0:0]
:DOCKER-USER - [0:0]
-A FORWARD -j DOCKER-USER
-A FORWARD -j DOCKER-ISOLATION-STAGE-1
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -o docker0 -j DOCKER
-A FORWARD -i docker0 ! -o docker0 -j ACCEPT
-A FORWARD -o virbr0 -j REJECT --reject-with icmp-port-unreachable
-A FORWARD -j REJECT --reject-with icmp-host-prohibited
-A DOCKER -d 172.17.0.2/32 ! -i docker0 -o docker0 -p tcp -m tcp --dport 8000 -j ACCEPT
-A DOCKER ! -i docker0 -o docker0 -j DROP
-A DOCKER-ISOLATION-STAGE-1 -i docker0 ! -o docker0 -j DOCKER-ISOLATION-STAGE-2
-A DOCKER-ISOLATION-STAGE-2 -o docker0 -j DROP
-A DOCKER-USER -j RETURN
COMMIT
"""


def found(saved: str, chain: str = "FORWARD", knock: Knock = KNOCK) -> list[str]:
    return [f"{rule.chain} {rule.text}" for rule in suspects(parse_save(saved), chain, knock)]


def test_dockers_own_rules_and_what_follows_its_accept_are_no_suspects() -> None:
    assert found(DOCKERS) == []
    assert found(DOCKERS, knock=Knock(8001, "192.0.2.1", "eth0", "docker0")) == [], (
        "Docker's own drop is for what is not published"
    )


def test_a_rule_in_front_is_and_one_for_others_is_not() -> None:
    for rule in ("-p tcp -m tcp --dport 8000 -j DROP", "-m conntrack --ctorigdstport 8000 -j DROP", "! -i lo -j DROP"):
        assert found(DOCKERS.replace("-A DOCKER-USER", f"-A DOCKER-USER {rule}\n-A DOCKER-USER", 1)) == [
            f"DOCKER-USER {rule}"
        ]
    for rule in ("-s 198.51.100.0/24 -j DROP", "-i docker0 -j DROP", "! -i eth0 -j DROP", "-p tcp --dport 22 -j DROP"):
        assert found(DOCKERS.replace("-A DOCKER-USER", f"-A DOCKER-USER {rule}\n-A DOCKER-USER", 1)) == []


def test_what_stands_behind_a_return_or_an_accept_is_no_suspect() -> None:
    head = "*filter\n:INPUT DROP [0:0]\n:own - [0:0]\n"
    assert found(f"{head}-A INPUT -j own\n-A own -s 192.0.2.0/24 -j RETURN\n-A own -j DROP\nCOMMIT\n", "INPUT") == [
        "INPUT (policy) -j DROP"
    ]
    accepted = "-A INPUT -p tcp -m conntrack --ctstate NEW -m multiport --dports 7000,8000:8010 -j ACCEPT\n"
    assert found(f"{head}{accepted}-A INPUT -j DROP\nCOMMIT\n", "INPUT") == []
    limited = "-A INPUT -p tcp -m limit --limit 1/sec -j ACCEPT\n"
    assert found(f"{head}{limited}-A INPUT -j DROP\nCOMMIT\n", "INPUT") == ["INPUT -j DROP"]


RULESET = """\
table inet rackwright {
\tchain prerouting {
\t\ttype filter hook prerouting priority mangle; policy accept;
\t\ttcp dport 8000 ip saddr != { 10.0.0.0/8 } drop comment "rackwright:llm:refused"
\t}
}
# Warning: table ip filter is managed by iptables-nft, do not touch!
table ip filter {
\tchain INPUT {
\t\ttype filter hook input priority filter; policy drop;
\t}
}
table inet firewalld {
\tset names {
\t\ttype ifname
\t}
\tchain filter_INPUT {
\t\ttype filter hook input priority filter + 10; policy accept;
\t\tct state { established, related } accept
\t\tct state invalid drop
\t\tiifname "drop" accept
\t\tjump filter_INPUT_ZONES
\t}
\tchain filter_INPUT_ZONES {
\t\treject with icmpx admin-prohibited
\t}
\tchain filter_FORWARD {
\t\ttype filter hook forward priority filter + 10; policy accept;
\t\tct state invalid drop
\t\ttcp dport 22 drop
\t\tudp dport 8000 drop
\t\tlog prefix "drop: " accept
\t}
}
table inet closed {
\tchain forward {
\t\ttype filter hook forward priority filter; policy drop;
\t}
}
"""


def test_tables_of_nft_are_told_by_the_hook_that_leads_to_a_drop() -> None:
    assert closing_tables(RULESET, ("prerouting", "input"), 8000) == ["inet firewalld"]
    assert closing_tables(RULESET, ("prerouting", "forward"), 8000) == ["inet closed"]
    assert closing_tables(RULESET, ("forward",), 22) == ["inet firewalld", "inet closed"]


@given(st.text(), st.text())
def test_nothing_that_nft_prints_breaks_the_search(text: str, other: str) -> None:
    assert closing_tables(f"{text}\n{RULESET}", ("input",), 8000)[-1:] == ["inet firewalld"] or "table" in text
    closing_tables(f"table inet x {{\n\tchain y {{\n{text}\n\t}}\n{other}", ("input",), 8000)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_the_reading_names_rules_first_and_then_tables_each_with_a_command() -> None:
    saved = DOCKERS.replace("-A FORWARD -j DOCKER-USER", "-A FORWARD -o docker0 -j DROP\n-A FORWARD -j DOCKER-USER")
    lines = [f"table iptables {encoded(saved)}", f"nft {encoded(RULESET)}", f"bridge {encoded('docker0')}", "came_by "]
    closers = parse_closers(lines)
    seen = named(closers, Door(8000, ()), "192.0.2.1")
    assert [one.text for one in seen] == ["the iptables rule FORWARD -o docker0 -j DROP", "the nft table inet closed"]
    assert [one.look for one in seen] == ["sudo iptables -nvL FORWARD", "sudo nft list table inet closed"]
    assert [one.text for one in named(closers, Door(8000, (), "host"), "192.0.2.1")] == ["the nft table inet firewalld"]


def test_a_published_port_of_ipv6_may_be_served_by_dockers_proxy() -> None:
    table = parse_save("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -j REJECT\nCOMMIT\n")
    closers = Closers({"ip6tables": table, "ip6tables-legacy": Table()})
    assert [one.look for one in named(closers, Door(8000, ()), "2001:db8::1")] == ["sudo ip6tables -nvL INPUT"]
    assert named(closers, Door(8000, ()), "192.0.2.1") == []
