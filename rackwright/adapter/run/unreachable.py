"""Hosts that cannot be reached, found by connecting as a run does: same connector, keys and options.

It runs as a process of its own, `python -m rackwright.adapter.run.unreachable INVENTORY`, with the hosts' names and
`--data` as JSON on standard input, because connecting makes the whole process cooperative (gevent), and a rollout's
must stay as it is.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rackwright.adapter.run.options import data_given, given
from rackwright.adapter.run.session import hosts_named, reachable
from rackwright.messages import RackwrightError
from rackwright.processes import module

SECONDS = 300
"""Longest time for connecting to a whole fleet."""


def offline(inventory: Path, hosts: Sequence[str], root: Path) -> list[str]:
    """Return the hosts of an inventory that cannot be reached now, in the order given. Raises RackwrightError."""
    words = [*module("rackwright.adapter.run.unreachable"), str(inventory)]
    try:
        done = subprocess.run(
            words,
            input=json.dumps({"hosts": list(hosts), "data": data_given()}),
            cwd=root,
            stdout=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
            check=True,
            start_new_session=True,
        )
        reached = set(json.loads(done.stdout))
    except (subprocess.SubprocessError, ValueError) as error:
        raise RackwrightError(f"the reachability probe failed: {error}; nothing was done", code="RW1315") from error
    return [host for host in hosts if host not in reached]


def main() -> None:
    """Print the names of the hosts that can be reached, as JSON."""
    request = json.load(sys.stdin)
    with given(request["data"]):
        entries = [entry for entry in hosts_named(sys.argv[1], request["hosts"]) if entry.name in request["hosts"]]
        print(json.dumps(reachable(entries)))


if __name__ == "__main__":
    main()
