"""`rackwright advise --gpu B200 --context 8k --concurrency 32`: what this site proved and measured, then others."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import yaml

from rackwright.cli.inventories import add_hosts, add_settings, add_shared
from rackwright.cli.runs import add_site
from rackwright.cli.shapes import WantedShape, add_shape, presets_path, wanted_shape
from rackwright.exit_codes import ExitCode
from rackwright.messages import SettingsError, paragraph, printable, printable_values
from rackwright.profiles.offers import Offer, offer_heading, offer_reasons, offers
from rackwright.profiles.presets import PRESETS_FILE, Preset, load_presets
from rackwright.profiles.ranked import KnownAdvice, ranked
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
    add_shape(parser)
    add_hosts(parser)
    parser.add_argument("--context", type=tokens, metavar="TOKENS", help="tokens of a prompt, for example 8k")
    parser.add_argument("--concurrency", type=tokens, metavar="N", help="requests at once")
    parser.add_argument("--output", type=tokens, metavar="TOKENS", help="tokens of an answer, where that is known")
    everything = "rank profiles and releases of other models too, and those that nothing judges for this load"
    parser.add_argument("--all", action="store_true", help=everything)
    preset = f"print the settings of an entry of {PRESETS_FILE} instead, for group_vars/"
    parser.add_argument("--preset", metavar="NAME", help=preset)
    add_settings(parser)
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
    """Print the ranking. Raises SettingsError for a GPU that neither a profile nor the site knows."""
    if args.preset:
        print(preset_text(args.preset, load_presets(presets_path(args))), end="")
        return ExitCode.DONE
    load = load_of(args)
    wanted = wanted_shape(args)
    found = found_for(wanted, load)
    shown = ranked(found, wanted.shape)
    if args.json:
        print(json.dumps(printable_values(_values(found, shown.found)), indent=1))
        return ExitCode.DONE
    _print(wanted, found if args.all else shown.found)
    if shown.remainder and not args.all:
        print(f"not ranked: {', '.join(shown.remainder)}; all of them: {_again(args)} --all")
    return ExitCode.DONE


def found_for(wanted: WantedShape, load: Load) -> KnownAdvice:
    """Return all that is known for a GPU, of any model. Raises SettingsError where that is nothing."""
    gpu = gpu_type(wanted.shape.gpu)
    proven = offers(_presets(wanted), replace(wanted.shape, model="", gpus=None), load)
    measured = own_advice(gpu.name, load, _measured(wanted.root)) if gpu else []
    has_own = bool(proven or measured)
    if gpu is None or not longest(gpu.name):
        if not has_own:
            raise SettingsError(_no_profile(wanted.shape.gpu, load), code="RW1001")
        return KnownAdvice(proven, measured)
    return KnownAdvice(proven, measured, _profiles(gpu.name, load, has_own))


def _again(args: argparse.Namespace) -> str:
    """Return the command that was typed, but for what only says how settings are read."""
    given = {"--gpu": args.gpu, "--model": args.model, "--gpus": args.gpus, "-i": args.from_hosts}
    given |= {"--context": args.context, "--concurrency": args.concurrency, "--output": args.output}
    given |= {"--site": args.site if args.site != "." else None}
    pairs = [(option, str(value)) for option, value in given.items() if value]
    pairs += [("--limit", limit) for limit in args.limit or ()]
    return shlex.join(["rackwright", "advise", *(argument for pair in pairs for argument in pair)])


def load_of(args: argparse.Namespace) -> Load:
    """Return the load that is asked for. Raises SettingsError where it is not said."""
    if args.context is None or args.concurrency is None:
        raise SettingsError(
            "advise needs a load: --context TOKENS and --concurrency N; next: rackwright advise --gpu B200 --context "
            "8k --concurrency 32",
            code="RW1074",
        )
    return Load(args.context, args.concurrency, args.output)


def preset_text(name: str, presets: Mapping[str, Preset]) -> str:
    """Return a preset's settings as group_vars have them. Raises SettingsError for an unknown name."""
    if name not in presets:
        names = ", ".join(sorted(presets)) or "none yet: rackwright bench INVENTORY --compare A,B keeps one"
        text = f"--preset {name}: no such preset{nearest(name, presets)}; the site has {names}"
        raise SettingsError(text, code="RW1084")
    one = presets[name]
    head = [f"preset {name}, measured {one.date} on {one.gpus} x {one.gpu}", one.proof]
    if one.left_out:
        head.append(f"it was measured with values that are private; set them too: {', '.join(one.left_out)}")
    comments = "".join(f"# {printable(text)}\n" for text in head)
    return comments + yaml.safe_dump(one.settings, sort_keys=False, width=110, allow_unicode=True)


def _presets(wanted: WantedShape) -> Mapping[str, Preset]:
    """Return the site's presets. A damaged file is left out, with a warning."""
    try:
        return load_presets(wanted.root / wanted.presets_file)
    except SettingsError as error:
        _warn(f"{error}; it is left out")
        return {}


def _print(wanted: WantedShape, shown: KnownAdvice) -> None:
    """Print rows in their order: what the site has proven, what it has measured, and profiles."""
    _print_own(wanted, shown.presets, shown.releases)
    if shown.profiles:
        _print_profiles(shown.profiles, shown.before_profiles)
    elif not shown.before_profiles:
        whose = f" of {wanted.shape.model}" if wanted.shape.model else ""
        print(f"nothing{whose} was measured or advised for this load on this GPU: measure before you choose")


def _print_own(wanted: WantedShape, proven: Sequence[Offer], measured: Sequence[OwnAdvice]) -> None:
    """Print what the site has proven, and what it has measured."""
    rows = list[str]()
    if proven:
        whose = f" for {wanted.of}" if wanted.of else ""
        rows.append(f"proven by this site{whose} ({wanted.presets_file}):")
        rows += [row for rank, one in enumerate(proven, 1) for row in _offer_rows(rank, one)]
        inventory = "" if wanted.presets_file == PRESETS_FILE else " -i INVENTORY"
        rows.append(f"its settings, for group_vars/: rackwright advise{inventory} --preset NAME")
    if measured:
        rows.append("measured by this site, the newest run of each release:")
        rows += _measured_rows(measured, len(proven))
    if rows:
        print(paragraph("\n".join(rows)))


def _values(found: KnownAdvice, shown: KnownAdvice) -> dict[str, list[dict[str, Any]]]:
    """Return all rows for programs. shown: those that are ranked."""
    return {
        "presets": [{**_offer_values(one), "ranked": one in shown.presets} for one in found.presets],
        "own": [{**_own_values(one), "ranked": one in shown.releases} for one in found.releases],
        "profiles": [{**asdict(one), "ranked": one in shown.profiles} for one in found.profiles],
    }


def _offer_rows(rank: int, one: Offer) -> list[str]:
    return [f"{rank}. {offer_heading(one)}", *(f"     {text}" for text in offer_reasons(one))]


def _offer_values(one: Offer) -> dict[str, Any]:
    values = {"name": one.name, "cell": one.cell, "is_far": one.is_far, "not_the_same": list(one.differences)}
    return {**values, "heading": offer_heading(one), "preset": one.preset.model_dump(exclude_none=True)}


def _measured(root: Path) -> Iterator[OwnFigure]:
    for brought in entry_points(group=FIGURES):
        yield from brought.load()(root, _warn)


def _own_values(one: OwnAdvice) -> dict[str, Any]:
    return {"heading": heading(one), "rate": one.rate, "is_far": one.is_far, "reasons": list(reasons(one))}


def _profiles(gpu: str, load: Load, has_own: bool) -> list[Advice]:
    """Return published figures. has_own: the site has rows of its own. Raises SettingsError when there are no rows."""
    found = advise(gpu, load)
    if not found and not has_own:
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


def _measured_rows(found: Sequence[OwnAdvice], before: int) -> list[str]:
    lines = [
        (f"{rank}. {heading(one)}", *(f"     {text}" for text in reasons(one)))
        for rank, one in enumerate(found, before + 1)
    ]
    return [row for rows in lines for row in rows]


def _warn(text: str) -> None:
    print(f"rackwright: {paragraph(text)}", file=sys.stderr)


def _no_profile(product: str, load: Load) -> str:
    names = sorted({row["gpu"] for row in table("measured")["profiles"]})
    hint = "" if gpu_type(product) else nearest(product, names)
    gpu = next((name for name in names if f"mean {name}?" in hint), names[0])
    again = f"rackwright advise --gpu {shlex.quote(gpu)} --context {load.context} --concurrency {load.concurrency}"
    return f"no profile is for {product}{hint}; known: {', '.join(names)}; next: {again}"


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
