"""`rackwright pin INVENTORY`: write down what tags and branches are now, so that all hosts get the same bytes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rackwright.adapter.run.session import Connected, chosen_hosts, connected
from rackwright.cli.inventories import add_limit
from rackwright.concerns.image import IMAGE
from rackwright.concerns.models import MODELS
from rackwright.concerns.read_host import read_concerns
from rackwright.exit_codes import done_if
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, counted, printable
from rackwright.plan.concern import HostReading
from rackwright.sources.errors import SourceError
from rackwright.sources.lockfile import Lock, joined, load_lock, recorded, write_lock
from rackwright.sources.resolve import Resolver

CONCERNS = (IMAGE, MODELS)
Named = tuple[str, Lock]
"""A host's name, and its lock."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("pin", help="pin image digests and model commits: ask registry and hub, or the hosts")
    add_limit(parser)
    parser.add_argument(
        "--from-hosts", action="store_true", help="take what the hosts have verified, instead of what the names are now"
    )
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Add what is found to the lock file of each host; entries of others stay. Returns the exit status."""
    root = site_root(Path(arguments.inventory))
    entries = chosen_hosts(arguments.inventory, arguments.limit, arguments.only)
    try:
        found = _from_hosts(entries) if arguments.from_hosts else _resolved(entries)
    except SourceError as error:
        next_step = f"rackwright pin {arguments.inventory} --from-hosts"
        raise RackwrightError(
            f"{error.text}\nnothing was written; to pin what the hosts have instead: {next_step}", code=error.code
        ) from None
    files = {entry.name: entry.settings.paths.lock_file for entry in entries}
    written = [_write(root, file, joined(one for one in found if files[one[0]] == file)) for file in _once(files)]
    if not any(written):
        print(f"no host has an image or a model yet; next: pyinfra {arguments.inventory} deploy.py")
    return done_if(any(written))


def _once(files: dict[str, str]) -> list[str]:
    return list(dict.fromkeys(files.values()))


def _write(root: Path, file: str, found: Lock) -> bool:
    if not found.images and not found.models:
        return False
    before = load_lock(root, file)
    path = write_lock(root, Lock({**before.images, **found.images}, {**before.models, **found.models}), file)
    for name, digest in sorted(found.images.items()):
        print(printable(f"{name}  {digest}{_previous(before.images.get(name), digest)}"))
    for name, model in sorted(found.models.items()):
        was = before.models[name].commit if name in before.models else None
        print(printable(f"{name}  {model.commit}  {counted(len(model.files), 'file')}{_previous(was, model.commit)}"))
    print(f"written to {path}")
    return True


def _previous(before: str | None, now: str) -> str:
    return f"  (was {before})" if before and before != now else ""


def _resolved(entries: Sequence[InventoryHost]) -> list[Named]:
    resolver = Resolver()
    return [(entry.name, resolver.lock(entry.settings)) for entry in entries]


def _from_hosts(entries: Sequence[InventoryHost]) -> list[Named]:
    with connected(entries) as hosts:
        return [(host.host.name, recorded(host.entry.settings, _read(host))) for host in hosts]


def _read(connection: Connected) -> HostReading:
    return read_concerns(connection.host, connection.entry.settings, CONCERNS)
