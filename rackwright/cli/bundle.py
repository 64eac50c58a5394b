"""`rackwright bundle INVENTORY --out DIR`: everything that a deploy fetches, in one folder for a closed network."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from rackwright import __version__
from rackwright.adapter.run.session import chosen_hosts
from rackwright.bundle.checking import changed_files, opened
from rackwright.bundle.contents import Contents, contents_of
from rackwright.bundle.signature import sign
from rackwright.bundle.store import Store, refuse_small
from rackwright.bundle.writing import Bundle, written_at
from rackwright.cli.inventories import add_limit
from rackwright.exit_codes import ExitCode, done_if
from rackwright.loading.files import site_root
from rackwright.messages import RackwrightError, counted, printable
from rackwright.sources.lockfile import Locks, locked

UNITS = {"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
MACHINES = ("amd64", "arm64")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("bundle", help="write all that a deploy fetches into a folder, for a closed network")
    add_limit(parser)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, metavar="DIR", help="folder to write; what is there and right stays")
    where.add_argument("--verify", type=Path, metavar="DIR", help="hash all files of a bundle, and write nothing")
    parser.add_argument(
        "--part-size",
        type=_size,
        default=1 << 50,
        metavar="SIZE",
        help="bytes of a part at most, as 50G; default: one part",
    )
    parser.add_argument("--sign", type=Path, metavar="KEY", help="minisign's secret key to sign it with")
    parser.set_defaults(handler=run)


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)([MGT])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size, as 500M, 50G or 2T")
    return int(found[1]) * UNITS[found[2]]


def run(arguments: argparse.Namespace) -> int:
    """Write a bundle, or verify one. Returns the exit status."""
    entries = chosen_hosts(arguments.inventory, arguments.limit, arguments.only)
    if arguments.verify:
        keys = [entry.settings.bundle.public_key for entry in entries if entry.settings.bundle.public_key]
        return verify(arguments.verify, keys[0] if keys else None)
    locks = Locks(site_root(Path(arguments.inventory)))
    settings = {entry.name: locked(entry.settings, locks.of(entry.settings)) for entry in entries}
    contents = contents_of(settings, MACHINES)
    contents.refuse_unpinned(arguments.inventory)
    return write(arguments, contents)


def write(arguments: argparse.Namespace, contents: Contents) -> int:
    """Write a bundle of these contents."""
    folder: Path = arguments.out.expanduser().resolve()
    refuse_small(arguments.part_size)
    if not written_at(folder):
        text = f"{folder} holds other files, and no bundle; nothing was written; next: --out with a new folder"
        raise RackwrightError(text, code="RW3803")
    bundle = Bundle(Store(folder, arguments.part_size), _say)
    bundle.begin()
    bundle.fill(contents)
    files = bundle.close()
    if arguments.sign:
        sign(folder, arguments.sign.expanduser().resolve(), f"bundle of rackwright {__version__}")
    for row in _summary(bundle, folder, files, bool(arguments.sign)):
        _say(row)
    return ExitCode.DONE


def _summary(bundle: Bundle, folder: Path, files: int, signed: bool) -> Sequence[str]:
    catalog, pieces = bundle.catalog, bundle.catalog.pieces().values()
    size, parts = sum(piece.size for piece in pieces) / (1 << 30), len({piece.part for piece in pieces})
    what = f"{counted(len(catalog.images), 'image')}, {counted(len(catalog.models), 'model')}"
    return [
        f"{folder}: {what}, {counted(len(catalog.encodings), 'encoding')}; {counted(files, 'file')} in "
        f"{counted(parts, 'part')}, {size:.1f} GiB, of which {bundle.fetched / (1 << 30):.1f} GiB were fetched now",
        "signed" if signed else "unsigned: whoever can write to it can change it; to sign it: --sign KEY",
        f"next, where the hosts are: set bundle.folder to its path, then: pyinfra {'INVENTORY'} deploy.py",
    ]


def verify(folder: Path, public_key: str | None) -> int:
    """Hash all of a bundle. Returns ERROR where a file's bytes are others."""
    folder = folder.expanduser().resolve()
    catalog = opened(folder, public_key)
    _say("the signature is right" if public_key else "its signature is not verified: bundle.public_key is not set")
    changed = list(changed_files(folder, catalog, lambda _: None))
    for path in changed:
        print(printable(f"rackwright: {path} holds other bytes than SHA256SUMS says"), file=sys.stderr)
    _say(
        f"{counted(len(catalog.pieces()), 'file')} verified"
        if not changed
        else f"next: copy {counted(len(changed), 'file')} again"
    )
    return done_if(not changed)


def _say(text: str) -> None:
    print(printable(text), flush=True)
