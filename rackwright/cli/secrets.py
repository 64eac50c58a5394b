"""`rackwright secrets list|rotate`: where each secret of the settings comes from, and what a new one restarts."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from rackwright.adapter.run.inventories import load_inventory
from rackwright.cli.inventories import add_columns, add_inventory, add_shared
from rackwright.exit_codes import ExitCode
from rackwright.inspect.secrets import UsedSecret, rotation_of, used_secrets
from rackwright.messages import RackwrightError, counted, printable, printable_values
from rackwright.settings.problems import some
from rackwright.tables import Column, drawn, only, shown_width
from rackwright_engines.nearest import nearest

COLUMNS = (Column("secret"), Column("from", 3, 12), Column("kept as", 2, 16), Column("hosts", 1, 12))


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and what it can do."""
    parser = commands.add_parser(
        "secrets", help="the settings' secrets: where each comes from, what a new one restarts"
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    shown = verbs.add_parser("list", help="show each secret's file and line, how it is kept, and its hosts; no value")
    rotated = verbs.add_parser("rotate", help="say what a new value restarts, and the steps to it; changes nothing")
    for each, handler in ((shown, _list), (rotated, _rotate)):
        add_inventory(each)
        each.set_defaults(handler=handler)
    add_columns(shown, COLUMNS)
    rotated.add_argument("--secret", metavar="KEY", help="this one alone, as registry.key")
    add_shared(rotated, "json")


def _list(args: argparse.Namespace) -> int:
    """Print the secrets, without their values."""
    secrets = used_secrets(load_inventory(args.inventory))
    if args.json:
        print(json.dumps(printable_values([_fields(one) for one in secrets]), indent=1))
    elif secrets:
        print(drawn(*only(COLUMNS, [_cells(one) for one in secrets], args.columns), shown_width()))
    else:
        print("the settings have no secret")
    return ExitCode.DONE


def _cells(secret: UsedSecret) -> list[str]:
    names = [host.name for host in secret.hosts]
    hosts = some(names) if len(names) <= 3 else counted(len(names), "host")
    return [printable(cell) for cell in (secret.name, secret.origin, secret.source, hosts)]


def _fields(secret: UsedSecret) -> dict[str, object]:
    names = [host.name for host in secret.hosts]
    return {"secret": secret.name, "from": secret.origin, "source": secret.source, "hosts": names}


def _rotate(args: argparse.Namespace) -> int:
    """Print what a new value of each secret does, and how it gets there."""
    secrets = used_secrets(load_inventory(args.inventory))
    names = list(dict.fromkeys(one.name for one in secrets))
    if args.secret and args.secret not in names:
        raise RackwrightError(
            f"--secret {args.secret}: the settings have no such secret{nearest(args.secret, names)}; they have "
            f"{', '.join(names) or 'none'}; next: rackwright secrets list INVENTORY",
            code="RW1055",
        )
    chosen = [one for one in secrets if args.secret in (None, one.name)]
    if args.json:
        print(json.dumps(printable_values([_with_rotation(one) for one in chosen]), indent=1))
    elif chosen:
        print("\n\n".join("\n".join(_lines(one)) for one in chosen))
    else:
        print("the settings have no secret")
    return ExitCode.DONE


def _with_rotation(secret: UsedSecret) -> dict[str, object]:
    rotation = rotation_of(secret)
    return {**_fields(secret), "restarts": rotation.restarts, "steps": list(rotation.steps)}


def _lines(secret: UsedSecret) -> Iterator[str]:
    rotation, (name, origin, source, hosts) = rotation_of(secret), _cells(secret)
    yield f"{name}: {origin}, {source}; {hosts}"
    yield printable(f"  restarts {rotation.restarts}")
    for number, step in enumerate(rotation.steps, 1):
        yield printable(f"  {number}. {step}")
