"""Races fetchers on lab hosts: `python -m bench.supply [--hosts 32] [--size 256MiB]`, as root.

What FILE holds already is not measured again, so a run that was ended is taken up by the next.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.supply import cells, ground, plot, report
from bench.supply.engines import ENGINES
from bench.supply.race import MOST, Track
from rackwright_lab import Host, Lab
from rackwright_lab.machine.progress import Progress

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "bench/figures/supply.json"
PICTURE = ROOT / "docs/pictures/supply.svg"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is missing, and print the table. Returns 1 where a host did not get its file without a fault."""
    options = _options(argv)
    # Ended by a signal it ends its lab, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    results = cells.read(options.out)
    wanted = [cell for cell in _plan(options) if cell not in {result.cell for result in results}]
    if wanted and not options.show:
        with _hosts(options.id, options.hosts, options.memory) as hosts:
            for result in _measured(hosts, wanted, options.most):
                results.append(result)
                cells.write(options.out, results)
    print("\n".join(report.tables(results)))
    if options.picture:
        options.picture.write_text(plot.picture(results))
    chosen = [result for result in results if result.cell in set(_plan(options))]
    return int(any(result.cell.fault == cells.NO_FAULT and result.last is None for result in chosen))


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=32, metavar="N", help="members; the origin is one more (32)")
    parser.add_argument("--size", type=cells.size_of, default="256MiB", metavar="SIZE", help="of the file (256MiB)")
    parser.add_argument("--engines", nargs="+", choices=FLEETS, default=FLEETS, metavar="NAME", help=", ".join(FLEETS))
    parser.add_argument("--links", type=float, nargs="+", default=[1.0, 4.0], metavar="X", help="times the origin's")
    parser.add_argument("--faults", nargs="+", choices=cells.FAULTS, default=["none"], help="one member each (none)")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="(1)")
    parser.add_argument(
        "--most", type=float, default=MOST, metavar="X", help="times one host's time that a cell may take"
    )
    parser.add_argument("--out", type=Path, default=KEPT, metavar="FILE", help="results, as JSON")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the results, as SVG")
    parser.add_argument("--show", action="store_true", help="measure nothing: table and picture of what FILE has")
    parser.add_argument("--memory", action="store_true", help="hosts' disks in memory, where it has room")
    parser.add_argument("--id", default="supply", help="of the lab; one that is up stays up")
    return parser.parse_args(argv)


FLEETS = [name for name in ENGINES if name != cells.ONE_HOST]


def _plan(options: argparse.Namespace) -> list[cells.Cell]:
    return list(cells.plan(options.engines, options.hosts, options.size, options.links, options.faults, options.rounds))


@contextmanager
def _hosts(lab_id: str, members: int, in_memory: bool) -> Iterator[list[Host]]:
    lab = Lab.open(lab_id, Progress())
    was_up = lab.is_up
    try:
        yield lab.up(members + 1, members + 1, packages=ground.PACKAGES, in_memory=in_memory)[: members + 1]
    finally:
        if not was_up:
            lab.down()


def _measured(hosts: Sequence[Host], wanted: Sequence[cells.Cell], most: float) -> Iterator[cells.Result]:
    ground.furnish(hosts)
    if any(cell.engine == "libtorrent 2.1" for cell in wanted):
        ground.install_libtorrent(hosts[1:])
    track = Track(hosts)
    for number, cell in enumerate(wanted, 1):
        result = track.measure(cell, most)
        print(f"{number} of {len(wanted)}: {report.sentence(result)}", file=sys.stderr, flush=True)
        yield result


if __name__ == "__main__":
    sys.exit(main())
