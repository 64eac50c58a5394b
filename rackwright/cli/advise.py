"""`rackwright advise --gpu B200 --context 8k --concurrency 32`: what this site measured, then what others did."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from rackwright.cli.inventories import add_shared
from rackwright.cli.runs import add_site, root_of
from rackwright.exit_codes import ExitCode
from rackwright.messages import SettingsError, paragraph, printable_values
from rackwright_engines.advice import Advice, Load, advise, longest
from rackwright_engines.data import table
from rackwright_engines.fit.gpu import gpu_type
from rackwright_engines.nearest import nearest
from rackwright_engines.own import OwnAdvice, OwnFigure, heading, own_advice, reasons

FIGURES = "rackwright.figures"
"""Entry points of packages that read a site's measurements: called with its folder and a printer of warnings."""


def add_parser(subparsers: Any) -> None:
    """Add `advise` to the command line."""
    parser = subparsers.add_parser("advise", help="which profile suits a GPU and a load, by what was measured")
    parser.add_argument(
        "--gpu", required=True, metavar="NAME", help="the GPU's name, for example B200 or 'RTX PRO 6000'"
    )
    parser.add_argument(
        "--context", required=True, type=tokens, metavar="TOKENS", help="tokens of a prompt, for example 8k"
    )
    parser.add_argument("--concurrency", required=True, type=tokens, metavar="N", help="requests at once")
    parser.add_argument("--output", type=tokens, metavar="TOKENS", help="tokens of an answer, where that is known")
    add_site(parser)
    add_shared(parser, "json")
    parser.set_defaults(handler=run)


def tokens(text: str) -> int:
    """Return a count such as 8192, 8k or 128k. Raises ArgumentTypeError for anything else, and for less than 1."""
    number = text.lower()
    plain = number.removesuffix("k")
    if not plain.isdigit() or int(plain) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 8192 or 8k")
    return int(plain) * (1024 if number.endswith("k") else 1)


def run(args: argparse.Namespace) -> int:
    """Print the ranking. Raises SettingsError for a GPU that neither a profile nor a run of the site knows."""
    gpu, load = gpu_type(args.gpu), Load(args.context, args.concurrency, args.output)
    measured = own_advice(gpu.name, load, _measured(root_of(args))) if gpu else []
    if measured and not args.json:
        print(
            paragraph("\n".join(["measured by this site, the newest run of each release:", *_measured_rows(measured)]))
        )
    if gpu is None or not longest(gpu.name):
        if not measured:
            raise SettingsError(_no_profile(args), code="RW1001")
        profiles = list[Advice]()
    else:
        profiles = _profiles(gpu.name, load, len(measured))
    if args.json:
        print(
            json.dumps(
                printable_values({"own": list(map(_own_values, measured)), "profiles": list(map(asdict, profiles))}),
                indent=1,
            )
        )
    elif profiles:
        _print_profiles(profiles, len(measured))
    return ExitCode.DONE


def _measured(root: Path) -> Iterator[OwnFigure]:
    for brought in entry_points(group=FIGURES):
        yield from brought.load()(root, _warn)


def _own_values(one: OwnAdvice) -> dict[str, Any]:
    return {"heading": heading(one), "rate": one.rate, "is_far": one.is_far, "reasons": list(reasons(one))}


def _profiles(gpu: str, load: Load, before: int) -> list[Advice]:
    """Return published figures. before: rows that are printed already. Raises SettingsError when there are no rows."""
    found = advise(gpu, load)
    if not found and not before:
        text = f"no profile for {gpu} holds {load.length} tokens of prompt and answer; the longest holds"
        raise SettingsError(f"{text} {longest(gpu)}; next: ask with a smaller --context or --output", code="RW1002")
    return list(found)


def _print_profiles(found: Sequence[Advice], before: int) -> None:
    """Print published figures. before: how many rows are printed above."""
    if before:
        print("profiles, by what others measured or advise:")
    print("\n".join(row for rank, one in enumerate(found, before + 1) for row in _lines(rank, one)))
    if runs := next((one.profile for one in found if one.runs), ""):
        print(f"to use it: `profile: {runs}` in group_vars/; what it says: rackwright profiles show {runs}")
    if not before and all(one.percent is None for one in found):
        print("no speed was measured on this GPU: the order is by what the sources say; measure before you choose")


def _measured_rows(found: list[OwnAdvice]) -> list[str]:
    lines = [
        (f"{rank}. {heading(one)}", *(f"     {text}" for text in reasons(one))) for rank, one in enumerate(found, 1)
    ]
    return [row for rows in lines for row in rows]


def _warn(text: str) -> None:
    print(f"rackwright: {paragraph(text)}", file=sys.stderr)


def _no_profile(args: argparse.Namespace) -> str:
    names = sorted({row["gpu"] for row in table("measured")["profiles"]})
    hint = "" if gpu_type(args.gpu) else nearest(args.gpu, names)
    gpu = next((name for name in names if f"mean {name}?" in hint), names[0])
    again = f"rackwright advise --gpu {shlex.quote(gpu)} --context {args.context} --concurrency {args.concurrency}"
    return f"no profile is for {args.gpu}{hint}; known: {', '.join(names)}; next: {again}"


def _lines(rank: int, one: Advice) -> list[str]:
    gpus = f"{one.gpus} GPU{'s' if one.gpus > 1 else ''}"
    return [f"{rank}. {one.profile} ({gpus}): {_speed(one)}", *(f"     {reason}" for reason in one.reasons)]


def _speed(advice: Advice) -> str:
    if not advice.runs:
        return "does not run"
    if not advice.percents:
        return "advised, speed not measured" if advice.advised else "speed not measured"
    least, most = min(advice.percents), max(advice.percents)
    return f"{most:g} %" if least == most else f"{least:g} to {most:g} %, by the length of the answer (--output)"
