"""`rackwright explain KEY`: what an engine's key does, its default, the versions that have it, and its source."""

from __future__ import annotations

import argparse
from typing import Any

from rackwright.engines.explain import all_names, explain, matching
from rackwright.errors import SettingsError
from rackwright.settings.problems import nearest


def add_parser(subparsers: Any) -> None:
    """Add `explain` to the command line."""
    parser = subparsers.add_parser("explain", help="what an engine's key does, and which versions have it")
    parser.add_argument("key", metavar="KEY", help="for example moe_config.backend")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Print what is known of a key in every engine that has it. Raises SettingsError for a key that is none."""
    found = matching(args.key)
    if not found:
        names = all_names()
        hint = nearest(args.key, names) or nearest(args.key.split(".")[-1], [name.split(".")[-1] for name in names])
        raise SettingsError(f"no engine has a key {args.key}{hint}; next: rackwright explain moe_config.backend")
    print("\n\n".join("\n".join(explain(engine, path)) for engine, path in found))
    return 0
