"""Measures the same cell by `rackwright bench` (aiperf) and by the engine's own `vllm bench serve`, in turn.

Run it as `python bench/engines_own.py INVENTORY --limit HOST`, on an endpoint of a real vLLM that serves. Both send as
many requests of the same kind, made up again for each: what one has sent is in the server's prefix cache afterwards.
The one of them that begins changes from round to round.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rackwright.adapter.run.session import Connected, chosen_hosts, connected
from rackwright.concerns.endpoint.container import served_name
from rackwright.loading.files import site_root
from rackwright.messages import RackwrightError
from rackwright.paths import container_name
from rackwright.plan.change import Shell
from rackwright.remote.commands import command_of, remote
from rackwright_bench.record import read_bench
from rackwright_bench.suites.prompts import LOCK

WORDS = (
    "harbour",
    "lantern",
    "evening",
    "meadow",
    "copper",
    "river",
    "window",
    "garden",
    "silver",
    "mountain",
    "letter",
)
TALKS = "/tmp/talks.json"
RESULT = "result.json"
SECONDS = 600
ROWS = (
    ("requests a second", "request_rate"),
    ("tokens a second", "output_rate"),
    ("TTFT p50, ms", "ttft_p50"),
    ("TTFT p99, ms", "ttft_p99"),
    ("time a token p50, ms", "itl_p50"),
    ("end to end p50, ms", "latency_p50"),
    ("draft tokens accepted", "accepted"),
)
"""Hold what both report: a title, and the name in a record of Rackwright."""
THEIRS = {
    "request_rate": "request_throughput",
    "output_rate": "output_throughput",
    "ttft_p50": "p50_ttft_ms",
    "ttft_p99": "p99_ttft_ms",
    # aiperf's mean pause of a request is what vLLM calls TPOT; its ITL counts each pause separately.
    "itl_p50": "p50_tpot_ms",
    "latency_p50": "p50_e2el_ms",
    "accepted": "spec_decode_acceptance_rate",
}
Figures = Mapping[str, float]


@dataclass(frozen=True)
class Cell:
    """What both send. words: of a prompt; output: tokens of an answer."""

    requests: int
    concurrency: int
    words: int
    output: int

    def talks(self, seed: int) -> str:
        """Return requests in ShareGPT's form, which both tools read."""
        chosen = random.Random(seed)
        texts = [" ".join(chosen.choices(WORDS, k=self.words)) for _ in range(self.requests)]
        answer = " ".join(chosen.choices(WORDS, k=self.output))
        talks = [[{"from": "human", "value": text}, {"from": "gpt", "value": answer}] for text in texts]
        return json.dumps([{"id": str(number), "conversations": talk} for number, talk in enumerate(talks)])


def ours(cell: Cell, inventory: str, host: str, seed: int) -> Figures:
    """Return what `rackwright bench` measures, as its record has it."""
    with tempfile.TemporaryDirectory(prefix="rackwright-engines-own-") as folder:
        talks, suite = Path(folder) / "talks.json", Path(folder) / "cell.yml"
        talks.write_text(cell.talks(seed))
        suite.write_text(
            f"seed: {seed}\nwarmup: 0\n"
            # A name of its own for each file: `rackwright bench` refuses other bytes under a name that it knows.
            f"datasets: {{talks_{seed}: {{kind: sharegpt, path: {talks}, output: {cell.output}}}}}\n"
            f"arrivals: {{same: {{concurrency: {cell.concurrency}, requests: {cell.requests}}}}}\n"
        )
        words = [sys.executable, "-P", "-m", "rackwright", "bench", inventory, "--limit", host, "-y"]
        subprocess.run([*words, "--suite", str(suite)], check=True, stdout=subprocess.DEVNULL)
    (measured,) = read_bench(site_root(Path(inventory)).absolute(), "last").cells.values()
    found = {name: measured.at(name.rpartition("_")[0], int(name[-2:])) for _, name in ROWS if name[-3:-2] == "p"}
    rates = {"request_rate": measured.request_rate, "output_rate": measured.output_rate}
    accepted = measured.drafting.accepted
    return found | rates | ({} if accepted is None else {"accepted": accepted})


def theirs(cell: Cell, one: Connected, seed: int) -> Figures:
    """Return what `vllm bench serve` measures, inside the endpoint's container."""
    ((name, endpoint),) = one.entry.settings.all_endpoints.items()
    assert endpoint.model is not None
    inside = f"docker exec -i {container_name(name)}"
    talks = base64.b64encode(cell.talks(seed).encode()).decode()
    command = (
        f"vllm bench serve --backend openai-chat --base-url http://127.0.0.1:{endpoint.port} "
        f"--endpoint /v1/chat/completions --model {served_name(endpoint)} --tokenizer {endpoint.model.mount} "
        f"--dataset-name sharegpt --dataset-path {TALKS} --sharegpt-output-len {cell.output} --ignore-eos "
        f"--num-prompts {cell.requests} --max-concurrency {cell.concurrency} --seed {seed} --disable-tqdm "
        "--percentile-metrics ttft,tpot,e2el --metric-percentiles 50,99 "
        f"--save-result --result-dir /tmp --result-filename {RESULT}"
    )
    output_of(one, f"printf %s '{talks}' | base64 -d | {inside} sh -c 'cat >{TALKS}'")
    output_of(one, f"{inside} {command}")
    result = json.loads(output_of(one, f"{inside} cat /tmp/{RESULT}"))
    found = {name: float(result[key]) for name, key in THEIRS.items() if result.get(key) is not None}
    # vLLM's are percents.
    return found | ({"accepted": found["accepted"] / 100} if "accepted" in found else {})


def output_of(one: Connected, script: str) -> str:
    """Return what a command of the host prints. Raises RackwrightError when it fails."""
    shell = command_of(Shell(script, timeout=SECONDS))
    ok, output = remote(one.host, shell, timeout=SECONDS + 10, quiet=True)
    if not ok:
        raise RackwrightError("\n".join([*output.stdout_lines, *output.stderr_lines][-10:]))
    return "\n".join(output.stdout_lines)


@contextmanager
def lock_as_it_was(lock: Path) -> Iterator[None]:
    """Restore the site's lock afterwards: it has no entries for files that are made up here."""
    before = lock.read_bytes() if lock.exists() else None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True) if before is None else lock.write_bytes(before)


@contextmanager
def on_host(inventory: str, host: str) -> Iterator[Connected]:
    """Connect to the host."""
    with connected(chosen_hosts(inventory, [host])) as (one,):
        yield one


def measured(args: argparse.Namespace) -> tuple[list[Figures], list[Figures]]:
    """Both, round by round, after one that does not count."""
    cell = Cell(args.requests, args.concurrency, args.words, args.output)
    found: tuple[list[Figures], list[Figures]] = ([], [])
    for number in range(args.rounds + 1):
        for which in (0, 1) if number % 2 else (1, 0):
            seed = 1000 * args.seed + 2 * number + which
            if which:
                with on_host(args.inventory, args.limit) as one:
                    figures = theirs(cell, one, seed)
            else:
                figures = ours(cell, args.inventory, args.limit, seed)
            if number:
                found[which].append(figures)
            print(f"round {number} {'vllm bench serve' if which else 'rackwright bench'}: {dict(figures)}", flush=True)
    return found


def table(ours: list[Figures], other: list[Figures]) -> str:
    """Medians side by side, their ratio, and how far the rounds of each lie apart."""
    lines = ["| | rackwright bench | vllm bench serve | ratio | spread of each |", "|---|---|---|---|---|"]
    for title, name in ROWS:
        mine, right = ([one[name] for one in side if name in one] for side in (ours, other))
        if mine and right:
            middle, beside = statistics.median(mine), statistics.median(right)
            ratio = f"{middle / beside:.2f}" if beside else "-"
            lines.append(f"| {title} | {middle:.4g} | {beside:.4g} | {ratio} | {spread(mine)}, {spread(right)} |")
    return "\n".join(lines)


def spread(values: list[float]) -> str:
    """Highest less lowest, as a share of the median."""
    middle = statistics.median(values)
    return f"{(max(values) - min(values)) / middle:.0%}" if middle else "-"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("inventory")
    parser.add_argument("--limit", required=True, metavar="HOST")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1, help="of the requests: another one where a run is repeated")
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--words", type=int, default=60, help="of a prompt")
    parser.add_argument("--output", type=int, default=64, help="tokens of an answer")
    args = parser.parse_args()
    try:
        with lock_as_it_was(site_root(Path(args.inventory)).absolute() / LOCK):
            print(table(*measured(args)))
    except RackwrightError as error:
        print(f"engines_own: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
