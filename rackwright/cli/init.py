"""`rackwright init DIR`: a fresh site to edit, or `--update`: an old one brought to the installed version."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rackwright.exit_codes import ExitCode, done_if
from rackwright.init.bases import Bases
from rackwright.init.shipped import has_step_files, shipped_files, step_files
from rackwright.init.told_update import update_rows
from rackwright.init.updating import update_site
from rackwright.init.writing import write_file
from rackwright.messages import RackwrightError, counted, writing

HOST_VARS = Path("host_vars")


def add_parser(subparsers: Any) -> None:
    """Add `init` to the command line."""
    parser = subparsers.add_parser("init", help="make a fresh site to edit, or update one")
    parser.add_argument("directory", metavar="DIR")
    update = "bring a site to the installed version, with your own changes merged into its files"
    parser.add_argument("--update", action="store_true", help=update)
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Make or update the site, say what was kept and what to type next; returns 0, or 1 when files need a person."""
    site = Path(args.directory).expanduser()
    if args.update:
        return update(site)
    written, existing = make_site(site)
    for path in existing:
        print(f"kept {site / path}: it was there already")
    print(f"{site}: {counted(len(written), 'file')} written")
    print(f"\nNext:\n  cd {site}\n  edit inventory/b200.py and group_vars/b200.yml")
    deploy = "pyinfra inventory/b200.py deploy.py"
    print(f"  rackwright check inventory/b200.py\n  {deploy} --dry\n  {deploy}")
    return ExitCode.DONE


def make_site(site: Path) -> tuple[list[Path], list[Path]]:
    """Copy the shipped site; returns the paths written and those that were there, relative to it.

    Raises RackwrightError when the folder cannot be written.
    """
    contents = shipped_files()
    written = [path for path in contents if not (site / path).exists()]
    for path in written:
        write_file(site / path, contents[path])
    bases = Bases(site)
    bases.write({**bases.read(), **{path: contents[path] for path in written}})
    with writing(site / HOST_VARS):
        (site / HOST_VARS).mkdir(exist_ok=True)
    return written, [path for path in contents if path not in written]


def update(site: Path) -> int:
    """Bring a site to the installed version and say what became of each file; returns 1 when some need a person.

    Raises RackwrightError when the folder is not a site, or cannot be written.
    """
    if not (site / "deploy.py").exists():
        raise RackwrightError(f"{site} is not a site: it has no deploy.py; next: rackwright init {site}", code="RW1006")
    more = step_files() if has_step_files(site, Bases(site).read()) else {}
    done = update_site(site, {**shipped_files(), **more})
    print("\n".join(update_rows(site, done)))
    return done_if(not done.manual)
