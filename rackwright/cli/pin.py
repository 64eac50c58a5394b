"""`rackwright pin INVENTORY`: write down what tags, branches and profiles are now, so that all hosts get the same."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rackwright.adapter.run.session import Connected, chosen_hosts, connected
from rackwright.bundle.image_lists import ImageLists
from rackwright.cli.inventories import add_limit
from rackwright.concerns.image import IMAGE
from rackwright.concerns.models import MODELS
from rackwright.concerns.read_host import read_concerns
from rackwright.exit_codes import done_if
from rackwright.hostside.fetch_model.run import gib
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, counted, printable
from rackwright.plan.concern import HostReading
from rackwright.sources.errors import SourceError
from rackwright.sources.lockfile import ImageFiles, Lock, joined, load_lock, recorded, write_lock
from rackwright.sources.profile_lock import NamedProfile, named_profiles
from rackwright.sources.resolve import Resolver

CONCERNS = (IMAGE, MODELS)
Named = tuple[str, Lock]
"""A host's name, and its lock."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "pin", help="pin image digests, model commits and profiles: ask registry and hub, or the hosts"
    )
    add_limit(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--profiles", action="store_true", help="take this version's profiles alone, and ask no server")
    what.add_argument(
        "--from-hosts", action="store_true", help="take what the hosts have verified, instead of what the names are now"
    )
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Add what is found to the lock file of each host; entries of others stay. Returns the exit status."""
    root = site_root(Path(arguments.inventory))
    as_shipped = not arguments.from_hosts  # what hosts have was proven with the profile of the lock file
    entries = chosen_hosts(arguments.inventory, arguments.limit, arguments.only, profiles_as_shipped=as_shipped)
    try:
        found = _found(arguments, entries)
    except SourceError as error:
        next_step = f"rackwright pin {arguments.inventory} --from-hosts"
        raise RackwrightError(
            f"{error.text}\nnothing was written; to pin what the hosts have instead: {next_step}", code=error.code
        ) from None
    files = {entry.name: entry.settings.paths.lock_file for entry in entries}
    profiles = named_profiles(root, [entry.settings for entry in entries])
    taken = [one for one in profiles if one.shipped and (as_shipped or one.locked is None)]
    written = [
        _write(
            root,
            file,
            joined(one for one in found if files[one[0]] == file),
            [one for one in taken if one.lock_file == file],
        )
        for file in _once(files)
    ]
    if not any(written):
        print(_nothing(arguments))
    elif any(one.changes for one in taken):
        print(f"next: rackwright plan {arguments.inventory}")
    return done_if(any(written))


def _found(arguments: argparse.Namespace, entries: Sequence[InventoryHost]) -> list[Named]:
    if arguments.profiles:
        return []
    return _from_hosts(entries) if arguments.from_hosts else _resolved(entries)


def _nothing(arguments: argparse.Namespace) -> str:
    if arguments.profiles:
        return "no host names a profile; next: rackwright profiles list"
    return f"no host has an image or a model yet; next: pyinfra {arguments.inventory} deploy.py"


def _once(files: dict[str, str]) -> list[str]:
    return list(dict.fromkeys(files.values()))


def _write(root: Path, file: str, found: Lock, profiles: Sequence[NamedProfile]) -> bool:
    if not (found.images or found.image_files or found.models or profiles):
        return False
    before = load_lock(root, file)
    after = replace(
        before,
        images={**before.images, **found.images},
        image_files=_image_files(before, found),
        models={**before.models, **found.models},
        profiles={**before.profiles, **{one.name: one.shipped for one in profiles if one.shipped}},
    )
    path = write_lock(root, after, file)
    for profile in profiles:
        print("\n".join(_profile_lines(profile)))
    for name, digest in sorted(found.images.items()):
        print(printable(f"{name}  {digest}{_previous(before.images.get(name), digest)}"))
    for digest, files in sorted(found.image_files.items()):
        size = gib(sum(one.size for one in files.values()))
        print(f"{digest[:19]}  {counted(len(files), 'file')}, {size}, which hosts hand on")
    for name, model in sorted(found.models.items()):
        was = before.models[name].commit if name in before.models else None
        print(printable(f"{name}  {model.commit}  {counted(len(model.files), 'file')}{_previous(was, model.commit)}"))
    print(f"written to {path}")
    return True


def _image_files(before: Lock, found: Lock) -> ImageFiles:
    """Return the lists of images: an entry of a digest that a tag no longer is goes."""
    moved = set(before.images.values()) - set({**before.images, **found.images}.values())
    stays = {digest: files for digest, files in before.image_files.items() if digest not in moved}
    return {**stays, **found.image_files}


def _profile_lines(profile: NamedProfile) -> list[str]:
    """Return what a profile is from now on, and each key in which it was another."""
    if profile.locked is None:
        return [f"profile {profile.name}  kept from now on"]
    if not profile.changes:
        return [f"profile {profile.name}  as it was"]
    return [f"profile {profile.name}  {counted(len(profile.changes), 'key')} changed:"] + [
        f"  {change}" for change in profile.changes
    ]


def _previous(before: str | None, now: str) -> str:
    return f"  (was {before})" if before and before != now else ""


def _resolved(entries: Sequence[InventoryHost]) -> list[Named]:
    resolver, lists = Resolver(), ImageLists()
    found = []
    for entry in entries:
        lock = resolver.lock(entry.settings)
        found.append((entry.name, replace(lock, image_files=lists.of(entry.settings, lock))))
    return found


def _from_hosts(entries: Sequence[InventoryHost]) -> list[Named]:
    with connected(entries) as hosts:
        return [(host.host.name, recorded(host.entry.settings, _read(host))) for host in hosts]


def _read(connection: Connected) -> HostReading:
    return read_concerns(connection.host, connection.entry.settings, CONCERNS)
