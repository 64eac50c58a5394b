"""CPU seconds of `rackwright check` over hosts with equal settings, of several checkouts in turn.

`python -m bench.check --of BEFORE --of . --hosts 100 1000 5000 --rounds 3`: a checkout is a folder with `rackwright/`.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

SITE = Path(__file__).parents[1]
PARTS = ("deploy.py", "tasks", "group_vars", "templates")
INVENTORIES = ("hosts.ini", "inventory/b200.py")
"""An Ansible inventory, read by ansible-inventory (a second at least), and one of pyinfra's kind."""
PYTHON = """\
from rackwright.inventory import build

globals().update(build(__file__, {{"b200": {entries!r}}}))
"""


def main() -> int:
    """Measure and print; returns 0."""
    args = _parser().parse_args()
    for number in args.hosts:
        with tempfile.TemporaryDirectory() as folder:
            site = _site(Path(folder), number)
            rounds = [[_check(checkout, site, args.inventory) for checkout in args.of] for _ in range(args.rounds)]
        found = [median(seconds) for seconds in zip(*rounds, strict=True)]
        print(f"{number} hosts: {', '.join(_told(*pair, found[0]) for pair in zip(args.of, found, strict=True))}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", action="append", type=Path, required=True, metavar="CHECKOUT")
    parser.add_argument("--hosts", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--inventory", choices=INVENTORIES, default=INVENTORIES[0])
    return parser


def _told(checkout: Path, seconds: float, first: float) -> str:
    return f"{checkout} {seconds:.2f} s ({seconds / first:.2f} x)"


def _site(folder: Path, hosts: int) -> Path:
    """Make a site of the shipped profile `b200`, with both inventories of so many hosts."""
    for part in PARTS:
        source = SITE / part
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / part)
    addresses = dict(_addresses(hosts))
    lines = [f"{name} ansible_host={address} ansible_user=ubuntu" for name, address in addresses.items()]
    (folder / "hosts.ini").write_text("\n".join(["[b200]", *lines, ""]))
    entries = [(name, {"ssh_hostname": address, "ssh_user": "ubuntu"}) for name, address in addresses.items()]
    (folder / "inventory").mkdir()
    (folder / "inventory/b200.py").write_text(PYTHON.format(entries=entries))
    return folder


def _addresses(hosts: int) -> Iterator[tuple[str, str]]:
    for number in range(hosts):
        yield f"n{number}", f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def _check(checkout: Path, site: Path, inventory: str) -> float:
    """Run one check; returns the CPU seconds of it and of what it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    folders = (checkout.resolve(), checkout.resolve() / "packages" / "engines")
    paths = {"PYTHONPATH": os.pathsep.join(map(str, folders)), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-m", "rackwright", "check", inventory]
    subprocess.run(command, cwd=site, env=os.environ | paths, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
