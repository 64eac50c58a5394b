"""`rackwright check INVENTORY`: everything that can be known to be wrong without touching a host."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from rackwright.cli.inventories import add_hosts, add_inventory, add_shared
from rackwright.cli.judging import Judged, judge
from rackwright.cli.version_change import refuse_no_version, version_changes
from rackwright.engines.problems import engine_notes
from rackwright.exit_codes import ExitCode
from rackwright.loading.choice import Choice
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright.loading.notes import notes
from rackwright.loading.password import open_password_file
from rackwright.loading.validate import leaves
from rackwright.messages import RackwrightError, counted, printable, printable_values
from rackwright.settings.group import Group
from rackwright.settings.host_settings import EndpointSettings
from rackwright.settings.origin import origin_of
from rackwright.settings.problems import some
from rackwright.settings.secret import Secret, shown_value
from rackwright.sources.profile_lock import gone_lines, named_profiles, waiting_lines
from rackwright.tables import Column, aligned, shown_width
from rackwright_engines.datasets import SHIPPED, unused, used
from rackwright_engines.finding import Level
from rackwright_engines.key_path import dotted

COLUMNS = (Column("key", 2, 24), Column("value", 1, 20), Column("origin", 3, 22))
"""Of `--show-origin`."""
FIX_IS_GONE = (
    "check --fix is gone: what is refused says what to write, and where; nothing was changed; next: rackwright check {}"
)
DERIVED = "derived"
"""Origin of connection data that follows from the rest."""


def add_parser(subparsers: Any) -> None:
    """Add `check` to the command line."""
    parser = subparsers.add_parser("check", help="validate an inventory's settings, offline")
    add_inventory(parser)
    add_hosts(parser)
    parser.add_argument("--show-origin", action="store_true", help="print every value and where it comes from")
    parser.add_argument("--fix", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--to", metavar="VERSION", help="show what would change with another version of the engine")
    parser.add_argument(
        "--in-image", action="store_true", help="then connect, and let the hosts' own images judge the options"
    )
    add_shared(parser, "json")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Judge each host and describe those that are right; returns 0, or 1 when a host or an image refuses."""
    if args.fix:
        raise RackwrightError(FIX_IS_GONE.format(args.inventory), code="RW1040")
    if args.to is not None:
        refuse_no_version(args.to)
    if args.json:
        return _as_json(args)
    judged = judge(args.inventory, Choice(args.limit))
    hosts, root = judged.hosts, site_root(Path(args.inventory).expanduser())
    if not hosts:
        return _refused(judged)
    if args.to:
        print("\n".join(version_changes(hosts, args.to)))
        print(f"next: write the new tag into `image:`, then: rackwright check {args.inventory}")
        return _refused(judged)
    for host in hosts:
        print("\n".join(_origins(host) if args.show_origin else [_summary(host)]))
    for warning in [*open_password_file(root), *_warnings(args.inventory, judged), *_engines_data()]:
        print(warning)
    refused = _refused(judged)
    print(f"{args.inventory}: {_verdict(judged)}")
    if not args.in_image:
        return refused
    # Only here: it makes the standard library cooperative, which checks that connect nowhere must not suffer.
    from rackwright.cli.in_image import check_in_image  # noqa: PLC0415

    some_alone = bool(args.limit or refused)
    return max(refused, check_in_image(args.inventory, [host.name for host in hosts] if some_alone else []))


def _as_json(args: argparse.Namespace) -> int:
    """Print the verdict for programs. Raises RackwrightError for what does something else beside it."""
    if args.to or args.in_image:
        text = "check --json prints the verdict on the settings as they are; nothing was done; next: the same command "
        raise RackwrightError(f"{text}without --to and --in-image", code="RW1048")
    judged = judge(args.inventory, Choice(args.limit))
    values = {
        "valid": not judged.refusals,
        "hosts": [_values_of(host, args.show_origin) for host in judged.hosts],
        "errors": [
            {"code": one.error.code, "text": one.error.text, "hosts": list(one.hosts)} for one in judged.refusals
        ],
        "warnings": _warnings(args.inventory, judged),
    }
    print(json.dumps(printable_values(values), indent=1))
    return ExitCode.ERROR if judged.refusals else ExitCode.DONE


def _values_of(host: InventoryHost, with_origins: bool) -> dict[str, Any]:
    endpoints = {
        name: {
            "engine": endpoint.engine_kind,
            "version": str(endpoint.version),
            "address": endpoint.address,
            "port": endpoint.port,
        }
        for name, endpoint in host.settings.all_endpoints.items()
    }
    values = {dotted(path): _value(host, path, value) for path, value in _values(host)}
    found = {"host": host.name, "groups": list(host.groups), "endpoints": endpoints}
    return {**found, "values": values} if with_origins else found


def _value(host: InventoryHost, path: tuple[str | int, ...], value: Any) -> dict[str, str]:
    found = {"value": _shown(path, value), "from": _place(host, path)}
    return {**found, "source": value.source} if isinstance(value, Secret) and value.source else found


def _refused(judged: Judged) -> int:
    """Print what is wrong, with its hosts; returns the exit code."""
    sys.stdout.flush()
    for error in judged.errors:
        print(f"rackwright: {error}", file=sys.stderr)
    return ExitCode.ERROR if judged.refusals else ExitCode.DONE


def _verdict(judged: Judged) -> str:
    right, wrong = len(judged.hosts), [name for refusal in judged.refusals for name in refusal.hosts]
    if not wrong:
        return f"{counted(right, 'host')}, the settings are valid"
    whole = counted(right + len(wrong), "host")
    return f"{whole}, the settings of {right} are valid, those of {some(wrong)} are not"


def _summary(host: InventoryHost) -> str:
    endpoints = [
        f"{name}: {endpoint.engine_kind} {endpoint.version} {_where(host.settings.group, endpoint)}"
        for name, endpoint in host.settings.all_endpoints.items()
    ]
    if host.settings.is_gateway:
        gateway, models = host.settings.gateway, ", ".join(one.model for one in host.settings.backends)
        bind = f"[{gateway.bind}]" if ":" in gateway.bind else gateway.bind
        endpoints.append(f"gateway at {bind}:{gateway.port} to {models or 'no model'}")
    return f"{host.name} ({', '.join(host.groups) or 'no group'}) {'; '.join(endpoints)}"


def _where(group: Group | None, endpoint: EndpointSettings) -> str:
    """Return the address of an endpoint; of several hosts the first one alone has it."""
    at = f"at {endpoint.address}:{endpoint.port}"
    if group is None:
        return at
    return f"{at}, on {some(group.hosts)} together" if group.is_head else f"together with {group.head.host}"


def _origins(host: InventoryHost) -> list[str]:
    rows = [(printable(dotted(path)), _shown(path, value), _origin(host, path, value)) for path, value in _values(host)]
    width = shown_width()
    return [host.name, *(f"  {text}" for text in aligned(COLUMNS, rows, width and width - 2))]


def _values(host: InventoryHost) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    for key, value in host.data.items():
        found = list(leaves(value, (key,)))
        yield from found or [((key,), value)]


def _shown(path: Sequence[str | int], value: Any) -> str:
    name = next((str(part) for part in reversed(path) if isinstance(part, str)), "")
    text = str(value).lower() if isinstance(value, bool) else shown_value(str(value), name)
    text = printable(text)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _place(host: InventoryHost, path: tuple[str | int, ...]) -> str:
    return str(origin_of(host.origins, path) or DERIVED)


def _origin(host: InventoryHost, path: tuple[str | int, ...], value: Any) -> str:
    """Return where a value stands; of a secret, how it is kept there too."""
    source = value.source if isinstance(value, Secret) else ""
    return f"{_place(host, path)}{f', {source}' if source else ''}"


def _engines_data() -> Iterator[str]:
    """Yield which data of the engines are used, where others than the shipped ones are installed."""
    if used().folder != SHIPPED:
        yield f"engines' data: {used()}"
    yield from (printable(f"engines' data not used: {reason}") for reason in unused())


def _warnings(inventory: str, judged: Judged) -> list[str]:
    """Return each note once, with the hosts that it is about."""
    hosts, declared = judged.hosts, judged.declared
    found: dict[str, list[str]] = {}
    notes_of: dict[tuple[int, bool], list[str]] = {}
    for host in hosts:
        alike = id(host.settings), "firewall" in declared[host.name]
        if alike not in notes_of:
            notes_of[alike] = notes(host.settings, alike[1])
        for note in notes_of[alike]:
            found.setdefault(note, []).append(host.name)
    warnings = [f"warning: {', '.join(names)}: {note}" for note, names in found.items()]
    return [*_twins(hosts), *warnings, *_profiles(inventory, hosts), *_notes(hosts)]


def _profiles(inventory: str, hosts: Sequence[InventoryHost]) -> list[str]:
    named = named_profiles(site_root(Path(inventory).expanduser()), [host.settings for host in hosts])
    return [f"warning: {text}" for text in (*waiting_lines(named, f"rackwright pin {inventory}"), *gone_lines(named))]


def _twins(hosts: Sequence[InventoryHost]) -> list[str]:
    """Return the names that lead to one address and port, by the same way: each would be deployed as its own host."""
    found: dict[tuple[str, str], list[str]] = {}
    for host in hosts:
        if not host.name.startswith("@") or host.name.startswith("@ssh/"):
            found.setdefault((_address(host.address), str(host.data.get("ssh_config_file"))), []).append(host.name)
    return [
        f"warning: {', '.join(names)}: {len(names)} names of one machine ({address}); a run writes to it by one, "
        "and refuses the others: take them out of the inventory"
        for (address, _), names in found.items()
        if len(names) > 1
    ]


def _address(address: str) -> str:
    """`ADDRESS:PORT`, in one spelling."""
    name, _, port = address.removeprefix("@ssh/").rpartition(":")
    name = name.strip("[]").rstrip(".").lower()
    try:
        return f"{ip_address(name)}:{port}"
    except ValueError:
        return f"{name}:{port}"


def _notes(hosts: Sequence[InventoryHost]) -> list[str]:
    """Return the notes that are not warnings, each once."""
    shared = {id(host.settings): host.settings for host in hosts}
    notes = [f"note: {note}" for settings in shared.values() for note in engine_notes(settings, Level.NOTE)]
    return list(dict.fromkeys(notes))
