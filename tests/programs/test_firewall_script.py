"""The script that the host keeps, run: where it puts rules is where the plan expects them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.concerns.firewall.kept import LEFT, script
from rackwright.concerns.firewall.rule_table import Rule, Table, closing_chains, parse_save, why_pending

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
    """Draw a saved table with chains that lead to each other, with Rackwright's anywhere in it."""
    names = [name for name in CHAINS if name != "DOCKER-USER" or draw(st.booleans())]
    lines = [f":{name} {'ACCEPT' if name == 'INPUT' else '-'} [0:0]" for name in names]
    for name in names:
        ours = [rule.text for rule in OURS if rule.chain == name]
        rules = draw(st.lists(FOREIGN | st.sampled_from(ours) if ours else FOREIGN, max_size=5))
        lines += [f"-A {name} {rule}" for rule in rules]
    return "\n".join(["*filter", *lines, "COMMIT", ""])


def placed(table: str) -> list[str]:
    """Run the script's own function on a saved table, and return its output."""
    text = script({"iptables": []}, "")
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
    for row in placed("\n".join([table, "RULES", *wanted, ""])):
        _, chain, position, text = row.split(" ", 3)
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
    text = script({"iptables": ["INPUT -j ACCEPT"], "ip6tables": []}, "table inet rackwright {\n}\n")
    assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0


# -- drops that an earlier version has in iptables' mangle table

TABLE = 'table inet rackwright {\n  tcp dport 8000 drop comment "rackwright:llm:refused"\n}\n'
OLDER = """*mangle
:PREROUTING ACCEPT [0:0]
:RACKWRIGHT - [0:0]
-A PREROUTING -m comment --comment "rackwright:drops" -j RACKWRIGHT
-A PREROUTING -i eth9 -j ACCEPT
-A RACKWRIGHT -p tcp -m tcp --dport 8000 -m comment --comment "rackwright:llm:refused" -j DROP
COMMIT
"""
CLEARED = """iptables-restore *mangle
:RACKWRIGHT - [0:0]
-D PREROUTING -m comment --comment "rackwright:drops" -j RACKWRIGHT
-X RACKWRIGHT
COMMIT"""
STAND_IN = """#!/bin/sh
case ${{0##*/}} in
nft)
  [ "$1" = -f ] || exec cat "{0}/table"
  cat >"{0}/table"; echo "nft -f" >>"{0}/calls"; exit {1} ;;
iptables-save) [ "$2" = filter ] || cat "{0}/mangle" ;;
iptables-restore)
  text=$(cat)
  case $text in \\*mangle*) echo "iptables-restore $text" >>"{0}/calls"; : >"{0}/mangle" ;; esac ;;
esac
"""
Run = Callable[..., "tuple[int, str]"]


@pytest.fixture(name="run")
def _run(tmp_path: Path) -> Run:
    """Run Rackwright's script on a host that an earlier version has closed; returns its status and what it called."""
    (tmp_path / "left").mkdir()
    (tmp_path / "mangle").write_text(OLDER)
    for suffix in ("drops", "dropping"):
        (tmp_path / "left" / f"iptables.{suffix}").write_text(OLDER)

    def run(*words: str, clears: bool = True, nft: int | None = 0, drops: str = TABLE) -> tuple[int, str]:
        (tmp_path / "bin").mkdir(exist_ok=True)
        for name in ("sh", "cat", "sed", "grep", "awk", "rm", "mkdir", "flock", "cmp"):
            (tmp_path / "bin" / name).unlink(missing_ok=True)
            (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
        for name in (*(["nft"] if nft is not None else []), "iptables-save", "iptables-restore"):
            (tmp_path / "bin" / name).write_text(STAND_IN.format(tmp_path, nft))
            (tmp_path / "bin" / name).chmod(0o755)
        text = script({}, drops, clears=clears).replace(LEFT, str(tmp_path / "left"))
        (tmp_path / "script").write_text(re.sub("^PATH=.*", f"PATH={tmp_path}/bin", text, flags=re.MULTILINE))
        done = subprocess.run(["sh", tmp_path / "script", *words], capture_output=True, text=True, check=False)
        calls = tmp_path / "calls"
        return done.returncode, (calls.read_text() if calls.exists() else "").strip()

    return run


def test_older_drops_go_once_those_of_nft_stand(run: Run) -> None:
    assert run() == (0, f"nft -f\n{CLEARED}")
    assert run("check") == (0, f"nft -f\n{CLEARED}")


def test_under_a_guard_older_drops_stay_and_the_check_asks_for_the_rest(run: Run) -> None:
    assert run(clears=False) == (0, "nft -f")
    assert run("check") == (1, "nft -f")
    assert run() == (0, f"nft -f\nnft -f\n{CLEARED}")


@pytest.mark.parametrize("nft", [None, 1], ids=["missing", "fails"])
@pytest.mark.parametrize("words", [(), ("close",)])
def test_without_drops_of_nft_older_ones_stay(run: Run, nft: int | None, words: tuple[str, ...]) -> None:
    status, calls = run(*words, nft=nft)
    assert (status, "mangle" in calls) == (1, False)


def test_an_endpoint_that_starts_leaves_older_drops_alone(run: Run) -> None:
    assert run("close") == (0, "nft -f")


def test_where_nothing_is_dropped_nft_is_not_needed(run: Run) -> None:
    nothing = "table inet rackwright {\n}\ndelete table inet rackwright\n"
    assert run(nft=None, drops=nothing) == (0, CLEARED)
    assert run("check", nft=None, drops=nothing) == (0, CLEARED)
