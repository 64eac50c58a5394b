"""Measures `rackwright status` against bare SSH: the same hosts, the same sitting, one `true` a host.

Run it with `python bench/status_floor.py INVENTORY [--rounds 5]`; it prints medians and their ratio. The floor opens
all connections side by side with OpenSSH's own client, as many at once as there are hosts.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rackwright.session import chosen_hosts


def ssh_words(data: Mapping[str, Any], name: str) -> list[str]:
    """OpenSSH's command line for a host's connection data."""
    options = {
        "Port": data.get("ssh_port", 22),
        "User": data.get("ssh_user", "root"),
        "IdentityFile": data.get("ssh_key"),
        "UserKnownHostsFile": data.get("ssh_known_hosts_file"),
        "BatchMode": "yes",
    }
    words = [word for key, value in options.items() if value is not None for word in ("-o", f"{key}={value}")]
    return ["ssh", *words, str(data.get("ssh_hostname", name)), "true"]


def floor(commands: list[list[str]]) -> None:
    """One bare command on every host."""
    with ThreadPoolExecutor(len(commands)) as pool:
        list(pool.map(lambda words: subprocess.run(words, check=True, stdin=subprocess.DEVNULL), commands))


def status(inventory: str) -> None:
    """The verb as users type it."""
    rackwright = str(Path(sys.executable).parent / "rackwright")
    subprocess.run([rackwright, "status", inventory], check=True, stdout=subprocess.DEVNULL)


def seconds(work: Callable[[], None]) -> float:
    """How long it takes."""
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def main() -> None:
    """Measure both in turn, so that both meet the same machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("inventory")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    commands = [ssh_words(entry.data, entry.name) for entry in chosen_hosts(asked.inventory, ())]
    pairs = [(seconds(lambda: floor(commands)), seconds(lambda: status(asked.inventory))) for _ in range(asked.rounds)]
    bare, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"{len(commands)} hosts, {asked.rounds} rounds: ssh {bare:.2f} s, status {ours:.2f} s, {ours / bare:.2f} x")


if __name__ == "__main__":
    main()
