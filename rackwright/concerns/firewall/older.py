"""Drops of earlier versions: where nft was missing, a chain of iptables' mangle table. Read and removed, never written.

This module is dropped with the first version that no longer upgrades hosts of 0.1. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from rackwright.concerns.firewall.iptables_rules import FAMILIES
from rackwright.concerns.firewall.nft_drops import LOCAL, refusing
from rackwright.concerns.firewall.rule_table import TAG, Rule

CHAIN = "RACKWRIGHT"


def as_nft(names: Collection[str], older: Mapping[str, str]) -> list[str]:
    """Return the drops of these endpoints as lines of nft's table.

    older: the chain's text by command, iptables and ip6tables.
    """
    return [row for command, version in FAMILIES.items() for row in _lines(names, older.get(command, ""), version)]


def _lines(names: Collection[str], text: str, version: int) -> Iterator[str]:
    begins = f"-A {CHAIN} "
    rules = [Rule(CHAIN, row.removeprefix(begins)) for row in text.splitlines() if row.startswith(begins)]
    for rule in rules:
        name = _endpoint(rule)
        if name in names and rule.target == "DROP" and "--dport" in rule.matches:
            allowed = [one.matches["-s"] for one in rules if _lets_in(one, rule)]
            to = f"{'ip' if version == 4 else 'ip6'} daddr {rule.matches['-d']}" if "-d" in rule.matches else LOCAL
            yield refusing(name, to, rule.matches["--dport"].replace(":", "-"), version, allowed)


def _endpoint(rule: Rule) -> str:
    return rule.comment.removeprefix(TAG).partition(":")[0]


def _lets_in(rule: Rule, dropping: Rule) -> bool:
    same = _endpoint(rule) == _endpoint(dropping) and rule.matches.get("--dport") == dropping.matches["--dport"]
    return same and rule.target == "RETURN" and "-s" in rule.matches
