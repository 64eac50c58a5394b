"""Edits of the text of a file of keys: an item more, an item less, a time at which one expires. Pure.

Only the lines of the item in question change, so that comments, blank lines and other keys stay as their author left
them, and two people's changes meet in version control as two changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import yaml

from rackwright.settings.gateway_keys import GatewayKey, GatewayKeys
from rackwright_engines.quick_yaml import LOADER

HEAD = """\
# The keys of the gateway's clients, each as its SHA-256: no key can be computed from it.
# `rackwright keys add|rotate|revoke INVENTORY NAME` changes this file; keep it under version control.
"""
LIST, EMPTY = "keys:\n", "keys: []\n"


def edits(text: str, before: GatewayKeys, after: GatewayKeys) -> Iterator[str]:
    """Yield texts that may say `after`, the best first: the file with a few lines changed, and a whole new one.

    The caller reads each and takes the first that says it: a list in brackets, for one, has no lines of its own.
    """
    if (places := _places(text)) is not None and len(places) == len(before.keys):
        yield _edited(text, dict(zip(before.keys, places, strict=True)), after)
    yield HEAD + (LIST + "".join(map(item, after.keys)) if after.keys else EMPTY)


def item(key: GatewayKey, indent: str = "") -> str:
    """Return the lines of a key."""
    values = {
        "name": f'"{key.name}"',
        "sha256": f'"{key.sha256}"',
        "created": _time(key.created),
        "expires": _time(key.expires) if key.expires else None,
        "models": json.dumps(key.models) if key.models else None,
        "requests_per_minute": key.requests_per_minute,
        "requests_in_flight": key.requests_in_flight,
    }
    lines = [f"{name}: {value}" for name, value in values.items() if value is not None]
    return "".join(f"{indent}{'  ' if n else '- '}{one}\n" for n, one in enumerate(lines))


def _time(when: datetime) -> str:
    return f"{when.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass(frozen=True)
class _Place:
    """The lines of an item, from `first` up to `end`, and the blanks before its dash."""

    first: int
    end: int
    indent: str


def _places(text: str) -> list[_Place] | None:
    """Return where the items of the list are; None where they are not blocks of lines."""
    root = LOADER(text).get_single_node()
    keys = {key.value: value for key, value in root.value}.get("keys") if root else None
    if not isinstance(keys, yaml.SequenceNode):
        return []
    if any(not isinstance(one, yaml.MappingNode) or one.flow_style for one in keys.value):
        return None
    lines = text.splitlines()
    starts = [one.start_mark.line for one in keys.value]
    indents = [lines[n][: len(lines[n]) - len(lines[n].lstrip(" "))] for n in starts]
    return [_Place(n, _end(one), indent) for n, one, indent in zip(starts, keys.value, indents, strict=True)]


def _end(node: yaml.Node) -> int:
    """Return the line after the last value of an item; its own end is where the next token begins."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return int(node.end_mark.line) + (1 if node.end_mark.column else 0)


def _edited(text: str, places: Mapping[GatewayKey, _Place], after: GatewayKeys) -> str:
    rows = [f"{row}\n" for row in text.splitlines()]
    wanted = {key.sha256: key for key in after.keys}
    for key, span in reversed(list(places.items())):
        of_item = slice(span.first, span.end)
        rows[of_item] = _changed(rows[of_item], key, wanted.get(key.sha256), span.indent)
    hashes = {key.sha256 for key in places}
    indent = next((span.indent for span in places.values()), "")
    new = "".join(item(key, indent) for key in after.keys if key.sha256 not in hashes)
    if bool(places) != bool(after.keys):
        rows = _with_head(rows, LIST if after.keys else EMPTY)
    return "".join([*rows, new])


def _changed(rows: list[str], before: GatewayKey, wanted: GatewayKey | None, indent: str) -> list[str]:
    """Return an item's lines as they are to be: its comments alone, the same, or with another time of its end."""
    if wanted == before:
        return rows
    if wanted is None:
        return [row for row in rows if row.lstrip().startswith("#")]
    others = [row for row in rows if not row.lstrip(" -").startswith("expires:")]
    return [*others, f"{indent}  expires: {_time(wanted.expires)}\n"] if wanted.expires else others


def _with_head(rows: list[str], head: str) -> list[str]:
    """Return the lines with another head of the list; without one it is their last, in a new file after its head."""
    at = next((n for n, row in enumerate(rows) if row.startswith("keys:")), None)
    return [*(rows or [HEAD]), head] if at is None else [*rows[:at], head, *rows[at + 1 :]]
