"""`scripts/real-gpu`: see its own text, or docs/how-to/real-gpu.md."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rackwright.messages import RackwrightError
from rackwright_lab.machine.paths import cache_root
from scripts.real_gpu import drafts, gpt_oss, hand_on, hang, lengths, pack, pair, record, sglang, story, tune
from scripts.real_gpu.story import Step

Story = Callable[..., Iterator[Step]]
LAB = "gpu"
STORIES: dict[str, Story] = {
    "n-grams": story.steps,
    "eagle3": drafts.steps,
    "tune": tune.steps,
    "lengths": lengths.steps,
    "hang": hang.steps,
    "hand-on": hand_on.steps,
    "two-gpus": drafts.both,
    "sglang": sglang.steps,
    "gpt-oss": gpt_oss.steps,
    "pair": pair.steps,
}
"""By their names; the first is run by default. `pair` needs two hosts, `two-gpus` a host with two GPUs."""
LAB_STEPS = ("lab up", "lab down")


def main() -> int:
    """Run the story or pack it; returns 0 when every step went as it should, else 1."""
    args = _parser().parse_args()
    try:
        return {"run": _run, "steps": _steps, "pack": _pack}[args.verb](args)
    except RackwrightError as error:
        print(f"real-gpu: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/real-gpu", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    run = verbs.add_parser("run", help="a whole deploy on this machine's own GPU, and its record")
    run.add_argument("steps", nargs="*", metavar="STEP", help="only these steps, by their names (all of them)")
    run.add_argument("--into", type=Path, default=Path("artefacts/real-gpu"), help="where logs and record go")
    run.add_argument("--host", type=int, default=None, metavar="N", help="on that host of a lab that is up, and stays")
    run.add_argument("--offline", action="store_true", help="install packages from what was packed")
    run.add_argument("--id", default=LAB, help=f"the lab's id ({LAB})")
    shown = verbs.add_parser("steps", help="print the steps and their commands")
    for one in (run, shown):
        _add_story(one)
    into = verbs.add_parser("pack", help="write what a machine without a network needs, in parts")
    into.add_argument("folder", type=Path, metavar="DIR")
    into.add_argument("--without-bench", action="store_true", help="leave out what `rackwright bench` alone needs")
    into.add_argument("--without-sglang", action="store_true", help="leave out what the story of SGLang alone needs")
    size = f"size of a part at most ({pack.PART_MIB} MiB)"
    into.add_argument("--part-mib", type=int, default=pack.PART_MIB, metavar="MIB", help=size)
    return parser


def _add_story(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--story", choices=tuple(STORIES), default="n-grams", help="which story (n-grams)")
    parser.add_argument("--pair", action="store_const", const="pair", dest="story", help="the same as --story pair")


def _chosen(args: argparse.Namespace) -> list[Step]:
    """Return the steps that are to run. Raises RackwrightError where a story takes all hosts."""
    tell = STORIES[args.story]
    if args.host is None:
        return list(tell(args.id, args.offline))
    if args.story not in ("eagle3", "tune", "lengths", "hang", "two-gpus", "sglang"):
        raise RackwrightError(f"--host: the story {args.story} takes all hosts of its lab: leave --host out")
    steps = tell(args.id, args.offline, args.host)
    return [step for step in steps if step.name not in LAB_STEPS]


def _run(args: argparse.Namespace) -> int:
    into = args.into.absolute()
    found = story.tell(_chosen(args), args.steps, args.id, into, args.offline, _say)
    page = record.write(found, into, record.DIFFERS_FOR_A_PAIR if args.story == "pair" else record.DIFFERS)
    print(page.read_text())
    print(f"the record: {page}\nlogs of every step are beside it")
    return 0 if all(one.ok for one in found) else 1


def _steps(args: argparse.Namespace) -> int:
    for step in STORIES[args.story](LAB, False):
        print(f"{step.name}: {shlex.join(step.words)}")
    return 0


def _pack(args: argparse.Namespace) -> int:
    what = pack.What(bench=not args.without_bench, sglang=not args.without_sglang, part_mib=args.part_mib)
    for part in pack.pack(args.folder.absolute(), cache_root(), _say, what):
        size = sum(path.stat().st_size for path in part.rglob("*"))
        print(f"{part}: {size / 1e6:.0f} MB")
    return 0


def _say(message: str) -> None:
    print(message, flush=True)


if __name__ == "__main__":
    sys.exit(main())
