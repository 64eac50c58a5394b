"""`rackwright explain KEY`: what an engine's key does, its default, the versions that have it, and its source."""

from __future__ import annotations

import argparse
from typing import Any

from rackwright.engines.check import PRODUCTS
from rackwright.engines.explain import all_names, explain, matching, speaking_of
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
        raise SettingsError(_unknown(args.key))
    print("\n\n".join("\n".join(explain(engine, path)) for engine, path in found))
    return 0


def _unknown(word: str) -> str:
    told = speaking_of(word)
    if told:
        engine, key = told[0]
        return f"no engine has a key {word}; {PRODUCTS[engine]}'s {key} speaks of it; next: rackwright explain {key}"
    names = all_names()
    hint = nearest(word, names) or nearest(_last(word), map(_last, names))
    return f"no engine has a key {word}{hint}; next: rackwright explain moe_config.backend"


def _last(name: str) -> str:
    return name.rpartition(".")[2]
