"""Measures `rackwright status` against bare SSH: the same hosts, the same sitting, one `true` a host.

Run it with `python bench/status_floor.py INVENTORY [--rounds 5] [--ssh] [--cpu]`; it prints medians and their ratio.
Two floors, each with all logins side by side:

- `paramiko`: one Python process, a thread a host. The fastest client that we know of, and so the floor that counts.
- `ssh`: OpenSSH's own client, a process a host: what people type.

`--cpu` counts, for hosts of the lab, the CPU of client and hosts together: they share one machine, and this figure
does not move with whatever else runs there.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rackwright.adapter.run.session import chosen_hosts
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright_lab import Lab

BARE = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
import paramiko
hosts = json.load(sys.stdin)
keys = {path: paramiko.Ed25519Key.from_private_key_file(path) for path in {host["key"] for host in hosts}}
def ask(host):
    client = paramiko.SSHClient()
    client.load_host_keys(host["known_hosts"])
    line = socket.create_connection((host["address"], host["port"]))
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.connect(host["address"], host["port"], host["user"], pkey=keys[host["key"]], sock=line,
                   allow_agent=False, look_for_keys=False)
    _, out, _ = client.exec_command("true")
    assert out.channel.recv_exit_status() == 0
    client.close()
with ThreadPoolExecutor(len(hosts)) as pool:
    list(pool.map(ask, hosts))
"""


def ssh_words(data: Mapping[str, Any], name: str) -> list[str]:
    """OpenSSH's command line for a host's connection data."""
    options = {
        "Port": data.get("ssh_port", 22),
        "User": data.get("ssh_user", "root"),
        "IdentityFile": data.get("ssh_key"),
        "UserKnownHostsFile": data.get("ssh_known_hosts_file"),
        "BatchMode": "yes",
    }
    words = [argument for key, value in options.items() if value is not None for argument in ("-o", f"{key}={value}")]
    return ["ssh", *words, str(data.get("ssh_hostname", name)), "true"]


def login(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a host's connection data for the bare client."""
    return {
        "address": data.get("ssh_hostname", name),
        "port": data.get("ssh_port", 22),
        "user": data.get("ssh_user", "root"),
        "key": data["ssh_key"],
        "known_hosts": data["ssh_known_hosts_file"],
    }


def openssh(commands: list[list[str]]) -> None:
    """One bare command on every host, a process each."""
    with ThreadPoolExecutor(len(commands)) as pool:
        list(pool.map(lambda words: subprocess.run(words, check=True, stdin=subprocess.DEVNULL), commands))


def bare(hosts: str) -> None:
    """Run the same with paramiko alone; its start counts, as that of `status` does."""
    subprocess.run([sys.executable, "-c", BARE], input=hosts, text=True, check=True)


def status(inventory: Path, site: Path) -> None:
    """Run the verb as users type it."""
    rackwright = str(Path(sys.executable).parent / "rackwright")
    environment = {**os.environ, "RACKWRIGHT_SITE": str(site)}
    subprocess.run([rackwright, "status", str(inventory)], check=True, stdout=subprocess.DEVNULL, env=environment)


def as_users_write_it(entries: Sequence[InventoryHost], folder: Path) -> Path:
    """Return the same hosts and groups as plain values: loading the lab's own code is not what is measured."""
    groups: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for entry in entries:
        data = {key: value for key, value in entry.data.items() if key.startswith("ssh_")}
        for group in entry.groups:
            groups.setdefault(group, []).append((entry.name, data))
    path = folder / "fleet.py"
    path.write_text(f"from rackwright.inventory import build\n\nglobals().update(build(__file__, {groups!r}))\n")
    return path


def seconds(work: Callable[[], None]) -> float:
    """How long it takes."""
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def cpu(work: Callable[[], None]) -> float:
    """CPU seconds of the client and of all hosts of the lab; a moment longer, since a login ends after its client."""
    groups = [host.machine.group for host in Lab.open().hosts]

    def used() -> float:
        ours = resource.getrusage(resource.RUSAGE_CHILDREN)
        stats = [(group / "cpu.stat").read_text().partition("usage_usec ")[2].split()[0] for group in groups]
        return ours.ru_utime + ours.ru_stime + sum(map(int, stats)) / 1e6

    time.sleep(3)
    begun = used()
    work()
    time.sleep(3)
    return used() - begun


def main() -> None:
    """Measure all in turn, so that all meet the same machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("inventory")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ssh", action="store_true", help="OpenSSH's processes as well, once")
    parser.add_argument("--cpu", action="store_true", help="CPU of client and lab hosts in place of the clock")
    options = parser.parse_args()
    entries = chosen_hosts(options.inventory, ())
    hosts = json.dumps([login(entry.data, entry.name) for entry in entries])
    commands = [ssh_words(entry.data, entry.name) for entry in entries]
    with tempfile.TemporaryDirectory() as folder:
        inventory, site = as_users_write_it(entries, Path(folder)), site_root(Path(options.inventory)).absolute()
        works = [lambda: bare(hosts), lambda: status(inventory, site)]
        measure = cpu if options.cpu else seconds
        rounds = [[measure(work) for work in works] for _ in range(options.rounds)]
        ssh = measure(lambda: openssh(commands)) if options.ssh else None
    floor, ours = (statistics.median(column) for column in zip(*rounds, strict=True))
    print(f"{len(entries)} hosts, {options.rounds} rounds, {'CPU' if options.cpu else 'wall'} seconds")
    print(f"paramiko {floor:.2f}, status {ours:.2f}: {ours / floor:.2f} x")
    if ssh is not None:
        print(f"ssh, once, {ssh:.2f}: {ours / ssh:.2f} x")


if __name__ == "__main__":
    main()
