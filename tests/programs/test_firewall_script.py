"""The script that the host keeps, run: where it puts rules is where the plan expects them."""

from __future__ import annotations

import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.concerns.firewall.iptables import Rule, Table, closing_chains, parse_save, why_pending
from rackwright.concerns.firewall.kept import script

OURS = [
    Rule("INPUT", '-i docker0 -p tcp -m tcp --dport 8000 -m comment --comment "rackwright:llm:containers" -j ACCEPT'),
    Rule("INPUT", '-s 10.0.0.0/8 -p tcp -m tcp --dport 8000 -m comment --comment "rackwright:llm:allowed" -j ACCEPT'),
    Rule("DOCKER-USER", '-i docker0 -m comment --comment "rackwright:containers" -j ACCEPT'),
]
FOREIGN = st.sampled_from(
    [
        "-j ACCEPT",
        "-s 10.1.0.0/16 -j DROP",
        "-j REJECT",
        "-j one",
        "-g two",
        "-j RETURN",
        "-p tcp",
        "-j LOG",
        "-j three",
        '-m comment --comment "say -j DROP" -j ACCEPT',
    ]
)
CHAINS = ("INPUT", "DOCKER-USER", "one", "two", "three")


@st.composite
def saved(draw: st.DrawFn) -> str:
    """A saved table with chains that lead to each other, with ours anywhere in it."""
    names = [name for name in CHAINS if name != "DOCKER-USER" or draw(st.booleans())]
    lines = [f":{name} {'ACCEPT' if name == 'INPUT' else '-'} [0:0]" for name in names]
    for name in names:
        ours = [rule.text for rule in OURS if rule.chain == name]
        rules = draw(st.lists(FOREIGN | st.sampled_from(ours) if ours else FOREIGN, max_size=5))
        lines += [f"-A {name} {rule}" for rule in rules]
    return "\n".join(["*filter", *lines, "COMMIT", ""])


def placed(table: str) -> list[str]:
    """What the script's own function makes of a saved table."""
    text = script({"iptables": []}, {"nft": ""})
    function = text[text.index("placed() {") : text.index("put_drops() {")]
    done = subprocess.run(["sh", "-c", f"{function}\nplaced"], input=table, capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout.splitlines()


@settings(deadline=None, max_examples=150)
@given(saved())
def test_rules_land_where_the_plan_wants_them(table: str) -> None:
    wanted = [f"{rule.chain} {rule.text}" for rule in OURS]
    before = parse_save(table)
    chains = {name: [rule for rule in rules if not rule.ours] for name, rules in before.chains.items()}
    for line in placed("\n".join([table, "RULES", *wanted, ""])):
        _, chain, position, text = line.split(" ", 3)
        assert 1 <= int(position) <= len(chains[chain]) + 1
        chains[chain].insert(int(position) - 1, Rule(chain, text))
    after = Table({name: tuple(rules) for name, rules in chains.items()})
    assert why_pending([rule for rule in OURS if after.has(rule.chain)], after) == ""


@settings(deadline=None, max_examples=150)
@given(saved())
def test_it_names_what_closes_behind_ours_as_the_plan_does(table: str) -> None:
    before = parse_save(table)
    closing = closing_chains(before)
    late = [
        f"-A {chain} {rule.text}"
        for chain, rules in before.chains.items()
        for number, rule in enumerate(rules)
        if not rule.ours and rule.target in closing and any(other.ours for other in rules[:number])
    ]
    assert sorted(placed(table)) == sorted(late)


def test_it_is_a_script_that_a_shell_reads() -> None:
    text = script({"iptables": ["INPUT -j ACCEPT"], "ip6tables": []}, {"nft": "table inet rackwright {\n}\n"})
    assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0
