"""Edits one key of a YAML file and leaves every other line as it is: comments, order, quotes."""

from __future__ import annotations

import re
from typing import Any

import yaml

from rackwright_engines.key_path import KeyPath
from rackwright_engines.move import Move, as_yaml

Entry = tuple[yaml.MappingNode, yaml.ScalarNode, yaml.Node]
"""The mapping that holds a key, the key, and its value."""
COMMENT = re.compile(r" +(#.*)")


def edited(text: str, path: KeyPath, move: Move) -> str | None:
    """Text of a file after `move` was made for the key at `path`; None when that needs a person.

    The key may be missing: then the new one is only added. Text in flow style (`{a: 1}`) and values over several
    lines are left to a person, except where only a value or a name is replaced in its place. The comment behind the
    old key and value goes with them: it was written for those, and may not be true of what stands there now.
    """
    entry = _find(yaml.compose(text, Loader=yaml.SafeLoader), path)
    if entry is None:
        return None if move.path is None else _inserted(text, move.path, move.value)
    if move.path is not None and move.path[:-1] == path[:-1]:
        return _replaced(text, entry, str(move.path[-1]), move.value)
    left = _dropped(text, path, entry)
    return left if left is None or move.path is None else _inserted(left, move.path, move.value)


def comment_of(text: str, path: KeyPath) -> str:
    """The comment that stands behind a key and its value, and that an edit of them takes away; empty for none."""
    entry = _find(yaml.compose(text, Loader=yaml.SafeLoader), path)
    found = COMMENT.match(text, entry[2].end_mark.index) if entry and _is_inline(entry[2]) else None
    return found[1] if found else ""


def _find(node: yaml.Node | None, path: KeyPath) -> Entry | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value == str(path[0]):
            return (node, key, value) if len(path) == 1 else _find(value, path[1:])
    return None


def _replaced(text: str, entry: Entry, name: str, value: Any) -> str | None:
    _, key, old = entry
    if not _is_inline(old):
        return None
    start, end = old.start_mark.index, old.end_mark.index
    same = repr(yaml.safe_load(text[start:end])) == repr(value)  # 1 and true are equal in Python
    shown = text[start:end] if same else as_yaml(value)
    comment = COMMENT.match(text, end)
    rest = text[comment.end() if comment else end :]
    return text[: key.start_mark.index] + name + text[key.end_mark.index : start] + shown + rest


def _is_inline(node: yaml.Node) -> bool:
    """True for a value whose end in the text is its own: a plain scalar, or a list in brackets."""
    if isinstance(node, yaml.ScalarNode):
        return node.style not in ("|", ">")
    return bool(getattr(node, "flow_style", False))


def _dropped(text: str, path: KeyPath, entry: Entry) -> str | None:
    parent, _, value = entry
    if len(parent.value) == 1 and len(path) > 1:
        above = _find(yaml.compose(text, Loader=yaml.SafeLoader), path[:-1])
        return None if above is None else _dropped_lines(text, above, parent)
    return _dropped_lines(text, entry, value)


def _dropped_lines(text: str, entry: Entry, last: yaml.Node) -> str | None:
    parent, key, _ = entry
    lines = text.splitlines(keepends=True)
    first = key.start_mark.line
    alone = not lines[first][: key.start_mark.column].strip()
    if parent.flow_style or not alone:
        return None
    end = _last_line(last)
    return None if end is None else "".join([*lines[:first], *lines[end + 1 :]])


def _last_line(node: yaml.Node) -> int | None:
    """The line on which a value ends; a block mapping ends where its last value does."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        return _last_line(node.value[-1][1]) if node.value else None
    return node.end_mark.line if _is_inline(node) else None


def _inserted(text: str, path: KeyPath, value: Any) -> str | None:
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    depth = 0
    while isinstance(node, yaml.MappingNode) and depth < len(path) - 1:
        entry = _find(node, path[depth : depth + 1])
        if entry is None:
            break
        node, depth = entry[2], depth + 1
    if not isinstance(node, yaml.MappingNode) or node.flow_style or not node.value:
        return None
    return _before_first(text, node, path[depth:], value)


def _before_first(text: str, node: yaml.MappingNode, path: KeyPath, value: Any) -> str:
    mark = node.value[0][0].start_mark
    indent = " " * mark.column
    words = [f"{indent}{'  ' * step}{name}:" for step, name in enumerate(path)]
    words[-1] += f" {as_yaml(value)}"
    lines = text.splitlines(keepends=True)
    return "".join([*lines[: mark.line], *(f"{word}\n" for word in words), *lines[mark.line :]])
