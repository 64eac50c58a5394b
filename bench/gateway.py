"""Measure what a gateway adds to a request: an engine's bare port and the gateway are asked in pairs, in one sitting.

`python -m bench.gateway --rounds 200 --requests 1 32`: a round asks both in random order, that many requests at once,
and the difference of their means is one pair. Printed: the median of the differences with its exact interval of 95 %.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import os
import random
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

from bench.gateway_engine import TOKENS
from bench.gateway_peers import KEY, PEERS, Way, bare, wait_for

BODY = b'{"model": "stub", "stream": true, "messages": [{"role": "user", "content": "%s"}]}' % (b"a " * 1000)


@dataclass(frozen=True)
class Asked:
    """A request, in milliseconds: from when it was sent to its first token and its last byte, and its longest pause."""

    first: float
    pause: float
    """Between two reads that had tokens: one that holds tokens back to send them together has longer ones."""
    total: float


def main() -> int:
    """Measure and print; returns 0."""
    args = _parser().parse_args()
    with contextlib.ExitStack() as stack:
        ways = list(_started(stack, args.ways))
        print(
            "| | requests at once | first token | longest pause | last byte | CPU a 1000 tokens |\n" + "|---" * 6 + "|"
        )
        for at_once in args.requests:
            for way in ways[1:]:
                _print_row(way, at_once, *asyncio.run(_rounds(ways[0], way, at_once, args.rounds)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ways", nargs="*", default=list(PEERS), metavar="|".join(PEERS))
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--requests", type=int, nargs="+", default=[1, 32])
    return parser


def _started(stack: contextlib.ExitStack, names: Sequence[str]) -> Iterator[Way]:
    ports = _free_ports(2 * len(names) + 2)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    engine = stack.enter_context(bare(folder, ports))
    yield engine
    for number, name in enumerate(names):
        (folder / name).mkdir()
        way = stack.enter_context(PEERS[name](folder / name, ports + 2 + number, engine.port))
        wait_for(way)
        yield way


def _free_ports(count: int) -> int:
    """Return the first of some ports that are free."""
    for base in range(21000, 32000, count):
        if all(_is_free(base + number) for number in range(count)):
            return base
    raise SystemExit("no free ports")


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0


async def _rounds(engine: Way, way: Way, at_once: int, rounds: int) -> tuple[list[Asked], list[Asked], float]:
    """Return the means of each round for the bare port and for the way, and the CPU seconds of the way."""
    await _asked(engine, at_once), await _asked(way, at_once)
    found: dict[str, list[Asked]] = {engine.name: [], way.name: []}
    before = _cpu(way.pid)
    for _ in range(rounds):
        for one in random.sample([engine, way], 2):
            found[one.name].append(await _asked(one, at_once))
    return found[engine.name], found[way.name], _cpu(way.pid) - before


async def _asked(way: Way, at_once: int) -> Asked:
    found = await asyncio.gather(*(_ask(way) for _ in range(at_once)))
    return Asked(*(mean(values) for values in zip(*((one.first, one.pause, one.total) for one in found), strict=True)))


async def _ask(way: Way) -> Asked:
    """Ask over a connection that is open, as clients keep theirs."""
    reader, writer = await asyncio.open_connection("127.0.0.1", way.port, ssl=way.tls)
    key = f"sk-{KEY}" if way.name == "LiteLLM" else KEY
    head = f"POST {way.path} HTTP/1.1\r\nHost: llm\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    began = time.perf_counter()
    writer.write(f"{head}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY)
    answer = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in answer.split(b"\r\n", 1)[0], answer + await reader.read(2000)
    times, data = [], b""
    while size := int(await reader.readline(), 16):
        chunk = (await reader.readexactly(size + 2))[:-2]
        times += [1000 * (time.perf_counter() - began)] * chunk.count(b'"content"')
        data += chunk
    total = 1000 * (time.perf_counter() - began)
    assert len(times) == TOKENS, data[-500:]
    writer.close()
    return Asked(times[0], max(after - before for before, after in pairwise(times)), total)


def _cpu(pid: int) -> float:
    """Return the CPU seconds of a process and its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + sum(_cpu(int(one)) for one in children)


def _print_row(way: Way, at_once: int, engine: list[Asked], found: list[Asked], cpu: float) -> None:
    pairs = list(zip(engine, found, strict=True))
    first = _difference([after.first - before.first for before, after in pairs])
    pause = _difference([after.pause - before.pause for before, after in pairs])
    total = _difference([after.total - before.total for before, after in pairs])
    tokens = len(found) * at_once * TOKENS
    print(f"| {way.name} | {at_once} | {first} | {pause} | {total} | {1e6 * cpu / tokens:.0f} ms |", flush=True)


def _difference(values: list[float]) -> str:
    """Return the median of some differences, with the exact interval of 95 % that its order gives."""
    low = _rank(len(values))
    ordered = sorted(values)
    return f"{median(values):+.2f} ms ({ordered[low]:+.2f} to {ordered[-1 - low]:+.2f})"


def _rank(count: int) -> int:
    """Return the rank of the interval's lower end: at most 2.5 % of all samples have their median below it."""
    below, rank = 0.0, -1
    while below <= 0.025 and rank < count // 2:
        rank += 1
        below += math.comb(count, rank) / 2**count
    return max(0, rank - 1)


if __name__ == "__main__":
    raise SystemExit(main())
