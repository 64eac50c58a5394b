"""`scripts/real-gpu`: see its own text, or docs/how-to/real-gpu.md."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from rackwright.messages import RackwrightError
from rackwright_lab.machine.paths import cache_root
from scripts.real_gpu import pack, pair, record, story

LAB = "gpu"
PAIR = "two hosts with one of this machine's GPUs each serve together"


def main() -> int:
    """Run the story or pack it; returns 0 when every step went as it should, else 1."""
    parser = argparse.ArgumentParser(prog="scripts/real-gpu", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    run = verbs.add_parser("run", help="a whole deploy on this machine's own GPU, and its record")
    run.add_argument("steps", nargs="*", metavar="STEP", help="only these steps, by their names (all of them)")
    run.add_argument("--into", type=Path, default=Path("artefacts/real-gpu"), help="where logs and record go")
    run.add_argument("--pair", action="store_true", help=PAIR)
    run.add_argument("--offline", action="store_true", help="install packages from what was packed")
    run.add_argument("--id", default=LAB, help=f"the lab's id ({LAB})")
    shown = verbs.add_parser("steps", help="print the steps and their commands")
    shown.add_argument("--pair", action="store_true", help=PAIR)
    into = verbs.add_parser("pack", help="write what a machine without a network needs, in parts")
    into.add_argument("folder", type=Path, metavar="DIR")
    into.add_argument("--without-bench", action="store_true", help="leave out what `rackwright bench` alone needs")
    args = parser.parse_args()
    try:
        return {"run": _run, "steps": _steps, "pack": _pack}[args.verb](args)
    except RackwrightError as error:
        print(f"real-gpu: {error}", file=sys.stderr)
        return 1


def _run(args: argparse.Namespace) -> int:
    into = args.into.absolute()
    steps, differs = (pair.steps, record.DIFFERS_FOR_A_PAIR) if args.pair else (story.steps, record.DIFFERS)
    found = story.tell(steps(args.id, args.offline), args.steps, args.id, into, args.offline, _say)
    page = record.write(found, into, differs)
    print(page.read_text())
    print(f"the record: {page}\nlogs of every step are beside it")
    return 0 if all(one.ok for one in found) else 1


def _steps(args: argparse.Namespace) -> int:
    for step in (pair if args.pair else story).steps(LAB, offline=False):
        print(f"{step.name}: {shlex.join(step.words)}")
    return 0


def _pack(args: argparse.Namespace) -> int:
    for part in pack.pack(args.folder.absolute(), cache_root(), _say, not args.without_bench):
        size = sum(path.stat().st_size for path in part.iterdir())
        print(f"{part}: {size / 1e6:.0f} MB")
    return 0


def _say(message: str) -> None:
    print(message, flush=True)


if __name__ == "__main__":
    sys.exit(main())
