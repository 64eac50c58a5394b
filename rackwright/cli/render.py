"""`rackwright render INVENTORY --limit HOST --out DIR`: every file as it would land, offline, secrets masked."""

from __future__ import annotations

import argparse
from pathlib import Path

from rackwright.adapter.run.declaring import declared_by, overlay_arguments
from rackwright.cli.inventories import add_hosts, add_inventory, hosts_of, one_of
from rackwright.concerns.catalog import ALL
from rackwright.exit_codes import ExitCode
from rackwright.loading.files import DEPLOY, site_root
from rackwright.masks import hidden, without_logins
from rackwright.messages import writing
from rackwright.settings.host_settings import HostSettings
from rackwright.sources.lockfile import Locks


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("render", help="write every file as it would land on a host, offline")
    add_inventory(parser)
    add_hosts(parser)
    parser.add_argument("--out", required=True, type=Path, metavar="DIR")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the files below DIR, at their paths on the host. Raises RackwrightError."""
    root = site_root(Path(arguments.inventory).expanduser())
    host = one_of(arguments, hosts_of(arguments, arguments=False))
    if (deploy := root / DEPLOY).exists():
        host = overlay_arguments(host, declared_by(root, [host])[host.name], deploy)
    settings = Locks(root).pin(host.settings)
    for path, text in sorted(rendered_files(settings).items()):
        file = arguments.out / path.lstrip("/")
        with writing(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(without_logins(hidden(text)))
        print(file)
    return ExitCode.DONE


def rendered_files(settings: HostSettings) -> dict[str, str]:
    """Return the files by path of all concerns that write whole files, as on a bare host."""
    return {path: text for concern in ALL if concern.files for path, text in concern.files(settings).items()}
