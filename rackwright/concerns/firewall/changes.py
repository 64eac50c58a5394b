"""Changes that make the rules as wanted: under a guard first, then for the next boot. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from rackwright.concerns.endpoint.switch.foreign_units import kept_aside
from rackwright.concerns.firewall.accepts import FAMILIES
from rackwright.concerns.firewall.drops import NOTHING, count
from rackwright.concerns.firewall.iptables import TAG, Rule, Table, in_place, why_pending
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
from rackwright.concerns.firewall.seen import SeenFirewall
from rackwright.concerns.firewall.wanted import Rules, WantedFirewall
from rackwright.concerns.watch import KEPT_PORT, WATCH_FILES, WATCH_TIMER
from rackwright.hostside import host_script
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


def changes(asked: WantedFirewall, seen: SeenFirewall) -> list[Change]:
    """Replace Rackwright's rules under a guard, then keep them for the next boot: a lock-out is never kept."""
    if asked.refusal is not None:
        return [_refused(asked.refusal)]
    if asked.lacks_nft is not None and asked.lacks_nft.final:
        return [_refused(asked.lacks_nft)]
    aside = [kept_aside(UNIT, asked.foreign)] if asked.foreign else []
    return [*aside, *_replace(asked, seen), *_keep(asked, seen)]


def _refused(refusal: Refuse) -> Change:
    return Change("filter who reaches the endpoints", "something is in the way", (refusal,))


def _replace(asked: WantedFirewall, seen: SeenFirewall) -> list[Change]:
    reasons = {**_rules_pending(asked.rules, seen), "drops by nft": _drops_pending(asked, seen)}
    if seen.unconfirmed:
        reasons = {what: why or "an earlier run set them and never confirmed" for what, why in reasons.items()}
    pending = {what: why for what, why in reasons.items() if why}
    if not pending:
        return []
    stale = [command for command in pending if command in seen.tables and command not in asked.rules]
    rules = {command: placed(asked.rules.get(command, ())) for command in (*asked.rules, *stale)}
    guarded = Guarded(GUARD, script(rules, asked.drops), _undo(rules, seen), asked.seconds)
    why = "; ".join(f"{what}: {reason}" for what, reason in pending.items())
    return [
        Change(
            "set the firewall rules, and confirm over a new connection",
            why,
            (asked.lacks_nft, guarded) if asked.lacks_nft else (guarded,),
            OWNS,
            diff=_diffs(asked, seen),
        )
    ]


def _rules_pending(rules: Rules, seen: SeenFirewall) -> dict[str, str]:
    wanted = {command: why_pending(own, seen.table(command)) for command, own in rules.items()}
    stale = {command: table for command, table in seen.tables.items() if command not in rules and table.ours}
    return {**wanted, **{command: f"{len(table.ours)} to remove" for command, table in stale.items()}}


def _drops_pending(asked: WantedFirewall, seen: SeenFirewall) -> str:
    """Return the reason why the drops must be set again; empty where no drops are wanted and none exist."""
    there, by_script = seen.drops, kept_drops(seen.files.get(SCRIPT) or "")
    if there == asked.drops or not (count(asked.drops) or there is not None or by_script):
        return ""
    gone = "the drops have been changed" if there is None else "the drops differ"
    if there in (None, NOTHING) and {*by_script} & {*FAMILIES}:
        gone = "an earlier version has them in iptables' mangle table"
    return f"{gone}: {count(asked.drops)} of Rackwright's"


def _undo(commands: Iterable[str], seen: SeenFirewall) -> str:
    """Return a script that restores Rackwright's rules at their positions, or behind closing rules if others are gone.

    Drops that another tool has changed are restored from the host's file. An earlier version's drops in iptables'
    mangle table are not touched before the change is confirmed.
    """
    before = kept_drops(seen.files.get(SCRIPT) or "").get("nft", NOTHING) if seen.drops is None else seen.drops
    exact = script({command: in_place(seen.table(command)) for command in commands}, before)
    behind = script({command: placed(seen.table(command).ours) for command in commands}, before)
    return f"(\n{exact}) || (\n{behind})\n"


def _diffs(asked: WantedFirewall, seen: SeenFirewall) -> str:
    rules = [_diff(name, _lines(seen.table(name).ours), _lines(asked.rules.get(name, ()))) for name in seen.tables]
    return "".join([*rules, _diff("nft", (seen.drops or "").splitlines(), asked.drops.splitlines())])


def _lines(rules: Iterable[Rule]) -> list[str]:
    return [f"{rule.chain} {rule.text}" for rule in rules]


def _diff(name: str, before: Sequence[str], after: Sequence[str]) -> str:
    lines = list(difflib.unified_diff(before, after, f"{name}: ours now", f"{name}: ours then", lineterm=""))
    return "\n".join([*lines, ""]) if lines else ""


def _keep(asked: WantedFirewall, seen: SeenFirewall) -> list[Change]:
    differing = [path for path, text in asked.files.items() if seen.files.get(path) != text]
    surplus = [path for path, text in seen.files.items() if text and path.endswith(DOOR) and path not in asked.files]
    if not differing and not surplus and not seen.older and seen.enabled and seen.active and seen.watched:
        return []
    steps: list[Step] = [WriteFile(path, asked.files[path]) for path in differing]
    steps += [Shell(host_script("remove_file", path=path, folder=path.rpartition("/")[0])) for path in surplus]
    steps.append(Shell(host_script("firewall_keep", unit=UNIT, timer=WATCH_TIMER)))
    doors = [Owned("file", path) for path in asked.files if path.endswith(DOOR)]
    return [
        Change(
            "keep the firewall rules over reboots and restarts of Docker",
            _why_kept(differing, surplus, seen),
            tuple(steps),
            (*OWNS, *doors),
            disowns=tuple(Owned("file", path) for path in surplus),
        )
    ]


def _why_kept(differing: Sequence[str], surplus: Sequence[str], seen: SeenFirewall) -> str:
    if differing:
        return f"{', '.join(differing)} differ or are missing"
    if surplus:
        return f"{', '.join(surplus)} belong to nothing that is filtered now"
    if seen.older:
        return "the chain of an earlier version is still in iptables' mangle table"
    return f"{UNIT if not (seen.enabled and seen.active) else WATCH_TIMER} is not enabled and active"


def are_as_left(seen: SeenFirewall, record: frozenset[Owned] = frozenset()) -> bool:
    """Return True if the kernel's rules, and the files and units that keep them, are as the last deploy left them.

    record: the host's ownership record, which lists a unit's drop-in even where `systemctl revert` has removed it.
    """
    text = seen.files.get(SCRIPT) or ""
    tables = {**{command: [] for command, table in seen.tables.items() if table.ours}, **kept_rules(text)}
    same = not any(_differs(rules, seen.table(name)) for name, rules in tables.items())
    # KEPT_PORT keeps no rules, and an older Rackwright did not install it.
    there = all(text is not None for path, text in seen.files.items() if path != KEPT_PORT)
    kept = there and seen.enabled and seen.active and seen.watched and not _edited(seen, record)
    drops = {**seen.older, "nft": seen.drops or NOTHING}
    return same and kept and drops == {"nft": NOTHING, **kept_drops(text)}


def _edited(reading: SeenFirewall, record: frozenset[Owned]) -> list[str]:
    """Return the drop-ins of units that are missing, or whose directives are not as they were written."""
    paths = {entry.name for entry in record if entry.kind == "file" and entry.name.endswith(DOOR)}
    wanted = directives(drop_in_text())
    return sorted(path for path in paths if directives(reading.files.get(path) or "") != wanted)


def _differs(rules: Iterable[Rule], table: Table) -> bool:
    return bool(why_pending([rule for rule in rules if table.has(rule.chain)], table))


def report(asked: WantedFirewall, seen: SeenFirewall) -> str:
    """Return warnings that need no change: open ports, rules that `iptables` does not show, and recent repairs."""
    hidden = [
        f"{command} has rules of its own beside {seen.backend}: they decide, too; see {command}-save"
        for command in seen.elsewhere
    ]
    return "\n".join([*asked.warnings, *hidden, *repairs_text(seen)])


def repairs_text(seen: SeenFirewall) -> list[str]:
    """Return a sentence on the host's repairs within the last hour, with the next step once they are frequent."""
    if not seen.repairs:
        return []
    ago, what = seen.repairs[-1]
    times = f"{len(seen.repairs)} times" if len(seen.repairs) > 1 else "once"
    told = f"within the last hour this host has put its firewall rules back {times}, {ago // 60} min ago for: {what}"
    if len(seen.repairs) < OFTEN:
        return [told]
    return [f"{told}; next: stop the other tool from it, or rackwright firewall pause INVENTORY --limit HOST --for 1h"]


def remove_script() -> str:
    """Return shell lines that remove only Rackwright's rules, their files and their units, for teardown."""
    files = " ".join((SCRIPT, f"{UNITS}/{UNIT}", CHECK, *WATCH_FILES))
    watch = " ".join(reversed(WATCH_UNITS))
    return host_script("firewall_remove", tag=TAG, unit=UNIT, units=UNITS, watch=watch, files=files)
