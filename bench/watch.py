"""Measures what the watch costs a lab host: a look at an engine that makes steps, one at an engine that stands still.

Run it with `python bench/watch.py HOST [--rounds 20]` as root, RACKWRIGHT_LAB_ID being the lab's; the host serves.
Also measured: the look at the GPUs that asks nvidia-smi and one that does not, the metrics' file, and all of it as the
timer starts it. CPU is that of each check with its children; what answers them (the engine, systemd) is not among it.
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from rackwright.concerns.watch.engine_check import LOOK
from rackwright.concerns.watch.metrics import DEFAULT_FOLDER
from rackwright.concerns.watch.units import CHECKS, RUNNER, WATCH_SERVICE, WATCH_TIMER
from rackwright.paths import ENGINE_STATES
from rackwright_lab import Host, Lab

ASKED = "/run/rackwright/watch-gpus/asked"
STATE = f"{ENGINE_STATES}/llm"


def seconds(host: Host, command: str) -> float:
    """Return the CPU seconds of a command on the host, with its children."""
    times = host.run(f"bash -c '{command} >/dev/null 2>&1; times'").stdout.splitlines()[1]
    return sum(int(minutes) * 60 + float(fraction) for minutes, fraction in re.findall(r"(\d+)m([\d.]+)s", times))


def looks(host: Host, rounds: int) -> dict[str, list[float]]:
    """Return the costs of looks by what they found; they take turns, since the next look sees the step of a probe."""
    found = defaultdict[str, list[float]](list)
    seconds(host, f"sh {LOOK}")
    for _ in range(2 * rounds):
        cost = seconds(host, f"sh {LOOK}")
        found[host.run(f"sed -n 's/^signs=//p' {STATE}").stdout.strip()].append(cost)
    return found


@contextmanager
def resting(host: Host) -> Iterator[None]:
    """Keep the host's own looks away; it has node_exporter's folder."""
    host.run(f"systemctl stop {WATCH_TIMER} {WATCH_SERVICE}; mkdir -p {DEFAULT_FOLDER}")
    try:
        yield
    finally:
        host.run(f"systemctl start {WATCH_TIMER}; rm -rf {DEFAULT_FOLDER}")


def costs(host: Host, rounds: int) -> dict[str, list[float]]:
    """Return the CPU seconds of each round by what was measured."""
    check = f"sh {CHECKS}/gpus"
    rows = {f"look: {signs}": each for signs, each in looks(host, rounds).items()}
    asks = []
    for _ in range(rounds):
        host.run(f"rm -f {ASKED}")
        asks.append(seconds(host, check))
    return {
        "an empty script": [seconds(host, "sh /dev/null") for _ in range(rounds)],
        **rows,
        "GPUs: nvidia-smi is asked": asks,
        "GPUs: it is not": [seconds(host, check) for _ in range(rounds)],
        "metrics": [seconds(host, f"sh {CHECKS}/metrics") for _ in range(rounds)],
        "all checks": [seconds(host, f"sh {RUNNER}") for _ in range(rounds)],
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    host = Lab.open().host(options.host)
    with resting(host):
        found = costs(host, options.rounds)
    for name, each in found.items():
        print(f"{name:60} {statistics.median(each):.3f} s ({min(each):.3f} to {max(each):.3f}, {len(each)} rounds)")


if __name__ == "__main__":
    main()
