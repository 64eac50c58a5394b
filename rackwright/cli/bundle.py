"""`rackwright bundle INVENTORY --out DIR`: everything that a deploy fetches, in one folder for a closed network."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from rackwright import __version__
from rackwright.adapter.run.session import chosen_hosts
from rackwright.bundle.apt_root import system_of
from rackwright.bundle.checking import changed_files, opened
from rackwright.bundle.contents import Contents, contents_of
from rackwright.bundle.signature import SUMS, program_for, sign
from rackwright.bundle.store import Store
from rackwright.bundle.systems import BundledSystems, systems_of
from rackwright.bundle.writing import BundleWriter, written_at
from rackwright.cli.inventories import add_limit
from rackwright.exit_codes import ExitCode, done_if
from rackwright.hostside.fetch_model.run import gib
from rackwright.inspect.systems import systems_asked
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, coded, counted, few, printable
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
    parser.add_argument(
        "--system",
        action="append",
        default=[],
        metavar="NAME",
        help="a further system, as debian-12-amd64, whose packages come along; may be repeated",
    )
    parser.add_argument(
        "--ask-hosts",
        action="store_true",
        help="log in at hosts whose settings lack hardware.system, and ask for their system",
    )
    parser.add_argument("--without-tool", action="store_true", help="leave Rackwright's own wheels out")
    parser.add_argument("--sign", type=Path, metavar="KEY", help="minisign's secret key to sign it with")
    parser.set_defaults(handler=run)


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)([MGT])", text)
    if not found or not int(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size, as 500M, 50G or 2T")
    return int(found[1]) * UNITS[found[2]]


def run(arguments: argparse.Namespace) -> int:
    """Write a bundle, or verify one. Returns the exit status."""
    entries = chosen_hosts(arguments.inventory, arguments.limit, arguments.only)
    if arguments.verify:
        keys = [entry.settings.bundle.public_key for entry in entries if entry.settings.bundle.public_key]
        systems = systems_of({entry.name: entry.settings for entry in entries}, arguments.system, MACHINES, {})
        return verify(arguments.verify, keys[0] if keys else None, systems)
    locks = Locks(site_root(Path(arguments.inventory)))
    settings = {entry.name: locked(entry.settings, locks.of(entry.settings)) for entry in entries}
    for name in arguments.system:
        system_of(name)
    contents = contents_of(settings, MACHINES)
    contents.refuse_unpinned(arguments.inventory)
    answers = _answers(entries) if arguments.ask_hosts else {}
    return write(arguments, contents, systems_of(settings, arguments.system, MACHINES, answers))


def _answers(entries: Sequence[InventoryHost]) -> Mapping[str, str]:
    """Return the systems of the hosts whose settings name none, by asking them."""
    found = systems_asked([entry for entry in entries if entry.settings.hardware.system is None])
    for system in dict.fromkeys(found.values()):
        hosts = [host for host, one in found.items() if one == system]
        text = f"to bundle without asking: hardware: {{system: {system.rpartition('-')[0]}}} in their group_vars"
        _say(f"{system}: {few(hosts)}; {text}")
    return found


def write(arguments: argparse.Namespace, contents: Contents, systems: BundledSystems) -> int:
    """Write a bundle of these contents."""
    folder: Path = arguments.out.expanduser().resolve()
    if not written_at(folder):
        text = f"{folder} holds other files, and no bundle; nothing was written; next: --out with a new folder"
        raise RackwrightError(text, code="RW3803")
    key = arguments.sign.expanduser().resolve() if arguments.sign else None
    if key:
        program_for(key)
    bundle = BundleWriter(Store(folder, arguments.part_size), _say)
    bundle.begin()
    for name, hosts in systems.hosts.items():
        bundle.add_packages(name, hosts)
    bundle.fill(contents)
    if not arguments.without_tool:
        bundle.add_tool()
    files = bundle.close()
    if key:
        sign(folder, key, f"bundle of rackwright {__version__}")
    for row in _summary(bundle, folder, files, bool(key), systems.unknown):
        _say(row)
    return ExitCode.DONE


def _summary(bundle: BundleWriter, folder: Path, files: int, signed: bool, unknown: Sequence[str]) -> Sequence[str]:
    catalog, pieces = bundle.catalog, bundle.catalog.pieces().values()
    size, parts = gib(sum(piece.size for piece in pieces)), len({piece.part for piece in pieces})
    what = f"{counted(len(catalog.images), 'image')}, {counted(len(catalog.models), 'model')}"
    return [
        f"{folder}: {what}, {counted(len(catalog.encodings), 'encoding')}; {counted(files, 'file')} in "
        f"{counted(parts, 'part')}, {size}, of which {gib(bundle.fetched)} were fetched now",
        *about_packages(catalog.packages, unknown),
        "signed" if signed else "unsigned: a change on the way cannot be seen; to sign it: --sign KEY",
        "next, where the hosts are: set bundle.folder to its path, then: pyinfra INVENTORY deploy.py",
    ]


def about_packages(packages: Collection[str], unknown: Sequence[str]) -> Iterator[str]:
    """Yield for which systems packages came along, and hosts for which that is not known."""
    if packages:
        yield f"packages for {', '.join(sorted(packages))}"
    if unknown:
        text = "whose system is not known, and which need them where they lack Docker or the toolkit"
        way = "hardware: {system: debian-12} in their group_vars, or --ask-hosts, or --system debian-12-amd64"
        yield f"without packages for {few(unknown)}, {text}; to have them: {way}"


def verify(folder: Path, public_key: str | None, systems: BundledSystems) -> int:
    """Hash all of a bundle. Returns ERROR where a file's bytes are others. systems: those of the hosts."""
    folder = folder.expanduser().resolve()
    catalog = opened(folder, public_key)
    _say("the signature is right" if public_key else "its signature is not verified: bundle.public_key is not set")
    if lacking := [name for name in systems.hosts if name not in catalog.packages]:
        _say(f"without packages for {few(lacking)}: hosts need them where they lack Docker or the toolkit")
    changed = list(changed_files(folder, catalog, lambda _: None))
    for path in changed:
        print(
            printable(coded("RW3893", f"{path} holds other bytes than {SUMS} says; next: copy it again")),
            file=sys.stderr,
        )
    if not changed:
        _say(f"{counted(len(catalog.files()), 'file')} verified")
    return done_if(not changed)


def _say(text: str) -> None:
    print(printable(text), flush=True)
