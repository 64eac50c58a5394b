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


def load_foreign_yaml(text: str) -> Any:
    """Return what a file of the site says, in safe types. Raises yaml.YAMLError, also for endless nesting."""
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH:
            raise yaml.YAMLError(f"more than {DEPTH} values in each other")
    return load_yaml(text)
