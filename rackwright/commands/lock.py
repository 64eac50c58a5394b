"""`rackwright lock INVENTORY`: write down which bytes the hosts have, so that all hosts get the same."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyinfra.api.command import QuoteString, StringCommand

from rackwright import reading
from rackwright.concern import HostReading, parse_all
from rackwright.concerns.image import IMAGE
from rackwright.concerns.models import MODELS
from rackwright.effects import remote, tail
from rackwright.errors import ReadingError
from rackwright.lockfile import Lock, joined, load_lock, recorded, write_lock
from rackwright.session import Connected, chosen_hosts, connected
from rackwright.settings.files import site_root

CONCERNS = (IMAGE, MODELS)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("lock", help="write down the image digests and model commits that the hosts have")
    parser.add_argument("inventory", metavar="INVENTORY")
    parser.add_argument("--limit", action="append", default=[], metavar="HOST|GROUP", help="as pyinfra's --limit")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Read the hosts and add what they have to the lock file; entries for others stay. Returns the exit status."""
    root = site_root(Path(arguments.inventory))
    with connected(chosen_hosts(arguments.inventory, arguments.limit)) as hosts:
        found = joined((host.host.name, recorded(host.entry.settings, _look(host))) for host in hosts)
    if not found.images and not found.models:
        print(f"no host has an image or a model yet; next: pyinfra {arguments.inventory} deploy.py")
        return 1
    before = load_lock(root)
    path = write_lock(root, Lock({**before.images, **found.images}, {**before.models, **found.models}))
    for name, digest in sorted(found.images.items()):
        print(f"{name}  {digest}")
    for name, model in sorted(found.models.items()):
        print(f"{name}  {model.commit}  {len(model.files)} files")
    print(f"written to {path}")
    return 0


def _look(connection: Connected) -> HostReading:
    settings = connection.entry.settings
    script = reading.script({concern.name: concern.read(settings) for concern in CONCERNS})
    command = StringCommand("sh", "-c", QuoteString(script))
    ok, output = remote(connection.state, connection.host, command, timeout=120)
    if not ok:
        raise ReadingError(f"{connection.host.name} could not be read: {tail(output)}")
    return parse_all(CONCERNS, reading.parse(output.stdout_lines, [concern.name for concern in CONCERNS]))
