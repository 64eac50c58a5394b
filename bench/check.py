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


def main() -> int:
    """Measure and print; returns 0."""
    args = _parser().parse_args()
    for number in args.hosts:
        with tempfile.TemporaryDirectory() as folder:
            site = _site(Path(folder), number)
            rounds = [[_check(checkout, site) for checkout in args.of] for _ in range(args.rounds)]
        found = [median(own) for own in zip(*rounds, strict=True)]
        print(f"{number} hosts: {', '.join(_told(*pair, found[0]) for pair in zip(args.of, found, strict=True))}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", action="append", type=Path, required=True, metavar="CHECKOUT")
    parser.add_argument("--hosts", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--rounds", type=int, default=3)
    return parser


def _told(checkout: Path, seconds: float, first: float) -> str:
    return f"{checkout} {seconds:.2f} s ({seconds / first:.2f} x)"


def _site(folder: Path, hosts: int) -> Path:
    """Make a site of the shipped profile `b200`, with an Ansible inventory of so many hosts."""
    for part in PARTS:
        source = SITE / part
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / part)
    (folder / "hosts.ini").write_text("\n".join(["[b200]", *_lines(hosts), ""]))
    return folder


def _lines(hosts: int) -> Iterator[str]:
    for number in range(hosts):
        address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        yield f"n{number} ansible_host={address} ansible_user=ubuntu"


def _check(checkout: Path, site: Path) -> float:
    """Run one check; returns the CPU seconds of it and of what it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    paths = {"PYTHONPATH": str(checkout.resolve()), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-m", "rackwright", "check", "hosts.ini"]
    subprocess.run(command, cwd=site, env=os.environ | paths, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
