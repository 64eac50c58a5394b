"""A plan as text for people and as plain values for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rackwright.inspect.grouping import AlikeHosts, download, group
from rackwright.inspect.host_names import hosts_text
from rackwright.inspect.plan import HostPlan, PlannedChange
from rackwright.tables import folded

DIFF = "      "
"""Before each line of a diff."""
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_HEADS = {"refused": "refused", "unreadable": "not known", "unreachable": "cannot be reached"}


def plan_text(plans: Sequence[HostPlan], first: str = "") -> str:
    """Return what stops, groups of hosts with their changes, those without any last, and a line of sums.

    first: the headline.
    """
    groups = sorted(group(plans), key=lambda one: one.plan.state == "converged")
    lines = [text for one in groups for text in (*_group(one), "")]
    head = [first, ""] if first and any(plan.state == "pending" for plan in plans) else []
    return "\n".join([*head, *lines, sums(plans)])


def next_step(plans: Sequence[HostPlan], first: str) -> list[str]:
    """Return what stops once more, since diffs have moved the headline off the screen, and the next command."""
    pending = any(plan.state == "pending" for plan in plans)
    return [f"{first}; next: rackwright rollout INVENTORY, or pyinfra INVENTORY deploy.py"] if pending else []


def as_wide(text: str, width: int | None) -> str:
    """Return a plan's text broken at the terminal's width; a diff's lines stay whole."""
    return "\n".join(row if row.startswith(DIFF) else folded(row, width) for row in text.split("\n"))


def _group(one: AlikeHosts) -> Iterator[str]:
    yield f"{hosts_text(one.hosts)}: {summary(one.plan)}"
    if one.plan.state == "refused":
        yield from (f"  {row}" for text in one.plan.refusals for row in text.splitlines())
    elif one.plan.state == "pending":
        width = max(len(change.concern) for change in one.plan.changes)
        yield from (text for change in one.plan.changes for text in _change(change, width))
    yield from (f"  {text}" for text in one.plan.notes)
    yield from (f"  not looked at: {name} (the site's own operation)" for name in one.plan.others)


def summary(plan: HostPlan) -> str:
    """One line: files that change, restarts with their reasons, what is fetched."""
    if plan.state != "pending":
        return ": ".join(filter(None, (_HEADS.get(plan.state, "nothing to change"), plan.error)))
    parts = [f"{len(plan.changes)} change{'s' * (len(plan.changes) > 1)}"]
    parts += [f"{name}, {count} line{'s' * (count > 1)}" for name, count in _files(plan.changes)]
    parts += [f"restarts {c.restarts} because {c.why}" for c in plan.changes if c.restarts]
    return "; ".join([*parts, *_fetched(plan.changes)])


def _files(changes: Iterable[PlannedChange]) -> list[tuple[str, int]]:
    """Files of the diffs with the number of lines that are new or gone; an altered line counts once."""
    counts: dict[str, list[int]] = {}
    name = ""
    for row in (row for change in changes for row in change.diff.splitlines()):
        if row.startswith("--- "):
            name = row.removeprefix("--- ").partition(": ")[0].strip()
        elif name and row[:1] in ("+", "-") and not row.startswith("+++ "):
            counts.setdefault(name, [0, 0])[row[0] == "+"] += 1
    return [(name, max(count)) for name, count in counts.items()]


def _fetched(changes: Iterable[PlannedChange]) -> list[str]:
    size, estimated, unknown = download(changes)
    parts = [f"{'about ' * estimated}{bytes_text(size)}"] if size else []
    parts += ["something of unknown size"] * unknown
    return [f"fetches {' and '.join(parts)}"] if parts else []


def bytes_text(size: int) -> str:
    """Bytes for people: `3.4 MiB`, `61 GiB`."""
    unit, name = next((pair for pair in _UNITS if size >= pair[0]), (1, "B"))
    return f"{size / unit:.1f} {name}" if unit > 1 and size < 10 * unit else f"{size / unit:.0f} {name}"


def _change(change: PlannedChange, width: int) -> Iterator[str]:
    restarts = f"; restarts {change.restarts}" if change.restarts else ""
    fetched = "".join(f"; {text}" for text in _fetched([change]))
    why = f" ({change.why})" if change.why else ""
    yield f"  {change.concern:{width}}  {change.what}{why}{restarts}{fetched}"
    yield from (f"{DIFF}{row}" for row in change.diff.splitlines())


def sums(plans: Sequence[HostPlan]) -> str:
    """Return how many hosts are in which state, and the bytes of all."""
    words = {
        "pending": "with changes",
        "converged": "without changes",
        "refused": "refused",
        "unreadable": "not known",
        "unreachable": "not reached",
    }
    states = [plan.state for plan in plans]
    counts = [f"{states.count(state)} {label}" for state, label in words.items() if state in states]
    changes = [change for plan in plans if plan.state == "pending" for change in plan.changes]
    return "; ".join([f"hosts: {', '.join(counts) or 'none'}", *(f"all hosts: {text}" for text in _fetched(changes))])


def plan_values(plans: Sequence[HostPlan], first: str = "") -> dict[str, Any]:
    """Return the same for `--json`; docs/how-to/look-at-a-fleet.md describes it."""
    return {
        "version": 1,
        "headline": first,
        "hosts": [_host_values(plan) for plan in plans],
        "groups": [{"hosts": list(one.hosts), "summary": summary(one.plan)} for one in group(plans)],
    }


def _host_values(plan: HostPlan) -> dict[str, Any]:
    return {
        "host": plan.host,
        "state": plan.state,
        "error": plan.error,
        "refusals": list(plan.refusals),
        "changes": [_change_values(change) for change in plan.changes],
        "notes": list(plan.notes),
        "not_looked_at": list(plan.others),
    }


def _change_values(change: PlannedChange) -> dict[str, Any]:
    return {
        "concern": change.concern,
        "what": change.what,
        "why": change.why,
        "restarts": change.restarts or None,
        "stops": list(change.stops),
        "download_bytes": change.download,
        "download_estimated": change.estimated,
        "diff": change.diff,
    }
