"""Files that restore Rackwright's rules: the script, the unit that runs it at boot, each endpoint's drop-in. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rackwright.concerns.firewall.nft_drops import TABLE
from rackwright.concerns.firewall.older import CHAIN
from rackwright.concerns.firewall.rule_table import TAG, Rule
from rackwright.concerns.watch import TRACE, check_file, repairs_file
from rackwright.hostside import host_text
from rackwright.paths import (
    FIREWALL_GUARD,
    FIREWALL_LEFT,
    FIREWALL_OPENED,
    FIREWALL_SCRIPT,
    FIREWALL_UNIT,
    UNITS,
    unit_name,
)
from rackwright.plan.render import render_own

SCRIPT, LEFT, GUARD = FIREWALL_SCRIPT, FIREWALL_LEFT, FIREWALL_GUARD
UNIT = FIREWALL_UNIT
UNIT_FILE = f"{UNITS}/{UNIT}"
CHECK = check_file(GUARD)


@dataclass(frozen=True)
class WhileOpen:
    """Rules and drops of closed ports for as long as an operator has opened them."""

    rules: Mapping[str, Iterable[Rule]]
    drops: str


def script(
    rules: Mapping[str, Iterable[str]], drops: str, clears: bool = False, while_open: WhileOpen | None = None
) -> str:
    """Return shell text that replaces Rackwright's rules and drops, whatever they are now.

    rules: by command, `CHAIN REST` to be placed, or an insertion `-I CHAIN POSITION REST`. clears: it also removes
    an earlier version's drops in iptables' mangle table; under a guard it must not, as the undo needs them.
    while_open: of ports that are closed to all but the gateways.
    """
    words: dict[str, object] = {"opened": "", "tag": TAG, "table": TABLE, "chain": CHAIN, "run": LEFT, "path": SCRIPT}
    if while_open:
        opened = {command: placed(entries) for command, entries in while_open.rules.items()}
        words |= {"open_rules": opened, "open_drops": while_open.drops, "opened": FIREWALL_OPENED}
    return render_own("firewall.j2", rules=rules, drops=drops, clears=clears, **words)


def placed(rules: Iterable[Rule]) -> list[str]:
    """Return rules as the script reads them."""
    return [f"{rule.chain} {rule.text}" for rule in rules]


def is_closed(text: str) -> bool:
    """Return True if the script keeps the endpoints' ports closed to all but the gateways."""
    return re.search(r"^direct=closed$", text, re.MULTILINE) is not None


def kept_rules(text: str, opened: bool = False) -> dict[str, list[Rule]]:
    """Parse the rules that Rackwright's script restores, by command. opened: while an operator has opened the ports."""
    blocks = _blocks("OPEN_RULES" if opened else "RULES", text)
    return {command: [Rule(*row.split(" ", 1)) for row in lines.splitlines()] for command, lines in blocks}


def kept_drops(text: str, opened: bool = False) -> dict[str, str]:
    """Parse the drops that the script restores, by command: `nft`; of an earlier version iptables and ip6tables."""
    return dict(_blocks("OPEN_DROPS" if opened else "DROPS", text))


def _blocks(label: str, text: str) -> list[tuple[str, str]]:
    return re.findall(rf"^  (\S+)\)\n    cat <<'{label}'\n(.*?)^{label}$", text, re.MULTILINE | re.DOTALL)


def door_file(endpoint: str) -> str:
    """Return the path of the drop-in by which an endpoint's unit sets the drops before it starts."""
    return f"{UNITS}/{unit_name(endpoint)}.d/rackwright-firewall.conf"


def drop_in_text() -> str:
    """Return the text of that drop-in, the same for every endpoint."""
    return render_own("rackwright-port.conf.j2", script=SCRIPT)


def directives(text: str) -> list[str]:
    """Return the lines of a drop-in that systemd acts on."""
    return [row for row in text.splitlines() if row.strip() and not row.startswith(("#", ";"))]


def kept_files(
    rules: Mapping[str, Iterable[Rule]], drops: str, endpoints: Iterable[str], while_open: WhileOpen | None = None
) -> dict[str, str]:
    """Return all these files by path. endpoints: those whose ports are not open to all."""
    placed_rules = {command: placed(entries) for command, entries in rules.items()}
    text = script(placed_rules, drops, clears=True, while_open=while_open)
    each = drop_in_text()
    return {
        SCRIPT: text,
        UNIT_FILE: render_own(f"{UNIT}.j2", script=SCRIPT),
        CHECK: render_own(
            "watch-firewall.j2",
            script=SCRIPT,
            note=repairs_file(GUARD),
            trace=TRACE,
            tell=host_text("tell.sh").rstrip(),
        ),
        **{door_file(name): each for name in endpoints},
    }
