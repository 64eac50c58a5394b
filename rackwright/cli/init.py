"""`rackwright init DIR`: a fresh site of about ten files, or `--update`: a site brought to the installed version."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rackwright.adapter.prompt import answer_to
from rackwright.exit_codes import done_if
from rackwright.init.bases import Bases
from rackwright.init.choices import Choices, best, choices
from rackwright.init.fresh import followed_files
from rackwright.init.machine import Machine, distinct
from rackwright.init.making import (
    Made,
    fresh_site,
    inventory_texts,
    lab_files,
    make_site,
    optional_files,
    refuse_other_lab,
    site_texts,
)
from rackwright.init.questions import Ask, ask_hosts, ask_machine, ask_profile
from rackwright.init.reading import read_machines
from rackwright.init.shipped import has_step_files, shipped_files, step_files
from rackwright.init.telling import edits, next_commands, not_added, of_machines, retained, tree
from rackwright.init.typed_host import TypedHost, typed_host
from rackwright.init.update_report import update_rows
from rackwright.init.updating import update_site
from rackwright.messages import RackwrightError, counted
from rackwright.profiles import catalog
from rackwright_engines.nearest import nearest

LABS_PROFILE = "b200"
"""The profile of the machines that the lab's hosts look like, and theirs without another one."""


def add_parser(subparsers: Any) -> None:
    """Add `init` to the command line."""
    parser = subparsers.add_parser("init", help="make a fresh site to edit, or update one")
    parser.add_argument("directory", metavar="DIR")
    what = "what the hosts serve (rackwright profiles list); again for other hosts"
    parser.add_argument("--profile", action="append", default=[], metavar="NAME", help=what)
    host = "a host, whose GPUs, driver and system are read over SSH; again for others"
    parser.add_argument("--host", action="append", default=[], metavar="[USER@]ADDRESS", help=host)
    yes = "do not ask, and take the first profile that fits; an unknown host key is never taken"
    parser.add_argument("-y", "--yes", action="store_true", help=yes)
    parser.add_argument("--ansible", action="store_true", help="with inventory/ansible.py, for an Ansible inventory")
    lab = "with inventory/lab.py, for hosts to practise on: they serve the first profile, or b200"
    parser.add_argument("--lab", action="store_true", help=lab)
    update = "bring a site to the installed version, with your own changes merged into its files"
    parser.add_argument("--update", action="store_true", help=update)
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Make or update the site and say what to do next; returns 0, or 1 when files or hosts need a person.

    Raises RackwrightError when no operator can be asked for what is missing.
    """
    site = Path(args.directory).expanduser()
    if args.update:
        return update(site)
    try:
        return make(site, args)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; no file of the site was written") from None
    except EOFError:
        raise _unanswered(site) from None


# -- a fresh site


def make(site: Path, args: argparse.Namespace) -> int:
    """Ask for what the options do not say, read the hosts, and write what the site lacks."""
    if args.ansible and not (args.profile or args.host or args.lab) and (site / "deploy.py").exists():
        return _write(site, args, Choices(()))
    if args.lab:
        lab_files()
        args.profile = args.profile or [LABS_PROFILE]
    for name in args.profile:
        _refuse_unknown(name)
    hosts = typed_hosts(args.host)
    ask = answer_to if sys.stdin.isatty() and not args.yes else None
    if not args.profile and ask is None and not (hosts and args.yes):
        raise _unanswered(site)
    if not (hosts or args.profile) and ask:
        hosts = ask_hosts(ask)
    machines = read(hosts, ask)
    return _write(site, args, choices(args.profile or _profiles(site, machines, ask), machines))


def _write(site: Path, args: argparse.Namespace, found: Choices) -> int:
    fresh = fresh_site(found, args.lab, args.ansible)
    if args.lab:
        refuse_other_lab(site, fresh)
    made = make_site(site, fresh)
    print("\n".join(_told(site, made, found, args.lab)))
    return done_if(not found.left_out)


def _refuse_unknown(profile: str) -> None:
    if profile not in catalog.names():
        found = f"no profile is called {profile!r}{nearest(profile, catalog.names())}"
        raise RackwrightError(f"{found}; nothing was written; next: rackwright profiles list", code="RW1092")


def typed_hosts(texts: Sequence[str]) -> list[TypedHost]:
    """Return the hosts of the command line. Raises RackwrightError for other words, and for a host given twice."""
    hosts = list(map(typed_host, texts))
    names = [host.name for host in hosts]
    for name in names:
        if names.count(name) > 1:
            raise RackwrightError(
                f"--host {name} is given twice; next: the same command with one of them", code="RW1082"
            )
    return hosts


def read(hosts: Sequence[TypedHost], ask: Ask | None) -> dict[TypedHost, Machine]:
    """Read the hosts, and say what each is."""
    if not hosts:
        return {}
    machines = read_machines(hosts, ask)
    print("\n".join(of_machines(machines)), flush=True)
    return machines


def _profiles(site: Path, machines: Mapping[TypedHost, Machine], ask: Ask | None) -> list[str]:
    """Return a profile for each kind of machine, or for what a person says that the hosts are."""
    if ask is None:
        found = list(best(machines.values()))
        if not found:
            raise _no_profile_for(site, list(machines))
        return found
    kinds = distinct(machines.values())
    if not kinds:
        names = ask_machine(ask)
        return [ask_profile(ask, names, catalog.profile(names[0]).machine)]
    texts = {machine.fitting: f"{machine.gpus} x {machine.gpu}" for machine in machines.values()}
    return [ask_profile(ask, names, texts[names]) for names in kinds]


def _no_profile_for(site: Path, hosts: Sequence[TypedHost]) -> RackwrightError:
    typed = " --host ".join(host.typed for host in hosts)
    text = "no profile can be chosen by these hosts, as the lines above say; nothing was written; next"
    return RackwrightError(
        f"{text}: repair it, or rackwright init {site} --host {typed} --profile NAME; names: rackwright profiles list",
        code="RW1416",
    )


def _unanswered(site: Path) -> RackwrightError:
    text = "no profile is chosen, and no operator can be asked here; nothing was written; next"
    return RackwrightError(
        f"{text}: rackwright init {site} --profile NAME (rackwright profiles list), or --host USER@ADDRESS --yes",
        code="RW1052",
    )


def _told(site: Path, made: Made, found: Choices, lab: bool) -> Iterator[str]:
    yield from retained(site, made.existing)
    number = len(made.yours)
    yield (
        f"\n{site}: {counted(number, 'file')} written, yours to edit"
        if number
        else f"\n{site}: nothing new was written"
    )
    yield from tree(made.written, found)
    yield from not_added(site, inventory_texts(site, made), found)
    rows = [] if lab else list(edits(site_texts(site, made), found))
    yield from ["\nEdit:", *rows] if rows else []
    if inventories := ["lab"] if lab else [*found.inventories]:
        yield "\nNext:"
        yield from next_commands(site, inventories, found.groups[0].profile if lab else None)


# -- an older site


def update(site: Path) -> int:
    """Bring a site to the installed version and say what became of each file; returns 1 when some need a person.

    Raises RackwrightError when the folder is not a site, or cannot be written.
    """
    if not (site / "deploy.py").exists():
        raise RackwrightError(f"{site} is not a site: it has no deploy.py; next: rackwright init {site}", code="RW1006")
    done = update_site(site, _now(site))
    print("\n".join(update_rows(site, done)))
    return done_if(not done.manual)


def _now(site: Path) -> dict[Path, bytes]:
    """Return what this version ships for a site: for one of 0.1, all that such sites have."""
    bases = Bases(site)
    before = bases.read()
    if not (bases.is_tree or has_step_files(site, before)):
        return {**followed_files(), **optional_files(before)}
    added = {path: text for path, text in followed_files().items() if path in before}
    return {**added, **shipped_files(), **(step_files() if has_step_files(site, before) else {})}
