"""`rackwright rebuild INVENTORY --limit HOST`: deploy a reinstalled host with the release that its group serves."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rackwright.adapter.run.poll import poll
from rackwright.adapter.ssh import rebuilt_hostkeys
from rackwright.adapter.ssh.client import line_to
from rackwright.adapter.ssh.rebuilt_hostkeys import HostKey
from rackwright.cli.drain import chosen
from rackwright.cli.inventories import add_choice, add_shared, data_of, one_of
from rackwright.cli.rollout import agreed
from rackwright.concerns.drained import Drained
from rackwright.exit_codes import ExitCode
from rackwright.inspect.peers import EndpointOfPeers, differences, lock_of, place_of
from rackwright.inspect.status.reading import Asked, HostStatus, parse
from rackwright.inspect.status.table import duration
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, ReadingError
from rackwright.rollout.forward_and_back import roll_out
from rackwright.rollout.launch import begin
from rackwright.rollout.maintenance.host_marks import drained_hosts
from rackwright.settings.inventory_groups import ALL
from rackwright.settings.ssh import known_hosts
from rackwright.sources.lockfile import Lock, load_lock, pinned, write_lock


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("rebuild", help="bring a reinstalled host back with the release of its group")
    add_choice(parser)
    what = "the new host key's, as `ssh-keygen -lf` prints it on the console; with --yes a changed key needs it"
    parser.add_argument("--fingerprint", metavar="SHA256:...", help=what)
    parser.add_argument(
        "--as-settings",
        action="store_true",
        help="deploy what the settings ask for, although its group serves something else",
    )
    add_shared(parser, "yes")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Compare, ask, accept the key, deploy, prove; returns the exit status. Raises RackwrightError."""
    extra_data = data_of(args)
    entries, hosts = chosen(args)
    entry = one_of(args, hosts)
    together = served_with(entries, entry)
    for host, mark in drained_hosts(together).items():
        refuse_drained(host, {host: mark})
    root = site_root(Path(args.inventory).expanduser()).absolute()
    pins = _pins(root, entry, _peers(entries, entry), args)
    target = known_hosts.place_of(entry.name, entry.data)
    keys = _new_keys(entry, target, args.fingerprint, args.yes)
    more = [
        *(["accepts its new key"] if keys else []),
        *([f"adds to {entry.settings.paths.lock_file}"] if pins else []),
    ]
    others = [one.name for one in together if one is not entry]
    more += [f"restarts the endpoint of {', '.join(others)}, who serve with it"] if others else []
    if not args.yes and not agreed(f"This deploys {entry.name} again{''.join(f', and {text}' for text in more)}."):
        print("nothing was done")
        return ExitCode.ERROR
    if keys:
        file = rebuilt_hostkeys.accept(target, keys, f"{datetime.now(UTC):%Y-%m-%d %H:%M}")
        print(f"{file}: has the new key of {target.entry}; the old lines stay as comments")
    if pins:
        write_lock(root, pins, entry.settings.paths.lock_file)
    return _deploy(args.inventory, root, together, entry, extra_data)


def served_with(entries: Sequence[InventoryHost], entry: InventoryHost) -> list[InventoryHost]:
    """Return the hosts that serve an endpoint together with a host, and the host itself: they are deployed together."""
    group = entry.settings.group
    names = group.hosts if group else (entry.name,)
    return [one for one in entries if one.name in names]


def refuse_drained(host: str, marks: Mapping[str, Drained]) -> None:
    """Raise RackwrightError for a host that still has its mark: it was not reinstalled, and no run switches it."""
    if mark := marks.get(host):
        raise RackwrightError(
            f"{host} is {mark}; nothing was done; next: rackwright undrain INVENTORY --limit {host}, then the same "
            "command",
            code="RW1032",
        )


# -- the same release as the group


def _peers(entries: Sequence[InventoryHost], entry: InventoryHost) -> list[InventoryHost]:
    """Return the other hosts of the strongest group that has any."""
    for group in (*reversed(entry.groups), ALL):
        found = [one for one in entries if (group in one.groups or group == ALL) and one.name != entry.name]
        if found:
            return found
    return []


def _pins(root: Path, entry: InventoryHost, peers: Sequence[InventoryHost], args: argparse.Namespace) -> Lock | None:
    """Return the host's lock with its group's bytes where it named none yet; None when there is nothing to add.

    Without them a tag or a branch would mean other bytes to this host than it did to its group.
    Raises RackwrightError to hold.
    """
    wanted = Asked(entry.settings)
    statuses = _statuses(peers, wanted)
    together = entry.settings.group.hosts if entry.settings.group else ()
    places = {name: place_of(name, statuses, together) for name in wanted.endpoints}
    lock_file, group = load_lock(root, entry.settings.paths.lock_file), lock_of(wanted.endpoints, places)
    images, models = {**group.images, **lock_file.images}, {**group.models, **lock_file.models}
    lock = replace(lock_file, images=images, models=models)
    found = differences(Asked(pinned(entry.settings, lock)), places)
    if found and not args.as_settings:
        raise RackwrightError(
            "\n".join(found) + f"\n{entry.name} is left as it is; next: roll the settings out to its group first, or "
            f"rackwright rebuild {args.inventory} --limit {entry.name} --as-settings",
            code="RW1011",
        )
    print("\n".join(found or _peer_lines(places)))
    if found or lock == lock_file:
        return None
    added = [*(lock.images.keys() - lock_file.images.keys()), *(lock.models.keys() - lock_file.models.keys())]
    print(
        f"{entry.settings.paths.lock_file}: does not pin {', '.join(sorted(added))} yet; it gets what the group serves"
    )
    return lock


def _statuses(peers: Sequence[InventoryHost], wanted: Asked) -> dict[str, HostStatus]:
    """Return the status of the peers that can be read."""
    found: dict[str, HostStatus] = {}
    for name, reply in poll(peers, lambda _: wanted.script).items():
        try:
            if not reply.trouble:
                found[name] = parse(reply.lines)
        except ReadingError:
            continue
    return found


def _peer_lines(places: Mapping[str, EndpointOfPeers]) -> Iterator[str]:
    for name, endpoint in places.items():
        hosts = [host for one in endpoint.served for host in one.hosts]
        if hosts:
            more = " and more" if len(hosts) > 3 else ""
            yield f"endpoint {name}: the same release as on {', '.join(hosts[:3])}{more}"
        else:
            yield f"endpoint {name}: no host of its group serves it, so it gets what the settings ask"


# -- the host key


def _new_keys(
    entry: InventoryHost, target: known_hosts.HostKeyPlace, fingerprint: str | None, yes: bool
) -> list[HostKey]:
    """Return the keys to accept; none when the host still has a known one. Raises RackwrightError for a wrong key."""
    offered = rebuilt_hostkeys.offered(entry.name, target, lambda: line_to(entry.data, target))
    trusted = rebuilt_hostkeys.trusted(target)
    for origin, keys in (("known  ", trusted), ("offered", offered)):
        for key in keys:
            print(f"{entry.name}: {origin} {key.fingerprint} ({key.kind})")
    if fingerprint:
        return _compared(entry.name, trusted, offered, fingerprint)
    if any(key in trusted for key in offered):
        print(f"{entry.name}: its key is the known one")
        return []
    if yes:
        raise RackwrightError(
            f"{entry.name}: its key is a new one, and -y accepts it only with --fingerprint; nothing was changed; "
            "next, on its console: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub",
            code="RW1012",
        )
    return offered


def _compared(host: str, trusted: Sequence[HostKey], offered: Sequence[HostKey], fingerprint: str) -> list[HostKey]:
    """Only the key that was compared is accepted."""
    keys = [key for key in offered if key.fingerprint == fingerprint.rstrip("=")]
    if not keys:
        raise RackwrightError(
            f"{host}: none of the keys that it offers has the fingerprint {fingerprint}: another machine may answer at "
            "its address; nothing was changed",
            code="RW1013",
        )
    return [key for key in keys if key not in trusted]


# -- the deploy


def _deploy(
    inventory: str, root: Path, together: Sequence[InventoryHost], entry: InventoryHost, extra_data: Mapping[str, Any]
) -> int:
    begun = time.monotonic()
    deploy = root / "deploy.py"
    if not deploy.exists():
        raise RackwrightError(
            f"{deploy} is not there, so nothing can be deployed; next: rackwright init DIR", code="RW1014"
        )
    level = entry.settings.diagnosis.rebuild
    data = {"gate.level": "full", "rollout.bake": 0, "diagnosis.before_serving": level, **extra_data}
    started = begin(inventory, root, together, "rebuild", deploy=str(deploy), data=data)
    if why := started.vetoed():
        return started.end(ExitCode.ERROR, f"{why}; nothing was done")
    code, text = roll_out(started, deploy, data)
    if code == ExitCode.DONE:
        text = f"{entry.name} is back in its place, {duration(int(time.monotonic() - begun))} from bare OS to answered"
    return started.end(code, text)
