"""`rackwright advise --gpu B200 --context 8k --concurrency 32`: profiles ranked by what was measured."""

from __future__ import annotations

import argparse
from typing import Any

from rackwright.engines.advice import Advice, Load, advise
from rackwright.engines.data import table
from rackwright.errors import SettingsError
from rackwright.settings.problems import nearest


def add_parser(subparsers: Any) -> None:
    """Add `advise` to the command line."""
    parser = subparsers.add_parser("advise", help="which profile suits a GPU and a load, by what was measured")
    parser.add_argument("--gpu", required=True, metavar="NAME", help="for example B200 or 'RTX PRO 6000'")
    parser.add_argument("--context", required=True, type=tokens, metavar="TOKENS", help="of a prompt, for example 8k")
    parser.add_argument("--concurrency", required=True, type=tokens, metavar="N", help="requests at once")
    parser.add_argument("--output", type=tokens, metavar="TOKENS", help="of an answer, if that is known")
    parser.set_defaults(handler=run)


def tokens(text: str) -> int:
    """A count such as 8192, 8k or 128k. Raises ArgumentTypeError for anything else, and for less than 1."""
    word = text.lower()
    plain = word.removesuffix("k")
    if not plain.isdigit() or int(plain) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 8192 or 8k")
    return int(plain) * (1024 if word.endswith("k") else 1)


def run(args: argparse.Namespace) -> int:
    """Print the ranking. Raises SettingsError for a GPU that no profile is for."""
    found = advise(args.gpu, Load(args.context, args.concurrency, args.output))
    if not found:
        names = sorted({row["gpu"] for row in table("measured")["profiles"]})
        hint = nearest(args.gpu, names)
        raise SettingsError(f"no profile is for {args.gpu} with that context{hint}; known: {', '.join(names)}")
    print("\n".join(line for place, one in enumerate(found, 1) for line in _lines(place, one)))
    if all(one.percent is None for one in found):
        print("nothing was measured on this GPU: the order is by what the sources say; measure before you choose")
    return 0


def _lines(place: int, one: Advice) -> list[str]:
    share = "not measured" if one.percent is None else f"{one.percent:.0f} %"
    return [f"{place}. {one.profile}: {share}", *(f"     {reason}" for reason in one.reasons)]
