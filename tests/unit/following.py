"""Follows what refusals say to write, as a user would: what they say must be accepted."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from rackwright_engines.finding import Finding, Level
from rackwright_engines.key_path import KeyPath, dotted
from rackwright_engines.move import Move
from rackwright_engines.options.check import check_options

ROUNDS = 8
"""A moved key may need to move once more (out of a lost section, then to its new name)."""


@dataclass(frozen=True)
class Fixed:
    """One edit that was made, and why."""

    path: KeyPath
    right: Move
    why: str

    def __str__(self) -> str:
        return f"{dotted(self.path)}: {self.right}: {self.why}"


def fix(
    options: Mapping[str, Any], version: str, engine_kind: str = "tensorrt-llm"
) -> tuple[dict[str, Any], list[Fixed]]:
    """Options that `version` takes as far as that can be done without guessing, and the edits.

    Only refusals with a sure right place are fixed; whatever `check_options` still refuses needs a person.
    """
    current: dict[str, Any] = deepcopy(dict(options))
    made: list[Fixed] = []
    for _ in range(ROUNDS):
        due = fixable(check_options(engine_kind, version, current))
        if not due:
            break
        for finding, move in due:
            current = with_key_fixed(current, finding.path, move)
            made.append(Fixed(finding.path, move, finding.text))
    return current, made


def fixable(findings: list[Finding]) -> list[tuple[Finding, Move]]:
    """Refusals that name their right place."""
    return [(found, found.right) for found in findings if found.level is Level.REFUSE and found.right]


def with_key_fixed(options: Mapping[str, Any], path: KeyPath, move: Move) -> dict[str, Any]:
    """Options without the key at `path`, and with what `move` puts in its stead, in the same place if it can be."""
    if move.path is not None and move.path[:-1] == path[:-1]:
        return _renamed(options, path, move)
    remaining = _without(options, path)
    return remaining if move.path is None else _with(remaining, move.path, move.value)


def _renamed(options: Mapping[str, Any], path: KeyPath, move: Move) -> dict[str, Any]:
    assert move.path is not None
    name, *below = path
    if below:
        inner = _renamed(options[str(name)], tuple(below), Move(move.path[1:], move.value))
        return {key: inner if key == name else value for key, value in options.items()}
    return dict((str(move.path[0]), move.value) if key == name else (key, value) for key, value in options.items())


def _without(options: Mapping[str, Any], path: KeyPath) -> dict[str, Any]:
    name, *below = path
    if not below:
        return {key: value for key, value in options.items() if key != name}
    return {key: _without(value, tuple(below)) if key == name else value for key, value in options.items()}


def _with(options: Mapping[str, Any], path: KeyPath, value: Any) -> dict[str, Any]:
    name, *below = path
    here = options.get(str(name))
    inner = _with(here if isinstance(here, Mapping) else {}, tuple(below), value) if below else value
    return {**options, str(name): inner}
