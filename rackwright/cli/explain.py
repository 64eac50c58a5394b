"""`rackwright explain WORD`: what an engine's key does, or what a refusal's code means and what to do next."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Any

from rackwright.exit_codes import ExitCode
from rackwright.messages import SettingsError
from rackwright.refusals import by_code, lines_of
from rackwright_engines.data import PRODUCTS
from rackwright_engines.nearest import nearest
from rackwright_engines.options.explain import all_names, explain, matching, speaking_of

CODE = re.compile(r"RW\d+", re.IGNORECASE)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
MOST_NEAR = 3
"""Codes one digit from what was typed that an error lists."""
PAGE = "docs/how-to/"
"""From where the links of the table lead."""


def add_parser(subparsers: Any) -> None:
    """Add `explain` to the command line."""
    parser = subparsers.add_parser(
        "explain", help="what an engine's key does, or what to do about a code such as RW0312"
    )
    parser.add_argument(
        "key", metavar="KEY|CODE", help="an engine's key, as moe_config.backend, or the code of a message, as RW0312"
    )
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Print what is known of a key in every engine that has it, or of a code. Raises SettingsError for another word."""
    if CODE.fullmatch(args.key):
        print("\n".join(_lines(args.key.upper())))
        return ExitCode.DONE
    found = matching(args.key)
    if not found:
        raise SettingsError(_unknown(args.key), code="RW1003")
    print("\n\n".join("\n".join(explain(engine, path)) for engine, path in found))
    return ExitCode.DONE


def _lines(code: str) -> Iterator[str]:
    entries = by_code()
    if code not in entries:
        near = sorted(one for one in entries if sum(map(str.__ne__, one, code)) == 1)[:MOST_NEAR]
        meant = f" (did you mean {' or '.join(near)}?)" if near else ""
        text = f"no message has the code {code}{meant}; next: rackwright explain CODE, with the code as it was printed"
        raise SettingsError(text, code="RW1017")
    section, refusal = entries[code]
    yield f"{code}: {_plain(refusal.says).lstrip(':;, ')}"
    yield f"  {section.heading}"
    if refusal.earlier:
        yield "  of earlier versions: this one does not print it"
    for what, text in (("what it means", refusal.means), ("next", refusal.next)):
        if text:
            yield f"  {what}: {_plain(text)}"
    for entry in lines_of(section, code):
        yield f"  {_plain(entry.says).rstrip(':;,')}: {'; '.join(filter(None, map(_plain, (entry.means, entry.next))))}"


def _plain(text: str) -> str:
    """Markdown for a terminal: links as their files in the repository."""
    return _LINK.sub(_target, text).replace("`", "")


def _target(link: re.Match[str]) -> str:
    path = link[2].removeprefix("../")
    return f"{link[1]} ({'docs/' if path != link[2] else PAGE}{path})"


def _unknown(name: str) -> str:
    matches = speaking_of(name)
    if matches:
        engine, key = matches[0]
        return f"no engine has a key {name}; {PRODUCTS[engine]}'s {key} speaks of it; next: rackwright explain {key}"
    names = all_names()
    hint = nearest(name, names) or nearest(_last(name), map(_last, names))
    return f"no engine has a key {name}{hint}; next: rackwright explain moe_config.backend"


def _last(name: str) -> str:
    return name.rpartition(".")[2]
