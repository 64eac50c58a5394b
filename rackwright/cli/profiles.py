"""`rackwright profiles list|show|add`: the shipped profiles, what each says, and a copy of one to edit."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rackwright.cli.inventories import add_columns
from rackwright.cli.runs import add_site, root_of
from rackwright.exit_codes import ExitCode
from rackwright.loading.files import EXTENSIONS
from rackwright.loading.profile_text import SCHEMA, one_file
from rackwright.messages import RackwrightError, SettingsError, writing
from rackwright.profiles import catalog
from rackwright.profiles.content import Files
from rackwright.profiles.locked import LOCK_FILE, NAME, locked_profiles
from rackwright.tables import Column, aligned, drawn, only, shown_width
from rackwright_engines.data import table
from rackwright_engines.fit.gpu import gpu_type
from rackwright_engines.nearest import nearest

COLUMNS = (
    Column("profile"),
    Column("machine", 3, 12),
    Column("model", 4, 16),
    Column("engine", 5, 14),
    Column("drafting", 6, 12),
    Column("seen on", 2),
    Column("source", 1),
)
SHORT = (Column("profile"), Column("model", 3), Column("engine", 2, 14), Column("drafting", 1, 10))
"""Below a machine."""
SCHEMAS = ("docs/reference/settings.schema.json", ".rackwright/settings.schema.json")
"""Places in a site of the schema by which editors complete keys."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and what it can do."""
    parser = commands.add_parser("profiles", help="the shipped profiles: list, show, add")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    listed = verbs.add_parser("list", help="list machine, model, engine, drafting and source of each")
    shown = verbs.add_parser("show", help="print the settings of one, as `profile: NAME` gives them to a host")
    added = verbs.add_parser("add", help="copy one into group_vars/ of this site, to edit every key of it")
    for each, handler in ((listed, _list), (shown, _show), (added, _add)):
        each.set_defaults(handler=handler)
    listed.add_argument("--gpu", metavar="NAME", help="only those for this GPU, for example B200 or 'RTX PRO 6000'")
    add_columns(listed, COLUMNS)
    for each in (shown, added):
        each.add_argument("name", metavar="NAME", help="the profile's name")
        add_site(each)
    added.add_argument(
        "--as", dest="group", metavar="GROUP", type=_group, help="the group (default: the profile's name)"
    )


def _group(text: str) -> str:
    if not NAME.fullmatch(text) or text.startswith("_"):
        raise argparse.ArgumentTypeError(f"{text!r} must be a group's name: letters, digits, _ and -")
    return text


def _list(args: argparse.Namespace) -> int:
    """Print the catalogue. Raises SettingsError for a GPU that no profile is for."""
    found = [catalog.profile(name) for name in _chosen(args.gpu)]
    if args.json:
        print(json.dumps([_values(one) for one in found], indent=1))
        return ExitCode.DONE
    if args.columns:
        columns, rows = only(COLUMNS, [_row(one) for one in found], args.columns)
        print(drawn(columns, rows, shown_width()))
        return ExitCode.DONE
    print("\n".join(_by_machine(found)))
    return ExitCode.DONE


def _by_machine(found: Sequence[catalog.Profile]) -> Iterator[str]:
    """Yield the profiles below their machines, and what is seen of them."""
    machines: dict[str, list[catalog.Profile]] = {}
    for one in found:
        machines.setdefault(_machine(one), []).append(one)
    for machine, profiles in machines.items():
        rows = [[one.name, _short(one.model), f"{one.engine} {one.version}", one.drafting] for one in profiles]
        width = shown_width()
        yield machine
        yield from (f"  {row}" for row in aligned(SHORT, rows, width and width - 2))
    hardware = [f"{one.name} on {one.seen_on}" for one in found if one.seen_on != catalog.NOTHING]
    yield f"\nseen on real hardware: {'; '.join(hardware) or 'none of these yet'}"
    yield "source and settings of one: rackwright profiles show NAME; to use it: `profile: NAME` in group_vars/"


def _machine(one: catalog.Profile) -> str:
    gpus = f"{one.gpu_count} x {' or '.join(one.gpu_models)}"
    text = f"{one.machine} ({gpus}, {one.architecture})" if one.architecture else f"any host with {gpus}"
    return f"{one.hosts} of: {text}" if one.hosts > 1 else text


def _short(model: str) -> str:
    return model.rpartition("/")[2]


def _chosen(gpu: str | None) -> Sequence[str]:
    if gpu is None:
        return catalog.names()
    if names := catalog.for_gpu(gpu):
        return names
    gpus = sorted({row["gpu"] for row in table("measured")["profiles"]})
    hint = "" if gpu_type(gpu) else nearest(gpu, gpus)
    text = f"no profile is for {gpu}{hint}; known: {', '.join(gpus)}; next: rackwright profiles list"
    raise SettingsError(text, code="RW1001")


def _row(one: catalog.Profile) -> list[str]:
    engine, drafting = f"{one.engine} {one.version}", one.drafting or "-"
    return [one.name, _machine(one), one.model, engine, drafting, one.seen_on, one.source]


def _values(one: catalog.Profile) -> dict[str, Any]:
    return {**asdict(one), "files": list(one.files)}


def _show(args: argparse.Namespace) -> int:
    """Print a profile as YAML, with what is known of it as comments. Raises SettingsError for an unknown name."""
    print("\n".join(["\n".join(_about(args.name)), one_file(_files(root_of(args), args.name)).rstrip("\n")]))
    return ExitCode.DONE


def _about(name: str) -> list[str]:
    if name not in catalog.names():
        return [f"# {name}: this version no longer ships it; the text is that of {LOCK_FILE}"]
    one = catalog.profile(name)
    row = dict(zip((column.head for column in COLUMNS), _row(one), strict=True))
    hardware = "no real hardware yet" if one.seen_on == catalog.NOTHING else one.seen_on
    return [
        f"# {name}: {row['model']} on {row['machine']} with {row['engine']}; drafting: {one.drafting or 'none'}",
        f"# source: {one.source}",
        f"# seen on: {hardware}",
    ]


def _files(root: Path, name: str) -> Files:
    """Return what the site's hosts get: the lock file's text, or the shipped one. Raises SettingsError."""
    locked = locked_profiles(root / LOCK_FILE)
    if name in locked:
        return locked[name].files
    if name not in catalog.names():
        text = f"{name!r}: no such profile{nearest(name, catalog.names())}; next: rackwright profiles list"
        raise SettingsError(text, code="RW1041")
    return catalog.profile(name).files


def _add(args: argparse.Namespace) -> int:
    """Write the copy, once. Raises RackwrightError for a group that has a file already, and for an unknown name."""
    root, group = root_of(args), args.group or args.name
    text = _schema(root) + one_file(_files(root, args.name))
    path = root / "group_vars" / f"{group}.yml"
    _refuse_existing(path, args.name)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    print(f"{path}: every key of profile {args.name}, to edit; the hosts of group {group} get it")
    print(f"next: take `profile: {args.name}` out of where these hosts name it, then: rackwright check INVENTORY")
    return ExitCode.DONE


def _refuse_existing(path: Path, name: str) -> None:
    present = [one for end in EXTENSIONS if (one := path.with_suffix(end)).exists() or one.is_symlink()]
    if present:
        text = f"{present[0]} is there already, and nothing was written"
        next_step = f"rackwright profiles show {name}, and copy what you want to edit; or another group: --as GROUP"
        raise RackwrightError(f"{text}; next: {next_step}", code="RW1051")


def _schema(root: Path) -> str:
    """Return the line by which editors find the schema that the site has; nothing where it has none."""
    found = next((path for path in SCHEMAS if (root / path).is_file()), None)
    return f"{SCHEMA} $schema=../{found}\n" if found else ""
