"""Measures what handing a model on costs the clients of a host that serves: time to first token with and without it.

Run it with `python -m bench.hand_on_beside HOST [--rounds 5] [--size 4GiB]` as root, RACKWRIGHT_LAB_ID being the lab's;
the host serves. In turn: requests alone, and the same while the host hands on a file as a deploy lets it (the same
program and words, a quarter of its link), to this machine, which takes it into memory. One request at a time, since a
queue would hide what one waits for. The time counts from the request to the first text, over HTTP from here.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import re
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.supply.cells import size_of
from rackwright.hostside.packed import packed
from rackwright.plan.hand_on import QUARTER, UNKNOWN_LINK
from rackwright_lab import Host, Lab

FOLDER = "/srv/hand-on-beside"
MEMORY = "/dev/shm"
CONTAINER = "hand-on-beside"
PORT, SERVING = 7461, 8000
QUESTION = "What is the capital of France?"
"""The small model of the lab has a text for it; of other words its first token may be its last."""
TEXT = re.compile(rb'"content": ?"[^"]')
QUIET = 15.0
"""Seconds of requests alone in each round."""
WHOLE = "complete and verified"


@dataclass(frozen=True)
class Phase:
    """Times to first token in milliseconds, and MiB/s that went out at the same time (0: nothing did)."""

    waits: tuple[float, ...]
    rate: float

    @property
    def median(self) -> float:
        """Milliseconds."""
        return statistics.median(self.waits)

    @property
    def p95(self) -> float:
        """Milliseconds."""
        return statistics.quantiles(self.waits, n=20)[-1]


def first_token(address: str, model: str) -> float:
    """Ask once, and return the milliseconds until the first text. Raises ValueError where none comes."""
    question = {
        "model": model,
        "messages": [{"role": "user", "content": QUESTION}],
        "max_tokens": 8,
        "temperature": 0,
        "stream": True,
    }
    connection = http.client.HTTPConnection(address, SERVING, timeout=60)
    begun = time.perf_counter()
    connection.request("POST", "/v1/chat/completions", json.dumps(question), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    for row in answer:
        if TEXT.search(row):
            waited = (time.perf_counter() - begun) * 1000
            answer.read()
            connection.close()
            return waited
    raise ValueError(f"status {answer.status}, and no text")


def ask_while(address: str, model: str, going: Callable[[], bool]) -> tuple[float, ...]:
    """Ask one request after the other, and return what each waited."""
    waits = []
    while going():
        waits.append(first_token(address, model))
    return tuple(waits)


# -- the transfer


def spec(host: Host, here: str, size: int, digest: str, takes: bool, serve_mib: float) -> str:
    """Return the program's arguments, on the host or here."""
    shared = {"files": [{"path": "weights", "size": size, "sha256": digest}], "origin": None, "rate_mib": None}
    giver = {"folder": FOLDER, "listen": {"address": host.address, "port": PORT, "allow": [here]}, "sources": []}
    source = {"name": host.name, "address": host.address, "port": PORT}
    taker = {"folder": f"{MEMORY}/{CONTAINER}", "address": here, "listen": None, "sources": [source]}
    mine, keys = (taker, f"{MEMORY}/{CONTAINER}-keys") if takes else (giver, f"{FOLDER}/keys")
    return json.dumps({**shared, **mine, "serve_mib": serve_mib, "stall": 60, "linger": 5, "secrets": keys})


def give(host: Host, words: str) -> None:
    """Start the program on the host, in the engine's image and with a deploy's limits."""
    image = host.run("docker inspect --format '{{.Config.Image}}' rackwright-llm").stdout.strip()
    host.run(
        f"docker run --detach --rm --pull never --name {CONTAINER} --network host --userns host --runtime runc "
        "--env NVIDIA_VISIBLE_DEVICES=void --cap-drop ALL --cap-add DAC_READ_SEARCH --user 0:0 --entrypoint python3 "
        "--security-opt no-new-privileges --env HOME=/tmp --read-only "
        f"--volume {FOLDER}:{FOLDER}:ro {image} {FOLDER}/keys/hand_on.pyz '{words}'"
    )


def transfer(host: Host, here: str, size: int, digest: str, serve_mib: float) -> subprocess.Popen[str]:
    """Begin to hand on, and return the process that takes. What an earlier round took is gone."""
    subprocess.run(["rm", "-rf", f"{MEMORY}/{CONTAINER}"], check=True)
    Path(f"{MEMORY}/{CONTAINER}").mkdir()
    give(host, spec(host, here, size, digest, False, serve_mib))
    words = spec(host, here, size, digest, True, serve_mib)
    return subprocess.Popen(
        [sys.executable, f"{MEMORY}/{CONTAINER}-keys/hand_on.pyz", words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@contextmanager
def furnished(host: Host, size: int) -> Iterator[str]:
    """Lay the file, the program and the run's token on both sides; the SHA-256 of the file. Gone afterwards."""
    keys = Path(f"{MEMORY}/{CONTAINER}-keys")
    keys.mkdir(mode=0o700, exist_ok=True)
    token, program = secrets.token_hex(32), packed("hostside/hand_on", "hostside/quiet_disk")
    (keys / "run_token").write_text(token)
    (keys / "hand_on.pyz").write_bytes(base64.b64decode(program))
    host.run(f"mkdir -p {FOLDER}/keys; head -c {size} /dev/urandom >{FOLDER}/weights; sync")
    host.run(f"cat >{FOLDER}/keys/run_token", stdin=token)
    host.run(f"base64 -d >{FOLDER}/keys/hand_on.pyz", stdin=program)
    try:
        yield host.run(f"sha256sum {FOLDER}/weights").stdout.split()[0]
    finally:
        host.run(f"docker rm --force {CONTAINER} >/dev/null 2>&1; rm -rf {FOLDER}")
        subprocess.run(["rm", "-rf", f"{MEMORY}/{CONTAINER}", str(keys)], check=True)


# -- rounds


def beside(host: Host, model: str, here: str, size: int, digest: str, mib: float) -> Phase:
    """Ask for as long as one transfer takes, its sums included."""
    begun = time.monotonic()
    with transfer(host, here, size, digest, mib) as taker:
        waits = ask_while(host.address, model, lambda: taker.poll() is None)
        output = taker.stdout.read() if taker.stdout else ""
    took = time.monotonic() - begun
    host.run(f"while docker inspect {CONTAINER} >/dev/null 2>&1; do sleep 0.2; done")
    if WHOLE not in output:
        raise SystemExit(f"the transfer failed: {output}")
    return Phase(waits, size / (1 << 20) / took)


def alone(host: Host, model: str) -> Phase:
    """Ask without a transfer."""
    end = time.monotonic() + QUIET
    return Phase(ask_while(host.address, model, lambda: time.monotonic() < end), 0)


def link_mib(host: Host) -> tuple[str, float]:
    """Return this machine's address as the host sees it, and MiB/s of a quarter of the host's link."""
    way = host.run(f"ip -o route get {host.address.rpartition('.')[0]}.1").stdout.split()
    speed = host.run(f"cat /sys/class/net/{way[way.index('dev') + 1]}/speed || true").stdout.strip()
    mbit = int(speed) if speed.isdigit() else UNKNOWN_LINK
    return way[0], round(mbit * 1e6 / 8 / (1 << 20) / QUARTER, 1)


def measured(host: Host, rounds: int, size: int, model: str) -> tuple[list[Phase], list[Phase]]:
    """Return the phases without and with a transfer, after one of each that does not count."""
    here, mib = link_mib(host)
    quiet, busy = [], []
    with furnished(host, size) as digest:
        for number in range(rounds + 1):
            pair = alone(host, model), beside(host, model, here, size, digest, mib)
            print(f"round {number}: {sentence(pair[0])}; handing on: {sentence(pair[1])}", flush=True)
            if number:
                quiet.append(pair[0])
                busy.append(pair[1])
    return quiet, busy


def sentence(phase: Phase) -> str:
    """Say what was measured in a phase."""
    sent = f", {phase.rate:.0f} MiB/s" if phase.rate else ""
    return f"{len(phase.waits)} requests, median {phase.median:.2f} ms, p95 {phase.p95:.2f} ms{sent}"


def ratios(quiet: Sequence[Phase], busy: Sequence[Phase]) -> str:
    """Say what the transfer changed, round by round."""
    medians = sorted(b.median / a.median for a, b in zip(quiet, busy, strict=True))
    tails = sorted(b.p95 / a.p95 for a, b in zip(quiet, busy, strict=True))
    return (
        f"time to first token while it hands on: median {statistics.median(medians):.3f} x "
        f"({medians[0]:.3f} to {medians[-1]:.3f}), "
        f"p95 {statistics.median(tails):.3f} x ({tails[0]:.3f} to {tails[-1]:.3f})"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("host")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=size_of, default="4GiB")
    parser.add_argument("--model", default="tiny-chat", help="the name by which it is served")
    options = parser.parse_args()
    print(ratios(*measured(Lab.open().host(options.host), options.rounds, options.size, options.model)))


if __name__ == "__main__":
    main()
