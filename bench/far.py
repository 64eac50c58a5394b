"""Measures a run over converged hosts that stand far away: a relay before each holds every byte back.

Run it with `python bench/far.py [--round-trips 0 20 100] [--rounds 3] [--hosts 1]` as root, on hosts of a lab that
are deployed and serve. The kernel here may lack netem, so the line is a program: what comes in leaves half a round
trip later, in each direction, and a new connection waits for a whole one. All tools meet the same relays, in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

from bench.peers.meter import Meter
from bench.peers.tools import OURS, Tool, tools
from rackwright.adapter.run.session import chosen_hosts
from rackwright_lab import Lab
from rackwright_lab.hosts.host import Host

MEASURED = ("paramiko", OURS, "rackwright plan")
CHUNK = 1 << 16
INVENTORY = """\
from rackwright.inventory import build
from rackwright_lab.inventory import hosts

near = {ports!r}
far = [
    (name, {{**data, "ssh_hostname": "127.0.0.1", "ssh_port": near[name], "ssh_known_hosts_file": {known!r}}})
    for name, data in hosts()
    if name in near
]
globals().update(build(__file__, {{"lab": far}}, children={{"b200": ["lab"]}}))
"""


def main() -> None:
    """Measure all tools at each round trip, and print seconds and round trips."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--round-trips", type=int, nargs="+", default=[0, 20, 100], metavar="MS")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, help="the first so many; default: all")
    options = parser.parse_args()
    hosts = Lab.open().hosts[: options.hosts]
    found = {ms: measured(hosts, ms / 1000, options.rounds) for ms in options.round_trips}
    print("\n".join(table(len(hosts), found)))


def measured(hosts: Sequence[Host], seconds: float, rounds: int) -> dict[str, float]:
    """Median seconds of each tool over lines of so many seconds a round trip."""
    spent: dict[str, list[float]] = {name: [] for name in MEASURED}
    with tempfile.TemporaryDirectory() as folder, relays(hosts, seconds) as ports, Meter(hosts, settle=1) as meter:
        chosen = [tool for tool in far_tools(hosts, ports, Path(folder)) if tool.name in MEASURED]
        for tool in chosen * (1 + rounds):
            outcome, one = meter.spend(tool.command)
            tool.unchanged(outcome, [host.name for host in hosts])
            spent[tool.name].append(one.wall)
    return {name: median(first_left_out) for name, (_, *first_left_out) in spent.items()}


def far_tools(hosts: Sequence[Host], ports: Mapping[str, int], folder: Path) -> list[Tool]:
    """Return the tools, with an inventory in which each host is at its relay, under its own key."""
    host_keys = folder / "known_hosts"
    host_keys.write_text("".join(f"[127.0.0.1]:{ports[host.name]} {host.public_host_key()}\n" for host in hosts))
    inventory = folder / "far.py"
    inventory.write_text(INVENTORY.format(ports=dict(ports), known=str(host_keys)))
    return tools(str(inventory), chosen_hosts(str(inventory), ()), True, folder)


def table(hosts: int, found: Mapping[int, Mapping[str, float]]) -> Iterator[str]:
    """Seconds by tool and round trip, and how many round trips each waits for, from the shortest to the longest."""
    least, most = min(found), max(found)
    yield f"| {hosts} hosts | " + " | ".join(f"{ms} ms" for ms in found) + " | round trips |"
    yield "|---" * (len(found) + 2) + "|"
    for name in MEASURED:
        trips = (found[most][name] - found[least][name]) / ((most - least) / 1000) if most > least else 0
        yield f"| {name} | " + " | ".join(f"{one[name]:.2f} s" for one in found.values()) + f" | {trips:.1f} |"


# -- the lines


@contextmanager
def relays(hosts: Sequence[Host], seconds: float) -> Iterator[dict[str, int]]:
    """Start a relay for each host on this machine; yield the ports of all, by host."""
    loop, ports = asyncio.new_event_loop(), dict[str, int]()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        for host in hosts:
            server = asyncio.run_coroutine_threadsafe(serve(host, seconds), loop).result()
            ports[host.name] = server.sockets[0].getsockname()[1]
        yield ports
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def serve(host: Host, seconds: float) -> asyncio.Server:
    """Listen for one host."""

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        forward, back = await asyncio.open_connection(host.address, host.port)
        await asyncio.gather(delayed(reader, back, seconds / 2), delayed(forward, writer, seconds / 2))

    return await asyncio.start_server(pass_on, "127.0.0.1", 0, backlog=1024)


async def delayed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    """Pass on what one side says, so many seconds later; much of it may be on its way at once."""
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def let_out() -> None:
        while True:
            due, data = await under_way.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not data:
                break
            writer.write(data)
            await writer.drain()
        writer.close()

    going = asyncio.create_task(let_out())
    data = b"-"
    while data:
        try:
            data = await reader.read(CHUNK)
        except OSError:
            data = b""
        under_way.put_nowait((loop.time() + seconds, data))
    with suppress(OSError):
        await going


if __name__ == "__main__":
    main()
