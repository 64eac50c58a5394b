"""Changes that make the rules as wanted: under a guard first, then for the next boot. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from rackwright.concerns.endpoint.switch.foreign_units import set_apart
from rackwright.concerns.firewall.iptables_rules import FAMILIES
from rackwright.concerns.firewall.kept import (
    CHECK,
    GUARD,
    SCRIPT,
    UNIT,
    directives,
    door_file,
    drop_in_text,
    kept_drops,
    kept_rules,
    placed,
    script,
)
from rackwright.concerns.firewall.nft_drops import NOTHING, count
from rackwright.concerns.firewall.rule_table import TAG, Rule, Table, in_place, why_pending
from rackwright.concerns.firewall.seen import SeenFirewall
from rackwright.concerns.firewall.wanted import Rules, WantedFirewall
from rackwright.concerns.watch import KEPT_PORT, WATCH_FILES, WATCH_TIMER, WATCHED
from rackwright.hostside import host_script
from rackwright.messages import few
from rackwright.paths import UNITS, WATCH_UNITS
from rackwright.plan.change import Change, Guarded, Owned, Refuse, Shell, Step, WriteFile

OWNS = (
    Owned("file", SCRIPT),
    Owned("rule", f"{TAG}*"),
    Owned("unit", UNIT),
    *(Owned("unit", unit) for unit in WATCH_UNITS),
)
DOOR = door_file("*").rpartition("/")[2]
OFTEN = 3
"""Number of repairs within an hour that a single restart cannot explain."""


def changes(wanted: WantedFirewall, reading: SeenFirewall) -> list[Change]:
    """Replace Rackwright's rules under a guard, then keep them for the next boot: a lock-out is never kept."""
    if wanted.refusal is not None:
        return [_refused(wanted.refusal)]
    if wanted.lacks_nft is not None and wanted.lacks_nft.final:
        return [_refused(wanted.lacks_nft)]
    foreign = [set_apart(UNIT, wanted.foreign)] if wanted.foreign else []
    return [*foreign, *_replace(wanted, reading), *_keep(wanted, reading)]


def _refused(refusal: Refuse) -> Change:
    return Change("filter who reaches the endpoints", "something is in the way", (refusal,))


def _replace(wanted: WantedFirewall, reading: SeenFirewall) -> list[Change]:
    reasons = {**_rules_pending(wanted.rules, reading), "drops by nft": _drops_pending(wanted, reading)}
    if reading.unconfirmed:
        reasons = {what: why or "an earlier run set them and never confirmed" for what, why in reasons.items()}
    pending = {what: why for what, why in reasons.items() if why}
    if not pending:
        return []
    stale = [command for command in pending if command in reading.tables and command not in wanted.rules]
    rules = {command: placed(wanted.rules.get(command, ())) for command in (*wanted.rules, *stale)}
    guarded = Guarded(GUARD, script(rules, wanted.drops), _undo(rules, reading), wanted.seconds)
    why = "; ".join(f"{what}: {reason}" for what, reason in pending.items())
    return [
        Change(
            "set the firewall rules, and confirm over a new connection",
            why,
            (wanted.lacks_nft, guarded) if wanted.lacks_nft else (guarded,),
            OWNS,
            diff=_diffs(wanted, reading),
        )
    ]


def _rules_pending(rules: Rules, reading: SeenFirewall) -> dict[str, str]:
    wanted = {command: why_pending(expected, reading.table(command)) for command, expected in rules.items()}
    stale = {command: table for command, table in reading.tables.items() if command not in rules and table.ours}
    return {**wanted, **{command: f"{len(table.ours)} to remove" for command, table in stale.items()}}


def _drops_pending(wanted: WantedFirewall, reading: SeenFirewall) -> str:
    """Return the reason why the drops must be set again; empty where no drops are wanted and none exist."""
    present, by_script = reading.drops, kept_drops(reading.files.get(SCRIPT) or "")
    if present == wanted.drops or not (count(wanted.drops) or present is not None or by_script):
        return ""
    gone = "the drops have been changed" if present is None else "the drops differ"
    if present in (None, NOTHING) and {*by_script} & {*FAMILIES}:
        gone = "an earlier version has them in iptables' mangle table"
    return f"{gone}: {count(wanted.drops)} of Rackwright's"


def _undo(commands: Iterable[str], reading: SeenFirewall) -> str:
    """Return a script that restores Rackwright's rules at their positions, or behind closing rules if others are gone.

    Drops that another tool has changed are restored from the host's file. An earlier version's drops in iptables'
    mangle table are not touched before the change is confirmed.
    """
    before = kept_drops(reading.files.get(SCRIPT) or "").get("nft", NOTHING) if reading.drops is None else reading.drops
    exact = script({command: in_place(reading.table(command)) for command in commands}, before)
    behind = script({command: placed(reading.table(command).ours) for command in commands}, before)
    return f"(\n{exact}) || (\n{behind})\n"


def _diffs(wanted: WantedFirewall, reading: SeenFirewall) -> str:
    rules = [
        _diff(name, _lines(reading.table(name).ours), _lines(wanted.rules.get(name, ()))) for name in reading.tables
    ]
    return "".join([*rules, _diff("nft", (reading.drops or "").splitlines(), wanted.drops.splitlines())])


def _lines(rules: Iterable[Rule]) -> list[str]:
    return [f"{rule.chain} {rule.text}" for rule in rules]


def _diff(name: str, before: Sequence[str], after: Sequence[str]) -> str:
    lines = list(difflib.unified_diff(before, after, f"{name}: ours now", f"{name}: ours then", lineterm=""))
    return "\n".join([*lines, ""]) if lines else ""


def _keep(wanted: WantedFirewall, reading: SeenFirewall) -> list[Change]:
    differing = [path for path, text in wanted.files.items() if reading.files.get(path) != text]
    surplus = [
        path for path, text in reading.files.items() if text and path.endswith(DOOR) and path not in wanted.files
    ]
    if not differing and not surplus and not reading.older and reading.enabled and reading.active and reading.watched:
        return []
    steps: list[Step] = [WriteFile(path, wanted.files[path]) for path in differing]
    steps += [Shell(host_script("remove_file", path=path, folder=path.rpartition("/")[0])) for path in surplus]
    steps.append(Shell(host_script("firewall_keep", unit=UNIT, timer=WATCH_TIMER)))
    doors = [Owned("file", path) for path in wanted.files if path.endswith(DOOR)]
    return [
        Change(
            "keep the firewall rules over reboots and restarts of Docker",
            _why_kept(differing, surplus, reading),
            tuple(steps),
            (*OWNS, *doors),
            disowns=tuple(Owned("file", path) for path in surplus),
        )
    ]


def _why_kept(differing: Sequence[str], surplus: Sequence[str], reading: SeenFirewall) -> str:
    if differing:
        return f"{few(differing)} differ or are missing"
    if surplus:
        return f"{', '.join(surplus)} belong to nothing that is filtered now"
    if reading.older:
        return "the chain of an earlier version is still in iptables' mangle table"
    return f"{UNIT if not (reading.enabled and reading.active) else WATCH_TIMER} is not enabled and active"


def are_as_left(reading: SeenFirewall, record: frozenset[Owned] = frozenset()) -> bool:
    """Return True if the kernel's rules, and the files and units that keep them, are as the last deploy left them.

    record: the host's ownership record, which lists a unit's drop-in even where `systemctl revert` has removed it.
    """
    text = reading.files.get(SCRIPT) or ""
    rules = kept_rules(text, reading.is_opened)
    tables = {**{command: [] for command, table in reading.tables.items() if table.ours}, **rules}
    same = not any(_differs(rules, reading.table(name)) for name, rules in tables.items())
    # KEPT_PORT keeps no rules, and an older Rackwright did not install it.
    complete = all(text is not None for path, text in reading.files.items() if path != KEPT_PORT)
    durable = complete and reading.enabled and reading.active and reading.watched and not _edited(reading, record)
    drops = {**reading.older, "nft": reading.drops or NOTHING}
    return same and durable and drops == {"nft": NOTHING, **kept_drops(text, reading.is_opened)}


def _edited(reading: SeenFirewall, record: frozenset[Owned]) -> list[str]:
    """Return the drop-ins of units that are missing, or whose directives are not as they were written."""
    paths = {entry.name for entry in record if entry.kind == "file" and entry.name.endswith(DOOR)}
    wanted = directives(drop_in_text())
    return sorted(path for path in paths if directives(reading.files.get(path) or "") != wanted)


def _differs(rules: Iterable[Rule], table: Table) -> bool:
    return bool(why_pending([rule for rule in rules if table.has(rule.chain)], table))


def report(wanted: WantedFirewall, reading: SeenFirewall) -> str:
    """Return warnings that need no change: open ports, rules that `iptables` does not show, and recent repairs."""
    hidden = [
        f"{command} has rules of its own beside {reading.backend}: they decide, too; see {command}-save"
        for command in reading.elsewhere
    ]
    return "\n".join([*wanted.warnings, *hidden, *repairs_text(reading)])


def repairs_text(reading: SeenFirewall) -> list[str]:
    """Return a sentence on the host's repairs within the last hour, with the next step once they are frequent."""
    if not reading.repairs:
        return []
    ago, what = reading.repairs[-1]
    times = f"{len(reading.repairs)} times" if len(reading.repairs) > 1 else "once"
    sentence = (
        f"within the last hour this host has put its firewall rules back {times}, {ago // 60} min ago for: {what}"
    )
    if len(reading.repairs) < OFTEN:
        return [sentence]
    return [
        f"{sentence}; next: stop the other tool from it, or rackwright firewall pause INVENTORY --limit HOST --for 1h"
    ]


def remove_script() -> str:
    """Return shell lines that remove only Rackwright's rules, their files and their units, for teardown."""
    files = " ".join((SCRIPT, f"{UNITS}/{UNIT}", CHECK))
    watch = " ".join(reversed(WATCH_UNITS))
    runner = {"watch": watch, "runner": " ".join(WATCH_FILES), "watched": WATCHED}
    return host_script("firewall_remove", tag=TAG, unit=UNIT, units=UNITS, files=files, **runner)
