"""Plain values of a YAML text, by PyYAML's C parser, which reads a table ten times faster, where PyYAML has it."""

from __future__ import annotations

from typing import Any

import yaml

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""PyYAML has the C one wherever it was built with libyaml."""


def load_yaml(text: str) -> Any:
    """Return what the text says, in safe types. Raises yaml.YAMLError."""
    return yaml.load(text, Loader=LOADER)


DEPTH = 100
"""Of values in each other at most, in a file that another program may have written: the C parser's stack ends."""


MOST = 200_000
"""Values at most, each counted as often as an alias names it: ten lines of aliases make a billion."""


def load_foreign_yaml(text: str) -> Any:
    """Return what a file of the site says, in safe types.

    Raises yaml.YAMLError, also for endless nesting, and for more values than any such file has.
    """
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH:
            raise yaml.YAMLError(f"more than {DEPTH} values in each other")
    root = yaml.compose(text, Loader=LOADER)
    if root is not None and _count(root, {}) > MOST:
        raise yaml.YAMLError(f"more than {MOST} values, each counted as often as an alias names it")
    return load_yaml(text)


def _count(node: yaml.Node, counts: dict[int, int]) -> int:
    """Return the number of values below a node, and itself."""
    if id(node) not in counts:
        counts[id(node)] = MOST  # of a value within itself, which an alias may make
        pairs = node.value if isinstance(node, yaml.CollectionNode) else ()
        below = (child for pair in pairs for child in (pair if isinstance(pair, tuple) else (pair,)))
        counts[id(node)] = 1 + sum(_count(child, counts) for child in below)
    return counts[id(node)]
